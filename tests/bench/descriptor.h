// Open files and directories, for what std::filesystem is too slow for.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace spoor::bench {

// Moving leaves the source closed.
class Descriptor {
 public:
  Descriptor() = default;
  // A path below `folder`, or AT_FDCWD. Throws std::system_error.
  Descriptor(int folder, const std::string& path, int flags)
      : number_(::openat(folder, path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (number_ < 0) throw std::system_error(errno, std::system_category(), path);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int number() const { return number_; }

 private:
  int number_ = -1;
};

}  // namespace spoor::bench
