#include "base/standard_streams.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>

namespace spoor::base {
namespace {

// Some file systems report at the close that they could not write (close(2)).
bool is_closable() {
  const int copy = ::dup(STDOUT_FILENO);
  return copy < 0 || ::close(copy) == 0;
}

}  // namespace

void flush_standard_output() {
  constexpr const char* message = "cannot write to standard output";
  if (std::fflush(stdout) != 0 || !is_closable())
    throw std::system_error(errno, std::generic_category(), message);
  if (std::ferror(stdout) != 0) throw std::runtime_error(message);
}

}  // namespace spoor::base
