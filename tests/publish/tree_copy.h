// A copy of the tree of a drive, made from events alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "publish/event.h"

namespace spoor::publish {

// The paths of a tree without ".spoor", and whether each is a file: anything that is no directory.
using Tree = std::map<std::string, bool>;

Tree tree_of(const std::filesystem::path& drive);

// What differs, a path in a line; empty: nothing.
std::string differences(const Tree& source, const Tree& copy);

// As simple as a consumer may be: it does not compare what is deleted with what is there.
//
// Not thread-safe.
class TreeCopy {
 public:
  TreeCopy() = default;
  explicit TreeCopy(const std::vector<Event>& events);

  void apply(const Event& event);

  const Tree& tree() const { return tree_; }

  // The scan of the last event of this path, or of the last reset; 0: none.
  std::uint64_t last_scan(const std::string& path) const;

 private:
  Tree tree_;
  std::map<std::string, std::uint64_t> scans_;
};

// Without those whose id was there before, as consumers may do.
std::vector<Event> without_repeats(const std::vector<Event>& events);

// What is wrong with the order of the events of a path: their scans must not decrease. Empty: nothing.
std::string disorder_in(const std::vector<Event>& events);

}  // namespace spoor::publish
