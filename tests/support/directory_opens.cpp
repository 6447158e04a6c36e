#include "tests/support/directory_opens.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace spoor::support {
namespace {

int watch(int queue, const std::filesystem::path& directory) {
  const int number = ::inotify_add_watch(queue, directory.c_str(), IN_OPEN | IN_ONLYDIR);
  if (number < 0) throw std::system_error(errno, std::generic_category(), "watch " + directory.native());
  return number;
}

}  // namespace

DirectoryOpens::DirectoryOpens(const std::vector<std::filesystem::path>& directories)
    : queue_(::inotify_init1(IN_CLOEXEC)) {
  for (const auto& directory : directories) watch(queue_, directory);
  last_watch_ = watch(queue_, "/");
  reader_ = std::jthread([this] { read_events(); });
}

DirectoryOpens::~DirectoryOpens() {
  if (reader_.joinable()) ::inotify_rm_watch(queue_, last_watch_);
  if (reader_.joinable()) reader_.join();
  ::close(queue_);
}

std::uint64_t DirectoryOpens::count() {
  if (reader_.joinable()) {
    ::inotify_rm_watch(queue_, last_watch_);
    reader_.join();
  }
  if (has_lost_some_) throw std::runtime_error("the kernel dropped events: its queue was full");
  return opens_;
}

void DirectoryOpens::read_events() {
  alignas(inotify_event) std::array<char, std::size_t{256} << 10U> buffer;
  for (;;) {
    const ssize_t got = ::read(queue_, buffer.data(), buffer.size());
    if (got <= 0) return;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      const auto& event = *reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += sizeof event + event.len;
      if ((event.mask & IN_Q_OVERFLOW) != 0) has_lost_some_ = true;
      if (event.wd != last_watch_) {
        // An event with a name is about an entry of the directory.
        if ((event.mask & IN_OPEN) != 0 && event.len == 0) ++opens_;
      } else if ((event.mask & IN_IGNORED) != 0) {
        return;
      }
    }
  }
}

}  // namespace spoor::support
