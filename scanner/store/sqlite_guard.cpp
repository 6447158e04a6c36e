#include "scanner/store/sqlite_guard.h"

#include <fmt/core.h>
#include <sqlite3.h>
#include <sys/statvfs.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/printable.h"
#include "scanner/errors.h"
#include "scanner/store/database_files.h"

namespace spoor::scanner {
namespace {

// SQLite needs a few pages for its log and the log's index, even for reading.
constexpr std::uint64_t space_bytes_least = std::uint64_t{128} << 10U;

bool has_no_space(const std::filesystem::path& folder) {
  struct statvfs found{};
  if (::statvfs(folder.c_str(), &found) != 0) return false;
  const bool has_no_inode = found.f_files > 0 && found.f_favail == 0;
  return has_no_inode || std::uint64_t{found.f_bavail} * found.f_frsize < space_bytes_least;
}

// SQLite reports a full disk as an I/O error unless it writes to the database itself.
std::string advice(int code, const std::filesystem::path& file) {
  const auto folder = file.parent_path();
  const bool may_be_full = code == SQLITE_IOERR || code == SQLITE_CANTOPEN;
  if (code == SQLITE_FULL || (may_be_full && has_no_space(folder))) {
    return fmt::format("; no space left in {}: free some space", base::printable(folder.native()));
  }
  return code == SQLITE_BUSY ? "; another program locked it for too long" : "";
}

}  // namespace

base::Error database_error(std::string_view what, std::string_view file, const SQLite::Exception& exception) {
  const int code = exception.getErrorCode() & 0xff;
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
    return damage_error(file, fmt::format("cannot {}: {}", what, exception.what()));
  }
  return {Errc::database_failed, fmt::format("cannot {} in the scan database {}: {}{}", what, file,
                                             exception.what(), advice(code, file))};
}

}  // namespace spoor::scanner
