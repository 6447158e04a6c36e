// One fixed life of a node (starts, marks, tree marks, advances, saves, clean stops), cut off at every
// call it makes of the file system, with every choice of what a power cut may take of what was not
// synced; and each start after that cut off in the same way. After every recovery the node is held
// against an oracle that knows what was acknowledged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tracker/storage/instance_record.h"

namespace spoor::crash {

enum class Fault {
  power_cut,  // Of the machine: what is not synced may be gone, and the boot is another.
  kill,       // Of the process: everything written is there.
};

struct Matrix {
  tracker::Durability durability = tracker::Durability::disk;
  Fault fault = Fault::power_cut;
  // Of the cuts, every `stride`-th, beginning with this one.
  std::size_t stride = 1;
  std::size_t first = 1;
  bool in_recovery = false;                     // crashes in the recovery from each of them, too
  std::optional<Fault> fault_in_recovery = {};  // the same as the first unless said otherwise
  bool until_first_violation = false;
  std::function<bool(const std::filesystem::path&)> is_sync_omitted = {};  // may be empty
};

struct Outcome {
  std::uint64_t points = 0;  // recoveries held against the oracle
  std::uint64_t losses = 0;  // of them, those that began a new instance with a gap
  std::uint64_t violation_count = 0;
  std::vector<std::string> violations;  // the first few, in words
};

Outcome run(const Matrix& matrix);

}  // namespace spoor::crash
