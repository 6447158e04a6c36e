// The record in `node.data_dir` of what spoor-publish has done. spoor-publish writes it; the daemon reads it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_system.h"

namespace spoor::scanner {

// Since spoor-publish started.
struct SinkFigures {
  std::string name = {};
  std::uint64_t scan = 0;                           // up to which all changes are published; 0: not known yet
  std::uint64_t events = 0;                         // acknowledged by the sink
  std::uint64_t failures = 0;                       // requests that were not
  std::uint64_t resets = 0;                         // of the feed
  std::optional<base::WallTime> last_success = {};  // when it last had nothing left to publish, or published
  std::string error = {};                           // of the last attempt; empty: it succeeded

  friend bool operator==(const SinkFigures&, const SinkFigures&) = default;
};

struct PublishRecord {
  base::WallTime written_at = {};
  std::vector<SinkFigures> sinks = {};

  friend bool operator==(const PublishRecord&, const PublishRecord&) = default;
};

// Returns nullopt if there is no record, and an error if it can't be read.
base::Result<std::optional<PublishRecord>> read_publish_record(base::FileSystem& files,
                                                               const std::filesystem::path& data_dir);

// Durable on success.
base::Result<> write_publish_record(base::FileSystem& files, const std::filesystem::path& data_dir,
                                    const PublishRecord& record);

// The lock of the only spoor-publish that may run on this data directory.
std::filesystem::path publish_lock_file(const std::filesystem::path& data_dir);

}  // namespace spoor::scanner
