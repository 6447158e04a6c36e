#include "tests/watch/fd_store.h"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <system_error>
#include <utility>

namespace spoor::watch {
namespace {

constexpr std::size_t descriptors_max = 253;  // SCM_MAX_FD

// Whether both are one open file, as two descriptors of one fanotify group are.
bool is_same_file(int one, int other) {
  const pid_t own = ::getpid();
  return ::syscall(SYS_kcmp, own, own, KCMP_FILE, one, other) == 0;
}

std::vector<int> descriptors_in(msghdr& message) {
  std::vector<int> found;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    found.resize((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(found.data(), CMSG_DATA(part), found.size() * sizeof(int));
  }
  return found;
}

// The value of a variable in a message; empty if it has none.
std::string value_of(const std::string& message, const std::string& variable) {
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(variable + '=')) return line.substr(variable.size() + 1);
  }
  return {};
}

}  // namespace

FdStore::FdStore() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (directory_ / "notify").c_str(), sizeof(address.sun_path) - 1);
  if (::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::system_error(errno, std::system_category(), "bind");
  }
  receiver_ = std::jthread([this] { receive(); });
}

FdStore::~FdStore() {
  ::shutdown(socket_, SHUT_RD);  // ends the receiving
  receiver_.join();
  ::close(socket_);
  discard();
}

std::unique_ptr<support::Daemon> FdStore::start(const std::vector<std::string>& command) {
  std::vector<std::string> words{"env", "NOTIFY_SOCKET=" + (directory_ / "notify").native()};
  const std::scoped_lock lock(mutex_);
  std::string names;
  std::vector<int> descriptors;
  for (const Stored& each : stored_) {
    names += (names.empty() ? "" : ":") + each.name;
    descriptors.push_back(each.descriptor);
  }
  if (!descriptors.empty()) words.push_back("LISTEN_FDNAMES=" + names);
  words.insert(words.end(), command.begin(), command.end());
  return std::make_unique<support::Daemon>(words, descriptors);
}

std::size_t FdStore::ready_count() const {
  const std::scoped_lock lock(mutex_);
  return ready_count_;
}

std::vector<std::string> FdStore::names() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> names;
  for (const Stored& each : stored_) names.push_back(each.name);
  return names;
}

void FdStore::discard() {
  const std::scoped_lock lock(mutex_);
  for (const Stored& each : stored_) ::close(each.descriptor);
  stored_.clear();
}

void FdStore::receive() {
  std::array<char, 4096> text{};
  std::array<char, CMSG_SPACE(descriptors_max * sizeof(int))> control{};
  for (;;) {
    iovec part{text.data(), text.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t size = ::recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    handle(std::string(text.data(), static_cast<std::size_t>(size)), descriptors_in(message));
  }
}

void FdStore::handle(const std::string& message, std::vector<int> descriptors) {
  const std::scoped_lock lock(mutex_);
  const std::string name = value_of(message, "FDNAME");
  if (value_of(message, "FDSTOREREMOVE") == "1") remove(name);
  if (value_of(message, "FDSTORE") == "1") {
    for (const int descriptor : std::exchange(descriptors, {})) store(name, descriptor);
  }
  for (const int descriptor : descriptors) ::close(descriptor);  // of BARRIER=1, whose sender waits for it
  if (value_of(message, "READY") == "1") ++ready_count_;
}

void FdStore::store(const std::string& name, int descriptor) {
  const bool is_known = std::ranges::any_of(
      stored_, [&](const Stored& each) { return is_same_file(each.descriptor, descriptor); });
  if (is_known) {
    ::close(descriptor);
  } else {
    stored_.push_back({name.empty() ? "stored" : name, descriptor});
  }
}

void FdStore::remove(const std::string& name) {
  std::erase_if(stored_, [&](const Stored& each) {
    if (each.name == name) ::close(each.descriptor);
    return each.name == name;
  });
}

}  // namespace spoor::watch
