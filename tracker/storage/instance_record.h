// The record in `node.data_dir` of the tracker's last run: its instance, and whether it stopped cleanly. It
// decides whether a snapshot holds everything that was acknowledged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_system.h"
#include "tracker/cycles/ids.h"
#include "tracker/cycles/journal_record.h"

namespace spoor::tracker {

// Which failures an acknowledged mark survives (docs/durability.md).
enum class Durability {
  disk,    // A power cut.
  os,      // Any end of the process, but not a power cut.
  memory,  // Only a clean stop.
};

std::string_view to_string(Durability durability);

// How an instance began: the base of a replay of its whole journal without a snapshot.
struct Birth {
  CycleId cycle{1};
  bool complete = true;  // false: the cycle before it holds a gap over everything

  friend bool operator==(const Birth&, const Birth&) = default;
};

// The snapshot of a clean stop, which holds all marks.
struct CleanStop {
  std::uint64_t generation = 0;
  JournalPosition position = 0;

  friend bool operator==(const CleanStop&, const CleanStop&) = default;
};

// Whether the instance acknowledges marks (docs/cluster.md, "Leaving").
enum class Membership {
  member,
  // A member that began after a retirement, and that no other one has recorded yet: the records that it makes
  // count for nobody, since no scan may know of it.
  returned,
  retiring,  // no more: another tracker may have its marks
  retired,   // another tracker has its marks. The next start begins a new instance
};

constexpr bool is_leaving(Membership membership) {
  return membership == Membership::retiring || membership == Membership::retired;
}

// When other members, or a source of members, knew the instance for certain. `steady` is of one boot only.
struct KnownAt {
  base::SteadyTime steady;
  base::WallTime wall;

  friend bool operator==(const KnownAt&, const KnownAt&) = default;
};

struct InstanceRecord {
  InstanceId instance;
  // Written as the last step of a clean stop. None while a daemon runs, and after a crash.
  std::optional<CleanStop> clean_stop;

  // NamespaceRules::fingerprint() of the run: paths that it ignored are not marked.
  std::string rules = {};

  // The durability of the run, and the boot of the machine (base::boot_id): they decide what is lost after a
  // crash.
  Durability durability = Durability::memory;
  std::string boot_id = {};

  std::optional<Birth> birth = {};

  // Whether another member has recorded the instance.
  bool is_introduced = false;

  // Grows with each start of the instance.
  std::uint64_t runs = 0;

  Membership membership = Membership::member;

  // In whole milliseconds.
  std::optional<KnownAt> known_at = {};

  friend bool operator==(const InstanceRecord&, const InstanceRecord&) = default;
};

// Returns nullopt if there is no record, and an error if the record can't be read.
base::Result<std::optional<InstanceRecord>> read_instance_record(base::FileSystem& files,
                                                                 const std::filesystem::path& data_dir);

// Durable on success.
base::Result<> write_instance_record(base::FileSystem& files, const std::filesystem::path& data_dir,
                                     const InstanceRecord& record);

}  // namespace spoor::tracker
