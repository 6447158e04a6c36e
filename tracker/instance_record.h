// What `node.data_dir` remembers of the tracker between runs: which instance lived here last, and
// whether it ended cleanly. The proof, or the lack of it, that a snapshot holds everything that was
// acknowledged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file_system.h"
#include "tracker/ids.h"
#include "tracker/journal_record.h"

namespace spoor::tracker {

// What an acknowledgement is worth (docs/durability.md).
enum class Durability {
  disk,    // It survives a power cut.
  os,      // It survives the end of the process, however it comes; a power cut is a loss.
  memory,  // It survives a clean stop; anything else is a loss.
};

std::string_view to_string(Durability durability);

// How an instance began, for whoever has its whole journal and no snapshot.
struct Birth {
  CycleId cycle{1};
  bool complete = true;  // false: the cycle before it holds a gap over everything

  friend bool operator==(const Birth&, const Birth&) = default;
};

// The snapshot that holds everything.
struct CleanStop {
  std::uint64_t generation = 0;
  JournalPosition position = 0;

  friend bool operator==(const CleanStop&, const CleanStop&) = default;
};

struct InstanceRecord {
  InstanceId instance;
  // Written as the last act of a clean stop. Nothing while a daemon runs, and after a crash.
  std::optional<CleanStop> clean_stop;

  // NamespaceRules::fingerprint() of the run: what it ignored, it did not mark.
  std::string rules = {};

  // How the run kept what it acknowledged, and on which boot of the machine (base::boot_id): they decide
  // what is lost where it did not end cleanly.
  Durability durability = Durability::memory;
  std::string boot_id = {};

  std::optional<Birth> birth = {};

  friend bool operator==(const InstanceRecord&, const InstanceRecord&) = default;
};

// Nothing where there never was a record; an error where there is one that can't be read.
base::Result<std::optional<InstanceRecord>> read_instance_record(base::FileSystem& files,
                                                                 const std::filesystem::path& data_dir);

// Durable when it returns.
base::Result<> write_instance_record(base::FileSystem& files, const std::filesystem::path& data_dir,
                                     const InstanceRecord& record);

}  // namespace spoor::tracker
