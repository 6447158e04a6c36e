#include "scanner/store/checksum_vfs.h"

#include <SQLiteCpp/Database.h>
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
#include <memory>
#include <span>
#include <utility>

#include "base/file_system.h"
#include "scanner/store/write_buffer.h"

namespace spoor::scanner {
namespace {

constexpr int page_bytes = 4096;
constexpr int content_bytes = page_bytes - checksum_bytes;
constexpr int header_bytes_max = 100;  // the most that SQLite reads of a file without its lock
constexpr int reserved_at = 20;
constexpr std::size_t log_header_bytes = 32;
constexpr int frame_header_bytes = 24;  // in a log
constexpr std::size_t committed_size_at = 4;

using Stored = boost::endian::little_uint64_buf_t;
using Page = std::array<std::byte, page_bytes>;

// It is followed by the file of the system's VFS, in the memory that SQLite allocates.
struct BufferedFile {
  sqlite3_file base;
  WriteBuffer buffer;
  bool is_in_commit_frame;  // of a log: the page of a frame that commits follows

  sqlite3_file* below() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

sqlite3_file* below(sqlite3_file* file) { return reinterpret_cast<BufferedFile*>(file)->below(); }
WriteBuffer& buffer_of(sqlite3_file* file) { return reinterpret_cast<BufferedFile*>(file)->buffer; }
bool& is_in_commit_frame(sqlite3_file* file) {
  return reinterpret_cast<BufferedFile*>(file)->is_in_commit_frame;
}

template <auto method, class... Args>
int forward(sqlite3_file* file, Args... args) {
  return (below(file)->pMethods->*method)(below(file), args...);
}

// For what must see, or make durable, all that was written.
template <auto method, class... Args>
int flush_and_forward(sqlite3_file* file, Args... args) {
  const int code = buffer_of(file).flush(below(file));
  return code == SQLITE_OK ? forward<method, Args...>(file, args...) : code;
}

int close(sqlite3_file* file) {
  const int flushed = buffer_of(file).flush(below(file));
  const int closed = forward<&sqlite3_io_methods::xClose>(file);
  std::destroy_at(&buffer_of(file));
  return flushed == SQLITE_OK ? closed : flushed;
}

int read_file(sqlite3_file* file, void* to, int bytes, sqlite3_int64 offset) {
  const int code = buffer_of(file).flush_if_overlapping(below(file), bytes, offset);
  return code == SQLITE_OK ? forward<&sqlite3_io_methods::xRead>(file, to, bytes, offset) : code;
}

int write_file(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  return buffer_of(file).write(below(file), from, bytes, offset);
}

void forward_barrier(sqlite3_file* file) { below(file)->pMethods->xShmBarrier(below(file)); }

// Other connections read what was committed, whether it is synced or not. The header of a frame that commits
// has the size of the database after it (https://sqlite.org/fileformat2.html#wal_file_format).
int write_log(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  const int code = write_file(file, from, bytes, offset);
  const bool is_end_of_commit = std::exchange(is_in_commit_frame(file), false);
  if (bytes == frame_header_bytes) {
    const std::span given(static_cast<const std::byte*>(from), frame_header_bytes);
    const auto size = given.subspan<committed_size_at, 4>();
    is_in_commit_frame(file) = std::ranges::any_of(size, [](std::byte one) { return one != std::byte{}; });
  }
  return code == SQLITE_OK && is_end_of_commit ? buffer_of(file).flush(below(file)) : code;
}

// The log is emptied by its header: the next log overwrites blocks that are allocated already, which makes
// its sync cheaper. Should the zeros not reach the disk, SQLite applies the log once more.
int truncate_log(sqlite3_file* file, sqlite3_int64 bytes) {
  constexpr sqlite3_int64 kept_bytes_max = sqlite3_int64{16} << 20U;
  sqlite3_int64 found = 0;
  const int code = flush_and_forward<&sqlite3_io_methods::xFileSize>(file, &found);
  if (code != SQLITE_OK) return code;
  if (bytes != 0 || found < sqlite3_int64{log_header_bytes} || found > kept_bytes_max)
    return forward<&sqlite3_io_methods::xTruncate>(file, bytes);
  const std::array<std::byte, log_header_bytes> nothing{};
  return forward<&sqlite3_io_methods::xWrite>(file, static_cast<const void*>(nothing.data()),
                                              static_cast<int>(nothing.size()), sqlite3_int64{0});
}

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

int read_page(sqlite3_file* file, void* buffer, int bytes, sqlite3_int64 offset) {
  const int code = read_file(file, buffer, bytes, offset);
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

int write_page(sqlite3_file* file, const void* buffer, int bytes, sqlite3_int64 offset) {
  const std::span given(static_cast<const std::byte*>(buffer), static_cast<std::size_t>(bytes));
  // Without reserved bytes the checksum would overwrite content.
  const bool has_room = offset != 0 || given[reserved_at] == std::byte{checksum_bytes};
  if (!is_page(bytes, offset) || !has_room) return SQLITE_IOERR_WRITE;
  Page page;
  std::ranges::copy(given, page.begin());
  const Stored checksum = checksum_of(page.data(), offset);
  std::ranges::copy(std::as_bytes(std::span(checksum.data(), checksum_bytes)), page.begin() + content_bytes);
  return write_file(file, page.data(), bytes, offset);
}

// Version 2 has no memory-mapped reads, which would bypass the check.
constexpr sqlite3_io_methods database_methods{
    .iVersion = 2,
    .xClose = close,
    .xRead = read_page,
    .xWrite = write_page,
    .xTruncate = flush_and_forward<&sqlite3_io_methods::xTruncate, sqlite3_int64>,
    .xSync = flush_and_forward<&sqlite3_io_methods::xSync, int>,
    .xFileSize = flush_and_forward<&sqlite3_io_methods::xFileSize, sqlite3_int64*>,
    .xLock = forward<&sqlite3_io_methods::xLock, int>,
    .xUnlock = forward<&sqlite3_io_methods::xUnlock, int>,
    .xCheckReservedLock = forward<&sqlite3_io_methods::xCheckReservedLock, int*>,
    .xFileControl = forward<&sqlite3_io_methods::xFileControl, int, void*>,
    .xSectorSize = forward<&sqlite3_io_methods::xSectorSize>,
    .xDeviceCharacteristics = forward<&sqlite3_io_methods::xDeviceCharacteristics>,
    .xShmMap = forward<&sqlite3_io_methods::xShmMap, int, int, int, void volatile**>,
    .xShmLock = forward<&sqlite3_io_methods::xShmLock, int, int, int>,
    .xShmBarrier = forward_barrier,
    .xShmUnmap = forward<&sqlite3_io_methods::xShmUnmap, int>,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

constexpr sqlite3_io_methods make_log_methods() {
  sqlite3_io_methods methods = database_methods;
  methods.iVersion = 1;  // a log has no shared memory of its own
  methods.xRead = read_file;
  methods.xWrite = write_log;
  methods.xTruncate = truncate_log;
  return methods;
}
constexpr sqlite3_io_methods log_methods = make_log_methods();

// SQLite creates a database with the permissions of the umask, and files beside it with the mode of the
// database. Root creates it for the owner of the folder.
void create_closed_to_others(const char* name) {
  const int fd = ::open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, base::file_mode);
  if (fd < 0) return;  // it exists, or xOpen returns the error
  struct stat folder{};
  const std::filesystem::path path(name);
  // May fail on a file system without modes.
  static_cast<void>(::fchmod(fd, base::file_mode));
  if (::geteuid() == 0 && ::stat(path.parent_path().c_str(), &folder) == 0) {
    [[maybe_unused]] const int ignored = ::fchown(fd, folder.st_uid, folder.st_gid);
  }
  ::close(fd);
}

int open(sqlite3_vfs* /*vfs*/, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  sqlite3_vfs* const system = sqlite3_vfs_find(nullptr);
  const bool is_database = (flags & SQLITE_OPEN_MAIN_DB) != 0;
  if (!is_database && (flags & SQLITE_OPEN_WAL) == 0)
    return system->xOpen(system, name, file, flags, flags_out);
  file->pMethods = nullptr;
  if (is_database && (flags & SQLITE_OPEN_CREATE) != 0 && name != nullptr) create_closed_to_others(name);
  const int code = system->xOpen(system, name, below(file), flags, flags_out);
  // SQLite calls xClose only if pMethods is set.
  if (below(file)->pMethods == nullptr) return code;
  std::construct_at(&buffer_of(file));
  is_in_commit_frame(file) = false;
  file->pMethods = is_database ? &database_methods : &log_methods;
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
  vfs.szOsFile += static_cast<int>(sizeof(BufferedFile));
  vfs.xOpen = open;
  return vfs;
}

}  // namespace

const char* checksum_vfs() {
  static sqlite3_vfs vfs = make_vfs();
  static const int registered = sqlite3_vfs_register(&vfs, 0);
  return registered == SQLITE_OK ? vfs.zName : "the checksum VFS is missing";
}

void reserve_checksums(SQLite::Database& database) {
  database.exec("PRAGMA page_size = 4096");  // has an effect on a new database only
  int bytes = checksum_bytes;
  sqlite3_file_control(database.getHandle(), "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
  // Without it and without a write-ahead log, SQLite does not write freed pages, and may later read a page
  // that was never written.
  database.exec("PRAGMA secure_delete = ON");
}

}  // namespace spoor::scanner
