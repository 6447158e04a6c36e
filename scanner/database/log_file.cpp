#include "scanner/database/log_file.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "scanner/database/database_files.h"

namespace spoor::scanner {
namespace {

constexpr int frame_header_bytes = 24;
constexpr std::size_t committed_size_at = 4;
constexpr sqlite3_int64 space_step = 1 << 20;  // so many bytes more need no look at the free space

// It is followed by the file of the system's VFS, in the memory that SQLite allocates.
struct LogFile {
  sqlite3_file base = {};
  WriteBuffer buffer;
  bool is_in_commit_frame = false;  // the page of a frame that commits follows
  const char* name = nullptr;       // SQLite's, until the file is closed
  sqlite3_int64 space_end = space_step;

  sqlite3_file* below() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

LogFile& log_of(sqlite3_file* file) { return *reinterpret_cast<LogFile*>(file); }

template <auto method, class... Args>
int forward(sqlite3_file* file, Args... args) {
  sqlite3_file* const below = log_of(file).below();
  return (below->pMethods->*method)(below, args...);
}

template <auto method, class... Args>
int flush_and_forward(sqlite3_file* file, Args... args) {
  const int code = log_of(file).buffer.flush(log_of(file).below());
  return code == SQLITE_OK ? forward<method, Args...>(file, args...) : code;
}

// What was not flushed is of no commit.
int close(sqlite3_file* file) {
  const int code = forward<&sqlite3_io_methods::xClose>(file);
  std::destroy_at(&log_of(file).buffer);
  return code;
}

int read(sqlite3_file* file, void* to, int bytes, sqlite3_int64 offset) {
  LogFile& log = log_of(file);
  const int code = log.buffer.flush_if_overlapping(log.below(), bytes, offset);
  return code == SQLITE_OK ? forward<&sqlite3_io_methods::xRead>(file, to, bytes, offset) : code;
}

// A large log must not take the space of the daemon's journal.
bool has_space(LogFile& log, sqlite3_int64 end) {
  if (end <= log.space_end) return true;
  log.space_end = end + space_step;
  return has_space_for(log.name, space_step);
}

// Other connections read what was committed, whether it is synced or not. The header of a frame that commits
// has the size of the database after it (https://sqlite.org/fileformat2.html#wal_file_format).
int write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  LogFile& log = log_of(file);
  if (!has_space(log, offset + bytes)) return SQLITE_FULL;
  const int code = log.buffer.write(log.below(), from, bytes, offset);
  const bool is_end_of_commit = std::exchange(log.is_in_commit_frame, false);
  if (bytes == frame_header_bytes) {
    const std::span given(static_cast<const std::byte*>(from), frame_header_bytes);
    const auto size = given.subspan<committed_size_at, 4>();
    log.is_in_commit_frame = std::ranges::any_of(size, [](std::byte one) { return one != std::byte{}; });
  }
  return code == SQLITE_OK && is_end_of_commit ? log.buffer.flush(log.below()) : code;
}

constexpr sqlite3_io_methods methods{
    .iVersion = 1,
    .xClose = close,
    .xRead = read,
    .xWrite = write,
    .xTruncate = flush_and_forward<&sqlite3_io_methods::xTruncate, sqlite3_int64>,
    .xSync = flush_and_forward<&sqlite3_io_methods::xSync, int>,
    .xFileSize = flush_and_forward<&sqlite3_io_methods::xFileSize, sqlite3_int64*>,
    .xLock = forward<&sqlite3_io_methods::xLock, int>,
    .xUnlock = forward<&sqlite3_io_methods::xUnlock, int>,
    .xCheckReservedLock = forward<&sqlite3_io_methods::xCheckReservedLock, int*>,
    .xFileControl = forward<&sqlite3_io_methods::xFileControl, int, void*>,
    .xSectorSize = forward<&sqlite3_io_methods::xSectorSize>,
    .xDeviceCharacteristics = forward<&sqlite3_io_methods::xDeviceCharacteristics>,
    .xShmMap = nullptr,
    .xShmLock = nullptr,
    .xShmBarrier = nullptr,
    .xShmUnmap = nullptr,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

}  // namespace

int WriteBuffer::write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  const bool follows = size_ > 0 && offset == offset_ + size_ && bytes <= bytes_max - size_;
  if (!follows) {
    if (const int code = flush(file); code != SQLITE_OK) return code;
    if (!bytes_) bytes_.reset(new (std::nothrow) std::byte[bytes_max]);
    if (!bytes_ || bytes > bytes_max) return write_through(file, from, bytes, offset);
    offset_ = offset;
  }
  std::memcpy(&bytes_[static_cast<std::size_t>(size_)], from, static_cast<std::size_t>(bytes));
  size_ += bytes;
  return failure_;
}

int WriteBuffer::flush(sqlite3_file* file) {
  if (size_ == 0) return failure_;
  const int code = write_through(file, bytes_.get(), size_, offset_);
  if (code == SQLITE_OK) size_ = 0;
  return code;
}

int WriteBuffer::flush_if_overlapping(sqlite3_file* file, int bytes, sqlite3_int64 offset) {
  const bool overlaps = offset < offset_ + size_ && offset_ < offset + bytes;
  return overlaps ? flush(file) : SQLITE_OK;
}

int WriteBuffer::write_through(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  if (failure_ == SQLITE_OK) failure_ = file->pMethods->xWrite(file, from, bytes, offset);
  return failure_;
}

const int log_file_bytes = static_cast<int>(sizeof(LogFile));

int open_log_file(sqlite3_vfs& system, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  LogFile& log = log_of(file);
  file->pMethods = nullptr;
  const int code = system.xOpen(&system, name, log.below(), flags, flags_out);
  // SQLite calls xClose only if pMethods is set.
  if (log.below()->pMethods == nullptr) return code;
  std::construct_at(&log);
  log.name = name;
  file->pMethods = &methods;
  return code;
}

}  // namespace spoor::scanner
