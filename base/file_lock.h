#pragma once

#include <filesystem>
#include <optional>

#include "base/error.h"

namespace spoor::base {

// An exclusive lock on a file (flock(2)). The destructor releases it, and so does the kernel at the end of
// the process.
//
// Not thread-safe.
class FileLock {
 public:
  // Creates the file if it does not exist. Returns nullopt, without waiting, if another process holds the
  // lock.
  static Result<std::optional<FileLock>> try_acquire(const std::filesystem::path& file);

  FileLock(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace spoor::base
