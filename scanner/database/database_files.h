// The files beside a database of Spoor, and the checks of its file before SQLite opens it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace spoor::scanner {

// Writes FILE.damaged and returns Errc::database_damaged. The next scan reads FILE.damaged and rebuilds the
// database: a reader of one directory can find damage that a scan of other directories does not.
base::Error damage_error(const std::filesystem::path& file, std::string_view what);
// The content of FILE.damaged. Nothing if there is none, or if FILE itself is gone. Fails if it cannot be
// read.
base::Result<std::optional<std::string>> noted_damage(const std::filesystem::path& file);

// Moves the database with its log to FILE.corrupt, replacing an earlier one, and removes FILE.damaged.
base::Result<> set_aside(const std::filesystem::path& file);
std::filesystem::path aside_of(const std::filesystem::path& file);

// FILE.new: a database that is built to replace FILE. put_rebuilt_in_place() requires it closed, with an
// empty log; it keeps the replaced database as FILE.corrupt, replacing an earlier one. FILE is a complete
// database at any moment (on a file system with hard links). After an interruption FILE.new still exists:
// call put_rebuilt_in_place() again.
std::filesystem::path rebuilt_of(const std::filesystem::path& file);
base::Result<> put_rebuilt_in_place(const std::filesystem::path& file);
// Removes FILE.new and the files beside it, if they exist.
base::Result<> drop_rebuilt(const std::filesystem::path& file);

// Whether nothing can be written beside the file: SQLite needs some pages even for reading.
bool is_disk_full(const std::filesystem::path& file);
// Whether `bytes` more, beside the file, leave 5 % of the file system, at most 512 MiB, to the journal of the
// daemon. True if that is unknown.
bool has_space_for(const std::filesystem::path& file, std::uint64_t bytes);

// FILE.commit: the last commit. SQLite reads a damaged log only up to the damage. FILE.commit detects the
// commits that are then missing, and an older copy in the place of FILE and its log.
struct CommitMark {
  std::string database;      // its random id, set at creation
  std::uint64_t number = 0;  // number of its commits
};
// Not synced: after a power cut the mark may be an older one, or none. Then, and after a failure, missing
// commits may stay undetected.
base::Result<> keep_commit_mark(const std::filesystem::path& file, const CommitMark& mark);
// Nothing if there is none or its checksum is wrong. Fails if it cannot be read.
base::Result<std::optional<CommitMark>> read_commit_mark(const std::filesystem::path& file);

// Whether it exists and has no byte.
bool is_empty_file(const std::filesystem::path& file);

// Whether another program wrote the file; false if there is none, or if it is too damaged to identify.
bool is_foreign(const std::filesystem::path& file, std::uint32_t application_id);

}  // namespace spoor::scanner
