#include "cli/scan/after_scan.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "cli/program/daemon_client.h"
#include "cli/program/format.h"
#include "cli/scan/stop_on_signal.h"
#include "cli/usage/usage_report.h"
#include "scanner/errors.h"
#include "scanner/feed/change_feed.h"
#include "scanner/feed/consumers.h"
#include "scanner/report_json.h"
#include "tracker/paths/path.h"

namespace spoor::cli {
namespace {

// The consumer whose position is the last scan of which a hook has received all changes.
constexpr const char* hook_consumer = "exec";
constexpr std::size_t batch_directories_max = 1'000;
constexpr std::size_t batch_bytes_max = std::size_t{128} << 10U;
constexpr std::size_t spare_bytes = 4'096;      // of the system's limit, reserved for what else it counts
constexpr std::size_t argument_pages_max = 32;  // Linux's limit for one argument, its NUL included
// Set for a directory in which more than the entries may have changed: everything, or anything below it.
constexpr std::string_view everything_variable = "SPOOR_EVERYTHING=";
constexpr std::string_view below_variable = "SPOOR_BELOW=";
constexpr std::string_view limit_variables = "SPOOR_LIMIT_";
constexpr std::chrono::seconds limit_command_max{60};

std::size_t argument_bytes(std::string_view argument) { return argument.size() + 1 + sizeof(char*); }

// Of this process, with these in place of all that a hook may get.
std::vector<std::string> environment(std::vector<std::string> variables) {
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable = *at;
    const bool is_of_hook =
        std::ranges::any_of(std::array{everything_variable, below_variable, limit_variables},
                            [&](std::string_view ours) { return variable.starts_with(ours); });
    if (!is_of_hook) variables.emplace_back(variable);
  }
  return variables;
}

// The bytes for the directories of one batch, within the system's limit for all arguments.
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

// "./" keeps a name from being parsed as an option.
std::string argument_of(const std::string& path) {
  if (path.empty()) return "./";
  return (path.front() == '-' ? "./" : "") + path + '/';
}

// The path, or its deepest ancestor, whose argument takes at most `bytes_max`.
std::string_view fitting_path(std::string_view path, std::size_t bytes_max) {
  constexpr std::string_view around = ".//";  // what argument_of() may add
  while (!path.empty() && argument_bytes(path) + around.size() > bytes_max) path = tracker::parent_path(path);
  return path;
}

// What a command of the user gets.
struct Call {
  std::string command;                 // for the shell
  std::vector<std::string> arguments;  // that follow it
  std::vector<std::string> variables;
  std::optional<std::chrono::seconds> time_max;  // then it is killed
};

// The command gets its own process group, so that a signal reaches the children of the shell, too. Its output
// goes to standard error, because standard output is for the report of the scan.
base::Result<pid_t> start(const Call& call) {
  std::vector<std::string> words{"sh", "-c", call.command, "sh"};
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  std::vector<std::string> variables = environment(call.variables);
  const auto argv = pointers(words);
  const auto envp = pointers(variables);
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, "/bin/sh", &actions, &attributes, argv.data(), envp.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return base::system_error(error, "cannot start /bin/sh");
  return pid;
}

// Kills the group of the process after the time, unless it is destroyed before.
std::jthread kill_after(std::chrono::seconds time, pid_t pid) {
  return std::jthread([time, pid](const std::stop_token& ended) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait_for(lock, ended, time, [] { return false; });
    if (!ended.stop_requested()) ::kill(-pid, SIGKILL);
  });
}

// Returns the status of waitpid(2).
int wait_for(pid_t pid, const std::optional<std::chrono::seconds>& time_max, const std::stop_token& stop) {
  {
    const std::stop_callback pass_on(stop, [pid] { ::kill(-pid, SIGTERM); });
    const auto killer = time_max ? std::optional(kill_after(*time_max, pid)) : std::nullopt;
    // WNOWAIT keeps the process id in use until neither can signal it any longer.
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

base::Error canceled(const std::string& what) {
  return {std::make_error_code(std::errc::operation_canceled), what};
}

// `what`, as "the hook", and the command name it in the error.
base::Result<> run_call(std::string_view what, const std::string& command, const Call& call,
                        const std::stop_token& stop) {
  const auto pid = start(call);
  if (!pid) return canceled(fmt::format("cannot run {} '{}': {}", what, command, pid.error().message));
  const int status = wait_for(*pid, call.time_max, stop);
  if (stop.stop_requested()) return canceled(fmt::format("stopped while {} '{}' was running", what, command));
  if (WIFSIGNALED(status)) {
    return canceled(
        fmt::format("{} '{}' was killed by signal {}{}", what, command, WTERMSIG(status),
                    call.time_max ? fmt::format("; after {} s it is killed", call.time_max->count()) : ""));
  }
  if (WEXITSTATUS(status) != 0)
    return canceled(fmt::format("{} '{}' ended with code {}", what, command, WEXITSTATUS(status)));
  return {};
}

base::Error hook_error(const std::string& what) {
  return canceled(what + "; after the next scan, the hook receives all changes since its last success again");
}

class HookRun {
 public:
  HookRun(const std::string& command, std::stop_token stop)
      : command_(command),
        stop_(std::move(stop)),
        bytes_max_(bytes_for_batch(command)),
        argument_max_(std::min(argument_bytes_max(), bytes_max_)) {}

  // Returns false if a batch failed; error() describes it.
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
    if (!batch_.empty()) run(batch_, {});
    batch_.clear();
    bytes_ = 0;
    return !error_;
  }

  bool run_for_everything() {
    run({argument_of("")}, {std::string(everything_variable) + '1'});
    return !error_;
  }

  const std::optional<base::Error>& error() const { return error_; }

 private:
  // Paths below one directory are adjacent in the order of a walk: the directory is passed once.
  bool add_below(std::string above, std::size_t path_bytes) {
    if (below_ == above) return true;
    below_ = std::move(above);
    print_error(
        fmt::format("a changed directory has a path of {} bytes, which is too long for an argument of the "
                    "hook: its ancestor '{}' is passed instead, with {}1",
                    path_bytes, base::printable(*below_), below_variable));
    if (!flush()) return false;
    run({argument_of(*below_)}, {std::string(below_variable) + '1'});
    return !error_;
  }

  void run(const std::vector<std::string>& directories, const std::vector<std::string>& variables) {
    if (stop_.stop_requested()) {
      error_ = hook_error("stopped before the hook received all changes");
      return;
    }
    const auto done = run_call("the hook", command_,
                               // The shell survives SIGTERM, to wait for the command.
                               {.command = "trap : TERM; " + command_ + " \"$@\"",
                                .arguments = directories,
                                .variables = variables,
                                .time_max = std::nullopt},
                               stop_);
    if (!done) error_ = hook_error(done.error().message);
  }

  const std::string& command_;
  const std::stop_token stop_;
  const std::size_t bytes_max_;
  const std::size_t argument_max_;
  std::vector<std::string> batch_;
  std::size_t bytes_ = 0;
  std::optional<std::string> below_;  // passed last, with all below it
  std::optional<base::Error> error_;
};

// Returns whether the changes are known.
base::Result<bool> run_for_changes(HookRun& run, scanner::UsageDatabase& database,
                                   std::optional<std::uint64_t> since, std::uint64_t until) {
  if (!since) return false;
  const auto on_entry = [&](const scanner::FeedEntry& entry) {
    // A deletion is also a change of the parent.
    return !entry.is_there || run.add(entry.path);
  };
  const auto read = scanner::read_changes(database, {.since = *since, .until = until}, on_entry);
  if (!read) return read.error();
  return read->has_value();
}

// The totals of all nodes, and their growth within a day.
base::Result<scanner::Usage> ask_cluster(DaemonClient& daemon, const std::string& path) {
  const auto json = daemon.exchange(
      "GET", "/v1/usage?absent=empty&scope=cluster&depth=0&since=24h&path=" + url_encoded(path));
  if (!json) return json.error();
  return scanner::usage_from_json(*json);
}

void measure(scanner::LimitState& state, const scanner::Usage& usage, std::uint64_t scan) {
  const scanner::UsageEntry& total = usage.total;
  state.complete = usage.is_complete(total);
  // Without all nodes, a limit is exceeded as long as it is not known to be kept.
  state.bytes = state.complete ? total.bytes : std::max(total.bytes, state.bytes);
  state.files = state.complete ? total.files : std::max(total.files, state.files);
  const bool is_growth_known = state.complete && total.growth && total.growth->complete;
  state.growth_per_day = is_growth_known ? std::optional(total.growth->bytes) : std::nullopt;
  state.scan = scan;
  state.forget_notified();
}

base::Result<> run_limit_command(const std::string& command, const std::string& node,
                                 const scanner::LimitState& state, const std::stop_token& stop) {
  const auto variable = [](std::string_view name, std::string_view value) {
    return fmt::format("{}{}={}", limit_variables, name, value);
  };
  return run_call("usage.limit_command", command,
                  {.command = command,
                   .arguments = {},
                   .variables = {variable("NODE", node), variable("PATH", state.limit.path),
                                 variable("SCOPE", state.limit.of_cluster ? "cluster" : "node"),
                                 variable("EXCEEDED", fmt::format("{}", fmt::join(state.exceeded(), " "))),
                                 variable("TEXT", exceeded_limit(state))},
                   .time_max = limit_command_max},
                  stop);
}

}  // namespace

base::Result<> run_scan_hook(const std::string& command, const std::filesystem::path& data_dir,
                             scanner::UsageDatabase& database, std::uint64_t scan, const base::Clock& clock) {
  const auto feed = scanner::feed_id(database);
  if (!feed) return feed.error();
  auto consumers = scanner::Consumers::open(data_dir);
  if (!consumers) return consumers.error();
  const auto since = consumers->position(hook_consumer, *feed);
  if (!since) return since.error();
  const StopOnSignal stop;
  HookRun run(command, stop.token());
  const auto is_known = run_for_changes(run, database, *since, scan);
  if (!is_known) return is_known.error();
  if (!run.error()) {
    static_cast<void>(*is_known ? run.flush() : run.run_for_everything());
  }
  if (run.error()) return *run.error();
  return consumers->commit({hook_consumer, *feed, scan, clock.wall_now()});
}

std::vector<std::string> check_cluster_limits(const GlobalOptions& global, scanner::UsageDatabase& database,
                                              std::uint64_t scan, std::vector<scanner::LimitState>& limits) {
  std::vector<std::string> failures;
  std::optional<base::Result<DaemonClient>> daemon;
  for (scanner::LimitState& state : limits) {
    if (!state.limit.of_cluster) continue;
    if (!daemon) daemon.emplace(DaemonClient::create(global, cluster_timeout));
    const auto usage = *daemon ? ask_cluster(**daemon, state.limit.path) : (*daemon).error();
    if (!usage) {
      // What does not respond is not asked for the others, too.
      failures.push_back(fmt::format("cannot compare the cluster's total of {} with its limit: {}",
                                     path_text(state.limit.path), usage.error().message));
      break;
    }
    measure(state, *usage, scan);
  }
  if (!daemon) return failures;
  if (auto stored = scanner::store_limits(database, limits); !stored)
    failures.push_back(stored.error().message);
  return failures;
}

LimitCommands run_limit_commands(const config::Config& config, scanner::UsageDatabase& database,
                                 std::vector<scanner::LimitState>& limits) {
  LimitCommands commands;
  const StopOnSignal stop;
  for (scanner::LimitState& state : limits) {
    if (config.usage.limit_command.empty() || state.not_notified().empty()) continue;
    const auto done = run_limit_command(config.usage.limit_command, config.node.name, state, stop.token());
    commands.was_stopped = stop.token().stop_requested();
    if (done) {
      const auto names = state.not_notified();
      state.notified.insert(state.notified.end(), names.begin(), names.end());
      if (auto stored = scanner::store_limits(database, limits); !stored)
        commands.failures.push_back(stored.error().message);
    } else {
      commands.failures.push_back(fmt::format("the limit of {}: {}; it runs again after the next scan",
                                              path_text(state.limit.path), done.error().message));
    }
    if (commands.was_stopped) break;
  }
  return commands;
}

}  // namespace spoor::cli
