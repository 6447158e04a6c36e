#include "cli/child_calls.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>

#include "base/file_system.h"

namespace spoor::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Child {
  pid_t pid = -1;
  base::Descriptor output;
  std::string result = {};
  bool is_over = false;  // its output has ended
};

// Never returns. Does not hold the output of this program open: the child may outlive it.
[[noreturn]] void run_child(const std::function<std::string()>& call, int output) {
  if (const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC); null >= 0) {
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, standard);
  }
  std::string result;
  try {
    result = call();
  } catch (const std::exception&) {
    ::_exit(EXIT_FAILURE);
  }
  for (std::size_t sent = 0; sent < result.size();) {
    const ssize_t count = ::write(output, result.data() + sent, result.size() - sent);
    if (count < 0 && errno != EINTR) ::_exit(EXIT_FAILURE);
    sent += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  ::_exit(EXIT_SUCCESS);
}

Child start(const std::function<std::string()>& call) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {.output = base::Descriptor(-1), .is_over = true};
  base::Descriptor output(ends[1]);
  Child child{.output = base::Descriptor(ends[0])};
  child.pid = ::fork();
  if (child.pid == 0) run_child(call, output.get());
  child.is_over = child.pid < 0;
  return child;
}

void read_some(Child& child) {
  std::array<char, 4096> bytes{};
  const ssize_t count = ::read(child.output.get(), bytes.data(), bytes.size());
  if (count < 0 && errno == EINTR) return;
  child.is_over = count <= 0;
  if (count > 0) child.result.append(bytes.data(), static_cast<std::size_t>(count));
}

// Returns once all are over, or at the deadline.
void read_results(std::vector<Child>& children, Clock::time_point deadline) {
  for (;;) {
    std::vector<pollfd> waiting;
    waiting.reserve(children.size());
    for (const Child& child : children) {
      // A negative descriptor is ignored.
      waiting.push_back({.fd = child.is_over ? -1 : child.output.get(), .events = POLLIN, .revents = 0});
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    const bool is_over = std::ranges::all_of(children, &Child::is_over);
    if (is_over || left.count() <= 0) return;
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(left.count())) <= 0) continue;
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (waiting[i].revents != 0) read_some(children[i]);
    }
  }
}

std::optional<std::string> finish(Child& child) {
  if (child.pid < 0) return std::nullopt;
  if (!child.is_over) {
    ::kill(child.pid, SIGKILL);
    ::waitpid(child.pid, nullptr, WNOHANG);
    return std::nullopt;
  }
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS) return std::nullopt;
  return std::move(child.result);
}

}  // namespace

std::vector<std::optional<std::string>> call_in_children(
    const std::vector<std::function<std::string()>>& calls, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  std::vector<Child> children;
  children.reserve(calls.size());
  for (const auto& call : calls) children.push_back(start(call));
  read_results(children, deadline);
  std::vector<std::optional<std::string>> results;
  results.reserve(children.size());
  for (Child& child : children) results.push_back(finish(child));
  return results;
}

}  // namespace spoor::cli
