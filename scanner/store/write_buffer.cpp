#include "scanner/store/write_buffer.h"

#include <cstring>
#include <new>

namespace spoor::scanner {

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

}  // namespace spoor::scanner
