// A node whose drive is a tree of the benchmark: the real spoord, and the real spoor, as they ship.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace spoor::bench {

// What a program took from its start to its end.
struct Cost {
  double seconds = 0;
  double processor_seconds = 0;
  double memory_mib = 0;  // the most at any time
  double disk_reads = 0;  // of the disk with the tree
};

// Throws where it does not end with 0. What it prints is not kept.
Cost cost_of(const std::vector<std::string>& command);

// The most this process has needed so far: what is told of the programs it starts is never less.
double own_memory_mib();

struct ScanRun {
  Cost cost;
  std::uint64_t walked = 0;
  std::uint64_t changed = 0;
};

struct DatabaseFigures {
  std::uint64_t bytes = 0;
  std::uint64_t directories = 0;
  std::uint64_t name_bytes = 0;  // of the directories' own names

  double bytes_each() const;
  double bytes_each_beyond_names() const;
};

// Throws where a program does not do what it should: another thing would be measured.
class ScanNode {
 public:
  // What an earlier run left in `folder` and on the drive is removed, but for the tree itself.
  ScanNode(std::filesystem::path folder, const std::filesystem::path& drive);

  enum class Mode { as_needed, full };
  ScanRun scan(Mode mode) const;

  // As directories, by `spoor mark`.
  void mark(const std::vector<std::string>& paths) const;

  // The next scan is the first one.
  void forget_scans() const;

  DatabaseFigures database() const;

 private:
  std::vector<std::string> spoor(const std::vector<std::string>& arguments) const;

  const std::filesystem::path folder_;
  std::unique_ptr<support::Daemon> daemon_;
  std::string url_;
};

}  // namespace spoor::bench
