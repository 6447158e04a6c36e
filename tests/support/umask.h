#pragma once

#include <sys/stat.h>

namespace spoor::support {

// Sets the umask of this process and of its children during its lifetime. Not thread-safe.
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
