#include "base/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
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

// O_NONBLOCK would be simpler, but it belongs to the open file: each program that shares it would get it.
ssize_t write_if_ready(std::string_view piece) {
  const ssize_t sent = ::send(STDERR_FILENO, piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  pollfd ready{STDERR_FILENO, POLLOUT, 0};
  return ::poll(&ready, 1, 0) > 0 ? ::write(STDERR_FILENO, piece.data(), piece.size()) : -1;
}

}  // namespace

void reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0)
      static_cast<void>(::open("/dev/null", O_RDONLY));  // takes the least number
  }
}

void flush_standard_output() {
  constexpr const char* message = "cannot write to standard output";
  if (std::fflush(stdout) != 0 || !is_closable())
    throw std::system_error(errno, std::generic_category(), message);
  if (std::ferror(stdout) != 0) throw std::runtime_error(message);
}

std::size_t write_to_standard_error(std::string_view text) {
  std::size_t written = 0;
  while (written < text.size()) {
    // A pipe that is ready takes PIPE_BUF bytes at once (pipe(7)).
    const ssize_t count = write_if_ready(text.substr(written, PIPE_BUF));
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  return written;
}

}  // namespace spoor::base
