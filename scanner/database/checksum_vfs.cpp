#include "scanner/database/checksum_vfs.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <boost/endian/buffers.hpp>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "base/file_system.h"
#include "scanner/database/database_files.h"
#include "scanner/database/log_file.h"
#include "scanner/database/sqlite.h"

namespace spoor::scanner {
namespace {

constexpr int page_bytes = 4096;
constexpr int content_bytes = page_bytes - checksum_bytes;
constexpr int header_bytes_max = 100;  // the most that SQLite reads of a file without its lock
constexpr int reserved_at = 20;

using Stored = boost::endian::little_uint64_buf_t;
using Page = std::array<std::byte, page_bytes>;

// It is followed by the file of the system's VFS, in the memory that SQLite allocates.
struct CheckedFile {
  sqlite3_file base;
  const char* name;  // SQLite's, until the file is closed

  sqlite3_file* below() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

sqlite3_file* below(sqlite3_file* file) { return reinterpret_cast<CheckedFile*>(file)->below(); }

template <auto method, class... Args>
int forward(sqlite3_file* file, Args... args) {
  return (below(file)->pMethods->*method)(below(file), args...);
}

// Whether all of the log's index up to `end` has a place on the disk.
bool has_place(const char* database, sqlite3_int64 end) {
  struct stat status{};
  return ::stat((std::string(database) + "-shm").c_str(), &status) == 0 &&
         sqlite3_int64{status.st_blocks} * 512 >= end;
}

// A write to a mapped page that has no place on the disk ends the process. SQLite gives one to the last bytes
// of each 4 KiB, which is not enough with smaller blocks.
int map_shared(sqlite3_file* file, int region, int bytes, int extend, void volatile** at) {
  const char* const name = reinterpret_cast<CheckedFile*>(file)->name;
  if (is_disk_full(name) && !has_place(name, (sqlite3_int64{region} + 1) * bytes)) return SQLITE_FULL;
  return forward<&sqlite3_io_methods::xShmMap>(file, region, bytes, extend, at);
}

void forward_barrier(sqlite3_file* file) { below(file)->pMethods->xShmBarrier(below(file)); }

bool is_page(int bytes, sqlite3_int64 offset) { return bytes == page_bytes && offset % page_bytes == 0; }

Stored checksum_of(const void* page, sqlite3_int64 offset) {
  return Stored(
      XXH3_64bits_withSeed(page, content_bytes, static_cast<XXH64_hash_t>(offset / page_bytes) + 1));
}

bool is_whole(const std::byte* page, sqlite3_int64 offset) {
  const Stored expected = checksum_of(page, offset);
  return std::equal(expected.data(), expected.data() + checksum_bytes,
                    reinterpret_cast<const unsigned char*>(page) + content_bytes);
}

int read(sqlite3_file* file, void* buffer, int bytes, sqlite3_int64 offset) {
  const int code = forward<&sqlite3_io_methods::xRead>(file, buffer, bytes, offset);
  const std::span found(static_cast<const std::byte*>(buffer), static_cast<std::size_t>(bytes));
  // Beyond the end of the file SQLite expects zeros. A part of a page is damage.
  if (code == SQLITE_IOERR_SHORT_READ && bytes > header_bytes_max) {
    const bool is_nothing = std::ranges::all_of(found, [](std::byte one) { return one == std::byte{}; });
    return is_nothing ? code : SQLITE_CORRUPT;
  }
  if (code != SQLITE_OK || bytes <= header_bytes_max) return code;
  // A damaged header may state another page size.
  return is_page(bytes, offset) && is_whole(found.data(), offset) ? SQLITE_OK : SQLITE_CORRUPT;
}

int write(sqlite3_file* file, const void* buffer, int bytes, sqlite3_int64 offset) {
  const std::span given(static_cast<const std::byte*>(buffer), static_cast<std::size_t>(bytes));
  // Without reserved bytes the checksum would overwrite content.
  const bool has_room = offset != 0 || given[reserved_at] == std::byte{checksum_bytes};
  if (!is_page(bytes, offset) || !has_room) return SQLITE_IOERR_WRITE;
  Page page;
  std::ranges::copy(given, page.begin());
  const Stored checksum = checksum_of(page.data(), offset);
  std::ranges::copy(std::as_bytes(std::span(checksum.data(), checksum_bytes)), page.begin() + content_bytes);
  return forward<&sqlite3_io_methods::xWrite>(file, static_cast<const void*>(page.data()), bytes, offset);
}

// Version 2 has no memory-mapped reads, which would bypass the check.
constexpr sqlite3_io_methods methods{
    .iVersion = 2,
    .xClose = forward<&sqlite3_io_methods::xClose>,
    .xRead = read,
    .xWrite = write,
    .xTruncate = forward<&sqlite3_io_methods::xTruncate, sqlite3_int64>,
    .xSync = forward<&sqlite3_io_methods::xSync, int>,
    .xFileSize = forward<&sqlite3_io_methods::xFileSize, sqlite3_int64*>,
    .xLock = forward<&sqlite3_io_methods::xLock, int>,
    .xUnlock = forward<&sqlite3_io_methods::xUnlock, int>,
    .xCheckReservedLock = forward<&sqlite3_io_methods::xCheckReservedLock, int*>,
    .xFileControl = forward<&sqlite3_io_methods::xFileControl, int, void*>,
    .xSectorSize = forward<&sqlite3_io_methods::xSectorSize>,
    .xDeviceCharacteristics = forward<&sqlite3_io_methods::xDeviceCharacteristics>,
    .xShmMap = map_shared,
    .xShmLock = forward<&sqlite3_io_methods::xShmLock, int, int, int>,
    .xShmBarrier = forward_barrier,
    .xShmUnmap = forward<&sqlite3_io_methods::xShmUnmap, int>,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

// SQLite creates a database with the permissions of the umask, and files beside it with the mode of the
// database.
void create_closed_to_others(const char* name) {
  const int fd = ::open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, base::file_mode);
  if (fd < 0) return;  // it exists, or xOpen returns the error
  // May fail on a file system without modes.
  static_cast<void>(::fchmod(fd, base::file_mode));
  base::give_to_owner_of_folder(fd, name);
  ::close(fd);
}

int open(sqlite3_vfs* /*vfs*/, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  sqlite3_vfs* const system = sqlite3_vfs_find(nullptr);
  if ((flags & SQLITE_OPEN_WAL) != 0) return open_log_file(*system, name, file, flags, flags_out);
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0) return system->xOpen(system, name, file, flags, flags_out);
  file->pMethods = nullptr;
  reinterpret_cast<CheckedFile*>(file)->name = name;
  if ((flags & SQLITE_OPEN_CREATE) != 0 && name != nullptr) create_closed_to_others(name);
  const int code = system->xOpen(system, name, below(file), flags, flags_out);
  // SQLite calls xClose only if pMethods is set.
  if (below(file)->pMethods != nullptr) file->pMethods = &methods;
  return code;
}

// A copy of the system's VFS with another xOpen.
sqlite3_vfs make_vfs() {
  // Otherwise each allocation of each thread takes a lock to be counted. Without effect if a program has used
  // SQLite before.
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  sqlite3_initialize();
  sqlite3_vfs vfs = *sqlite3_vfs_find(nullptr);
  vfs.pNext = nullptr;
  vfs.zName = "spoor-checksum";
  vfs.szOsFile += std::max(static_cast<int>(sizeof(CheckedFile)), log_file_bytes);
  vfs.xOpen = open;
  return vfs;
}

}  // namespace

const char* checksum_vfs() {
  static sqlite3_vfs vfs = make_vfs();
  static const int registered = sqlite3_vfs_register(&vfs, 0);
  return registered == SQLITE_OK ? vfs.zName : "the checksum VFS is missing";
}

void reserve_checksums(SqliteDatabase& database) {
  database.exec("PRAGMA page_size = 4096");  // has an effect on a new database only
  int bytes = checksum_bytes;
  sqlite3_file_control(database.handle(), "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
  // Without it and without a write-ahead log, SQLite does not write freed pages, and may later read a page
  // that was never written.
  database.exec("PRAGMA secure_delete = ON");
}

}  // namespace spoor::scanner
