#include "cli/scan_hook.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/format.h"
#include "cli/stop_on_signal.h"
#include "scanner/change_feed.h"
#include "scanner/consumers.h"
#include "scanner/errors.h"
#include "tracker/path.h"

namespace spoor::cli {
namespace {

constexpr std::size_t batch_directories_max = 1'000;
constexpr std::size_t batch_bytes_max = std::size_t{128} << 10U;
constexpr std::size_t spare_bytes = 4'096;      // of what the system allows, for whatever it counts besides
constexpr std::size_t argument_pages_max = 32;  // what Linux allows for one argument, its NUL included
constexpr std::string_view everything_variable = "SPOOR_EVERYTHING=";
constexpr std::string_view below_variable = "SPOOR_BELOW=";

// What may have changed of the directories that the command is given.
enum class Extent {
  entries,     // Their own entries.
  below,       // Anything below them, too.
  everything,  // All there is.
};

std::size_t argument_bytes(std::string_view argument) { return argument.size() + 1 + sizeof(char*); }

std::vector<std::string> environment(Extent extent) {
  std::vector<std::string> variables;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable = *at;
    if (!variable.starts_with(everything_variable) && !variable.starts_with(below_variable))
      variables.emplace_back(variable);
  }
  if (extent == Extent::everything) variables.push_back(std::string(everything_variable) + "1");
  if (extent == Extent::below) variables.push_back(std::string(below_variable) + "1");
  return variables;
}

// What the directories of one batch may take of what the system allows for all arguments.
std::size_t bytes_for_batch(const std::string& command) {
  const long allowed = ::sysconf(_SC_ARG_MAX);
  std::size_t taken = spare_bytes + argument_bytes(command);
  for (char** at = environ; *at != nullptr; ++at) taken += argument_bytes(*at);
  if (allowed <= 0) return batch_bytes_max;
  const auto all = static_cast<std::size_t>(allowed);
  return std::min(batch_bytes_max, all > taken ? all - taken : 0);
}

std::size_t argument_bytes_max() {
  const long page = ::sysconf(_SC_PAGESIZE);
  return argument_pages_max * (page > 0 ? static_cast<std::size_t>(page) : 4096);
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  all.reserve(strings.size() + 1);
  for (std::string& each : strings) all.push_back(each.data());
  all.push_back(nullptr);
  return all;
}

// No name is taken for an option.
std::string argument_of(const std::string& path) {
  if (path.empty()) return "./";
  return (path.front() == '-' ? "./" : "") + path + '/';
}

// The path, or the deepest of those above it, whose argument takes no more than `bytes_max`.
std::string_view fitting_path(std::string_view path, std::size_t bytes_max) {
  constexpr std::string_view around = ".//";  // what argument_of() may add
  while (!path.empty() && argument_bytes(path) + around.size() > bytes_max) path = tracker::parent_path(path);
  return path;
}

// A process group of its own, so that a signal reaches what the shell started, too. Its output goes to
// standard error: the scan's own report has standard output for itself.
class SpawnSettings {
 public:
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, STDERR_FILENO, STDOUT_FILENO);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

base::Result<pid_t> start(const std::string& command, const std::vector<std::string>& directories,
                          Extent extent) {
  // The shell outlives a stop, to wait for what it runs.
  std::vector<std::string> words{"sh", "-c", "trap : TERM; " + command + " \"$@\"", "sh"};
  words.insert(words.end(), directories.begin(), directories.end());
  std::vector<std::string> variables = environment(extent);
  const SpawnSettings settings;
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, "/bin/sh", settings.actions(), settings.attributes(),
                                  pointers(words).data(), pointers(variables).data());
  if (error != 0) return base::system_error(error, "cannot start /bin/sh");
  return pid;
}

// Its status, as waitpid(2) gives it.
int wait_for(pid_t pid, const std::stop_token& stop) {
  {
    const std::stop_callback pass_on(stop, [pid] { ::kill(-pid, SIGTERM); });
    // It keeps its number until nobody sends signals there any more.
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

base::Error hook_error(const std::string& what) {
  return {std::make_error_code(std::errc::operation_canceled),
          what + "; all that changed since the last time it went well is told again after the next scan"};
}

class HookRun {
 public:
  HookRun(const std::string& command, std::stop_token stop)
      : command_(command),
        stop_(std::move(stop)),
        bytes_max_(bytes_for_batch(command)),
        argument_max_(std::min(argument_bytes_max(), bytes_max_)) {}

  // False where a batch failed; error() says how.
  bool add(const std::string& path) {
    const std::string_view fitting = fitting_path(path, argument_max_);
    if (fitting.size() < path.size()) return add_below(std::string(fitting), path.size());
    std::string argument = argument_of(path);
    const std::size_t bytes = argument_bytes(argument);
    const bool is_full = batch_.size() == batch_directories_max || bytes_ + bytes > bytes_max_;
    if (is_full && !flush()) return false;
    bytes_ += bytes;
    batch_.push_back(std::move(argument));
    return true;
  }

  bool flush() {
    if (!batch_.empty()) run(batch_, Extent::entries);
    batch_.clear();
    bytes_ = 0;
    return !error_;
  }

  bool tell_everything() {
    run({argument_of("")}, Extent::everything);
    return !error_;
  }

  const std::optional<base::Error>& error() const { return error_; }

 private:
  // What lies below one directory comes in one row, in the order of a walk: it is given once.
  bool add_below(std::string above, std::size_t path_bytes) {
    if (below_ == above) return true;
    below_ = std::move(above);
    print_error(
        fmt::format("a changed directory has a path of {} bytes, which is too long for an argument of the "
                    "hook: it is given '{}' "
                    "above it, with {}1",
                    path_bytes, tracker::printable(*below_), below_variable));
    if (!flush()) return false;
    run({argument_of(*below_)}, Extent::below);
    return !error_;
  }

  void run(const std::vector<std::string>& directories, Extent extent) {
    if (stop_.stop_requested()) {
      error_ = hook_error("stopped before all was told to the hook");
      return;
    }
    const auto pid = start(command_, directories, extent);
    if (!pid) {
      error_ = hook_error(fmt::format("the hook '{}' did not run: {}", command_, pid.error().message));
      return;
    }
    const int status = wait_for(*pid, stop_);
    if (stop_.stop_requested()) {
      error_ = hook_error(fmt::format("stopped, and the hook '{}' with it", command_));
    } else if (WIFSIGNALED(status)) {
      error_ = hook_error(fmt::format("the hook '{}' was ended by signal {}", command_, WTERMSIG(status)));
    } else if (WEXITSTATUS(status) != 0) {
      error_ = hook_error(fmt::format("the hook '{}' ended with code {}", command_, WEXITSTATUS(status)));
    }
  }

  const std::string& command_;
  const std::stop_token stop_;
  const std::size_t bytes_max_;
  const std::size_t argument_max_;
  std::vector<std::string> batch_;
  std::size_t bytes_ = 0;
  std::optional<std::string> below_;  // given last for what lies below it
  std::optional<base::Error> error_;
};

// Whether what changed is known.
base::Result<bool> tell_changes(HookRun& run, scanner::UsageDatabase& database,
                                std::optional<std::uint64_t> since, std::uint64_t until) {
  if (!since) return false;
  const auto on_entry = [&](const scanner::FeedEntry& entry) {
    // What is gone shows in its parent.
    return !entry.is_there || run.add(entry.path);
  };
  const auto read = scanner::read_changes(database, {.since = *since, .until = until, .after = {}}, on_entry);
  if (!read) return read.error();
  return read->has_value();
}

}  // namespace

base::Result<> run_scan_hook(const ScanHook& hook, scanner::UsageDatabase& database, std::uint64_t scan,
                             const base::Clock& clock) {
  const auto feed = scanner::feed_id(database);
  if (!feed) return feed.error();
  auto consumers = scanner::Consumers::open(hook.data_dir);
  if (!consumers) return consumers.error();
  const auto since = consumers->position(hook_consumer, *feed);
  if (!since) return since.error();
  const StopOnSignal stop;
  HookRun run(hook.command, stop.token());
  const auto is_known = tell_changes(run, database, *since, scan);
  if (!is_known) return is_known.error();
  if (!run.error()) {
    static_cast<void>(*is_known ? run.flush() : run.tell_everything());
  }
  if (run.error()) return *run.error();
  return consumers->commit({hook_consumer, *feed, scan, clock.wall_now()});
}

}  // namespace spoor::cli
