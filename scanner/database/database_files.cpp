#include "scanner/database/database_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <charconv>
#include <fstream>
#include <initializer_list>
#include <system_error>

#include "base/checksum.h"
#include "base/file_system.h"
#include "scanner/database/checksum_vfs.h"
#include "scanner/errors.h"

namespace spoor::scanner {
namespace {

constexpr std::uint64_t note_bytes_max = 4096;
constexpr std::string_view sqlite_magic("SQLite format 3\0", 16);
constexpr std::size_t header_bytes = 100;
constexpr std::uint64_t space_bytes_least = std::uint64_t{128} << 10U;
constexpr std::uint64_t journal_space_max = std::uint64_t{512} << 20U;

std::filesystem::path beside(const std::filesystem::path& file, const char* suffix) {
  std::filesystem::path path = file;
  path += suffix;
  return path;
}

// A file that cannot be looked at counts as one: what is done with it then fails, and says why.
bool is_there(const std::filesystem::path& file) {
  std::error_code failure;
  return std::filesystem::exists(file, failure) || failure;
}

base::Result<> rename_if_there(base::FileSystem& files, const std::filesystem::path& from,
                               const std::filesystem::path& to) {
  auto renamed = files.rename(from, to);
  if (!renamed && renamed.error().code == std::errc::no_such_file_or_directory) return {};
  return renamed;
}

base::Result<> remove_beside(base::FileSystem& files, const std::filesystem::path& file,
                             std::initializer_list<const char*> suffixes) {
  for (const char* const suffix : suffixes) {
    auto removed = files.remove(beside(file, suffix));
    if (!removed && removed.error().code != std::errc::no_such_file_or_directory) return removed;
  }
  return {};
}

std::string checked(std::string_view text) { return fmt::format("{} {:016x}\n", text, base::checksum(text)); }

bool is_empty_or_none(const std::filesystem::path& file) { return !is_there(file) || is_empty_file(file); }

// Links the file to FILE.corrupt, so that FILE exists until it is replaced; renames it if the file system has
// no hard links. Moves its logs away: SQLite would apply them to the new file.
base::Result<> keep_aside(base::FileSystem& files, const std::filesystem::path& file) {
  const std::filesystem::path aside = aside_of(file);
  std::error_code failure;
  const bool is_aside = std::filesystem::equivalent(file, aside, failure);  // by a process that was killed
  if (is_there(file) && !is_aside) {
    if (auto removed = remove_beside(files, aside, {"", "-wal", "-journal"}); !removed) return removed;
    std::filesystem::create_hard_link(file, aside, failure);
    if (failure) {
      if (auto renamed = files.rename(file, aside); !renamed) return renamed;
    }
  }
  for (const char* const log : {"-wal", "-journal"}) {
    auto gone = is_empty_or_none(beside(file, log))
                    ? remove_beside(files, file, {log})
                    : rename_if_there(files, beside(file, log), beside(aside, log));
    if (!gone) return gone;
  }
  return {};
}

std::string read_header(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string header(header_bytes, '\0');
  stream.read(header.data(), static_cast<std::streamsize>(header.size()));
  header.resize(static_cast<std::size_t>(stream.gcount()));
  return header;
}

}  // namespace

bool is_empty_file(const std::filesystem::path& file) {
  std::error_code failure;
  return std::filesystem::file_size(file, failure) == 0;
}

base::Error damage_error(const std::filesystem::path& file, std::string_view what) {
  const std::string found = fmt::format("{} is damaged: {}", file.native(), what);
  base::PosixFileSystem files;
  const auto noted = base::replace_file(files, beside(file, ".damaged"), found.substr(0, note_bytes_max));
  return {Errc::database_damaged,
          found + (noted ? "; the next 'spoor scan' rebuilds it"
                         : "; run 'spoor scan --rebuild', which sets it aside and rebuilds it")};
}

base::Result<std::optional<std::string>> noted_damage(const std::filesystem::path& file) {
  const std::filesystem::path note = beside(file, ".damaged");
  base::PosixFileSystem files;
  auto text = base::read_if_there(files, note, note_bytes_max);
  if (!text || !*text) return text;
  if (!is_there(file)) {
    static_cast<void>(files.remove(note));
    return std::optional<std::string>();
  }
  if ((*text)->empty()) *text = fmt::format("{} was found damaged", file.native());
  return text;
}

std::filesystem::path aside_of(const std::filesystem::path& file) { return beside(file, ".corrupt"); }

// Moves the file first, and removes the note last. A log without its file is harmless: SQLite removes it when
// it creates a new file. It would apply a log that is already at FILE.corrupt to the moved file.
base::Result<> set_aside(const std::filesystem::path& file) {
  base::PosixFileSystem files;
  const std::filesystem::path aside = aside_of(file);
  if (is_there(file)) {
    if (auto removed = remove_beside(files, aside, {"-wal", "-journal"}); !removed) return removed;
  }
  for (const char* const suffix : {"", "-wal", "-journal"}) {
    if (auto renamed = rename_if_there(files, beside(file, suffix), beside(aside, suffix)); !renamed)
      return renamed;
  }
  if (auto removed = remove_beside(files, file, {"-shm", ".damaged"}); !removed) return removed;
  return files.sync_directory(file.parent_path());
}

std::filesystem::path rebuilt_of(const std::filesystem::path& file) { return beside(file, ".new"); }

base::Result<> drop_rebuilt(const std::filesystem::path& file) {
  base::PosixFileSystem files;
  return remove_beside(files, rebuilt_of(file),
                       {"", "-wal", "-journal", "-shm", ".commit", ".commit.tmp", ".damaged"});
}

base::Result<> put_rebuilt_in_place(const std::filesystem::path& file) {
  base::PosixFileSystem files;
  const std::filesystem::path rebuilt = rebuilt_of(file);
  if (!is_empty_or_none(beside(rebuilt, "-wal"))) {
    return base::Error(std::make_error_code(std::errc::device_or_resource_busy),
                       fmt::format("the log of {} could not be emptied; see whether another program reads it",
                                   rebuilt.native()));
  }
  if (auto kept = keep_aside(files, file); !kept) return kept;
  // Files of the replaced database must not be used for the new one. A reader that opens the replaced one in
  // the meantime creates its -shm again.
  if (auto removed = remove_beside(files, file, {"-shm", ".damaged"}); !removed) return removed;
  if (auto synced = files.sync_directory(file.parent_path()); !synced) return synced;
  if (auto renamed = files.rename(rebuilt, file); !renamed) return renamed;
  if (auto removed = remove_beside(files, file, {"-shm"}); !removed) return removed;
  if (auto renamed = rename_if_there(files, beside(rebuilt, ".commit"), beside(file, ".commit")); !renamed)
    return renamed;
  if (auto dropped = drop_rebuilt(file); !dropped) return dropped;
  return files.sync_directory(file.parent_path());
}

bool is_disk_full(const std::filesystem::path& file) {
  const auto space = base::PosixFileSystem().space(file.parent_path());
  return space && space->free_bytes < space_bytes_least;
}

bool has_space_for(const std::filesystem::path& file, std::uint64_t bytes) {
  const auto space = base::PosixFileSystem().space(file.parent_path());
  return !space || space->free_bytes >= bytes + std::min(space->bytes / 20, journal_space_max);
}

base::Result<> keep_commit_mark(const std::filesystem::path& file, const CommitMark& mark) {
  base::PosixFileSystem files;
  return base::replace_file_unsynced(files, beside(file, ".commit"),
                                     checked(fmt::format("{} {}", mark.database, mark.number)));
}

base::Result<std::optional<CommitMark>> read_commit_mark(const std::filesystem::path& file) {
  base::PosixFileSystem files;
  const auto read = base::read_if_there(files, beside(file, ".commit"), note_bytes_max);
  if (!read) return read.error();
  const std::string_view line = read->has_value() ? **read : std::string_view();
  const std::string_view text = line.substr(0, line.rfind(' '));
  const std::size_t space = text.find(' ');
  if (line != checked(text) || space == std::string_view::npos) return std::optional<CommitMark>();
  CommitMark mark{std::string(text.substr(0, space))};
  std::from_chars(text.data() + space + 1, text.data() + text.size(), mark.number);
  return std::optional(std::move(mark));
}

bool is_foreign(const std::filesystem::path& file, std::uint32_t application_id) {
  const std::string header = read_header(file);
  if (header.size() < header_bytes || !header.starts_with(sqlite_magic)) return false;
  const auto* const id = reinterpret_cast<const unsigned char*>(&header[68]);
  return boost::endian::load_big_u32(id) != application_id && header[20] != checksum_bytes;
}

}  // namespace spoor::scanner
