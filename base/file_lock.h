#pragma once

#include <filesystem>
#include <optional>

#include "base/error.h"

namespace spoor::base {

// An exclusive lock on a file, held while the object lives; the system drops it with the process,
// however that ends (flock(2)).
//
// Not thread-safe.
class FileLock {
 public:
  // Creates the file if need be. Nothing where another process holds the lock: no waiting.
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
