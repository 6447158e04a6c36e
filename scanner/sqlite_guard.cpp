#include "scanner/sqlite_guard.h"

#include <fmt/core.h>
#include <sqlite3.h>

#include "scanner/database_files.h"
#include "scanner/errors.h"

namespace spoor::scanner {
namespace {

std::string_view advice(int code) {
  switch (code) {
    case SQLITE_FULL:
      return "; free some space";
    case SQLITE_BUSY:
      return "; another program has held it for too long";
    default:
      return "";
  }
}

}  // namespace

base::Error database_error(std::string_view what, std::string_view file, const SQLite::Exception& exception) {
  const int code = exception.getErrorCode() & 0xff;
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
    return damage_error(file, fmt::format("cannot {}: {}", what, exception.what()));
  }
  return {Errc::database_failed,
          fmt::format("cannot {} in the scan database {}: {}{}", what, file, exception.what(), advice(code))};
}

}  // namespace spoor::scanner
