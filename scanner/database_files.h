// What lies beside a database of Spoor, and what can be told of its file before SQLite opens it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace spoor::scanner {

// FILE.damaged: left by whoever finds damage, for the next one who may build the database anew. A reader of
// one directory meets damage that a scan of others does not.
//
// Leaves it, and returns the error that says so: Errc::database_damaged.
base::Error damage_error(const std::filesystem::path& file, std::string_view what);
// What was found. Nothing where no damage was, or the damaged file itself is gone.
std::optional<std::string> noted_damage(const std::filesystem::path& file);

// Moves the database with its log to FILE.corrupt, in the place of an earlier one, and forgets the note.
base::Result<> set_aside(const std::filesystem::path& file);
std::filesystem::path aside_of(const std::filesystem::path& file);

// FILE.new: what is built to take the place of a database. Closed, with an empty log, it does that here: the
// other one is kept as FILE.corrupt, in the place of an earlier one. At any moment there is a whole database
// under the name; where that ends half-way, FILE.new is still there, to be put in place again.
std::filesystem::path rebuilt_of(const std::filesystem::path& file);
base::Result<> put_rebuilt_in_place(const std::filesystem::path& file);
// Removes FILE.new, if there is one, with all that belongs to it.
base::Result<> drop_rebuilt(const std::filesystem::path& file);

// FILE.commit: the last commit. SQLite takes a log that was damaged for one that ends before the damage: what
// is missing then shows here, and so does an older copy in the place of the file.
struct CommitMark {
  std::string database;      // drawn when it was made
  std::uint64_t number = 0;  // counts its commits
};
// A failure only means that less is noticed.
base::Result<> keep_commit_mark(const std::filesystem::path& file, const CommitMark& mark);
// Nothing where it can't be read.
std::optional<CommitMark> read_commit_mark(const std::filesystem::path& file);

enum class FileKind {
  ours,     // or none, or too damaged to tell
  older,    // a scan database of version 1, which had no checksums
  foreign,  // of another program
};
FileKind kind_of(const std::filesystem::path& file, std::uint32_t application_id);

}  // namespace spoor::scanner
