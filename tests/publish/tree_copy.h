// A copy of the tree of a drive, made from events alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/publish/event_server.h"

namespace spoor::publish {

// The paths of a tree without ".spoor", and whether each is a file: anything that is no directory.
using Tree = std::map<std::string, bool>;

Tree tree_of(const std::filesystem::path& drive);

// What differs, a path in a line; empty: nothing.
std::string differences(const Tree& source, const Tree& copy);

// Not thread-safe.
class TreeCopy {
 public:
  void apply(const StoredEvent& event);

  const Tree& tree() const { return tree_; }

  // The scan of the last event of this path, or of the last reset; 0: none.
  std::uint64_t last_scan(const std::string& path) const;

 private:
  void remove(const std::string& path);

  Tree tree_;
  std::map<std::string, std::uint64_t> scans_;
};

}  // namespace spoor::publish
