#pragma once

#include <sys/stat.h>

namespace spoor::support {

// The umask of this process, and of what it starts, while the object lives. For one thread alone.
class Umask {
 public:
  explicit Umask(mode_t mask) : before_(::umask(mask)) {}
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;
  ~Umask() { ::umask(before_); }

 private:
  mode_t before_;
};

}  // namespace spoor::support
