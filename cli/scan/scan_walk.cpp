#include "cli/scan/scan_walk.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>

#include "base/data_dir.h"
#include "base/printable.h"
#include "base/standard_streams.h"
#include "cli/program/daemon_client.h"
#include "cli/program/format.h"
#include "cli/scan/stop_on_signal.h"
#include "config/derived.h"
#include "peer/http/watch_report.h"
#include "scanner/feed/change_feed.h"
#include "scanner/feed/consumers.h"
#include "tracker/cycles/ids.h"
#include "tracker/storage/drive_registry.h"

namespace spoor::cli {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds terminal_interval(200);
constexpr std::chrono::minutes log_interval(1);
constexpr std::uint64_t first_scan = 1;
constexpr std::size_t threads_max = 32;
constexpr std::size_t open_directories_wanted = 2048;
constexpr std::chrono::seconds response_margin{20};  // of the daemon, beyond `watch.timeout`

// A walk keeps many directories open. The soft limit protects programs that use select(2), so it is restored
// for the command of a hook.
class RaisedDescriptorLimit {
 public:
  RaisedDescriptorLimit() {
    if (::getrlimit(RLIMIT_NOFILE, &before_) != 0) return;
    rlimit raised = before_;
    raised.rlim_cur = raised.rlim_max;
    is_raised_ = ::setrlimit(RLIMIT_NOFILE, &raised) == 0;
  }
  RaisedDescriptorLimit(const RaisedDescriptorLimit&) = delete;
  RaisedDescriptorLimit& operator=(const RaisedDescriptorLimit&) = delete;
  ~RaisedDescriptorLimit() {
    if (is_raised_) static_cast<void>(::setrlimit(RLIMIT_NOFILE, &before_));
  }

  // The limit of open directories: at most half of all descriptors.
  std::size_t directories_max() const {
    return std::min<std::size_t>((is_raised_ ? before_.rlim_max : before_.rlim_cur) / 2,
                                 open_directories_wanted);
  }

 private:
  rlimit before_{};
  bool is_raised_ = false;
};

// A drive whose identity differs from the one that the daemon registered for its path is not walked.
std::vector<scanner::Drive> drives_of(const config::Config& config) {
  base::PosixFileSystem files;
  tracker::DriveRegistry registry(files, config.node.data_dir);
  // The daemon also reports a damaged registry. check() refuses drives that carry no identity of their own.
  static_cast<void>(registry.load(config.drives));
  std::vector<scanner::Drive> drives;
  drives.reserve(config.drives.size());
  for (const auto& path : config.drives) {
    const auto identity = registry.check(path);
    drives.push_back({.path = path,
                      .refused = identity ? std::string() : identity.error().message,
                      .identity = registry.id_of(path)});
  }
  return drives;
}

// Each drive has its own queue: two threads for each drive, even with fewer processors.
std::size_t threads_of(const config::Config& config) {
  if (config.scan.threads != 0) return config.scan.threads;
  const std::size_t processors = std::max(std::thread::hardware_concurrency(), 2U);
  return std::min<std::size_t>(std::max(processors, 2 * config.drives.size()), threads_max);
}

base::Result<std::optional<std::uint64_t>> oldest_unread(const config::Config& config,
                                                         scanner::UsageDatabase& database) {
  auto consumers = scanner::Consumers::open(config.node.data_dir);
  if (!consumers) return consumers.error();
  const auto id = scanner::feed_id(database);
  if (!id) return id.error();
  return consumers->oldest_unread(*id);
}

scanner::ScanOptions scan_options(const config::Config& config, bool full) {
  scanner::ScanOptions options{.drives = drives_of(config),
                               .rules = config::namespace_rules(config),
                               .full = full,
                               .max_dirs_per_second = config.scan.max_dirs_per_second,
                               .threads = threads_of(config),
                               .audit_period = config.scan.audit_period,
                               .file_feed = config.scan.file_feed};
  if (config.scan.daemons == config::Daemons::own) options.own_marks_of = config.node.name;
  if (config.usage.owners) options.owners_depth = config.history.depth;
  options.history.keep = config.history.keep;
  options.history.depth = config.history.depth;
  options.history.prefixes = config.history.prefixes;
  for (const config::UsageLimit& limit : config.usage.limits)
    options.limits.push_back(
        {limit.path, limit.bytes, limit.files, limit.growth_per_day_bytes, limit.cluster});
  return options;
}

}  // namespace

std::string progress_text(const scanner::Progress& progress, nanoseconds walked_for) {
  const double seconds = std::chrono::duration<double>(walked_for).count();
  std::string text = with_commas(progress.figures.dirs_walked) + " directories read";
  if (seconds <= 0) return text;
  const double rate = static_cast<double>(progress.figures.dirs_walked) / seconds;
  text += fmt::format(", {}/s", with_commas(static_cast<std::uint64_t>(rate)));
  if (progress.dirs_known == 0 || progress.dirs_done == 0) return text;
  const double done = static_cast<double>(progress.dirs_done) / static_cast<double>(progress.dirs_known);
  if (done >= 1) return text;  // more directories than before
  const auto left = std::chrono::duration_cast<nanoseconds>(walked_for * ((1 - done) / done));
  return text + fmt::format("; {:.0f} %, {} left", done * 100, human_duration(left));
}

ScanProgress::ScanProgress(const base::Clock& clock, Form form, Write write)
    : clock_(clock), form_(form), write_(std::move(write)) {}

void ScanProgress::report(const scanner::Progress& progress) {
  const auto now = clock_.steady_now();
  if (!started_at_) reported_at_ = *(started_at_ = now);
  const nanoseconds interval =
      form_ == Form::terminal ? nanoseconds(terminal_interval) : nanoseconds(log_interval);
  if (now - reported_at_ < interval) return;
  reported_at_ = now;
  const std::string text = progress_text(progress, now - *started_at_);
  is_line_open_ = form_ == Form::terminal;
  write_(is_line_open_ ? "\r" + text + "\x1b[K" : "spoor: " + text + "\n");
}

void ScanProgress::end() {
  if (std::exchange(is_line_open_, false)) write_("\r\x1b[K");
}

ScanWalk::ScanWalk(const GlobalOptions& global, const config::Config& config, const base::Clock& clock,
                   scanner::UsageDatabase& database, bool full, std::optional<ScanProgress::Form> progress)
    : global_(global),
      config_(config),
      clock_(clock),
      database_(database),
      progress_(progress),
      options_(scan_options(config, full)) {
  const auto unread = oldest_unread(config, database);
  // A consumer may be far behind: all changes are kept, up to the bound.
  options_.oldest_unread = unread ? *unread : first_scan;
  if (!unread) {
    note_ = fmt::format(
        "no change was removed from the feed, because the positions of its consumers are unknown: {}",
        unread.error().message);
  }
}

base::Result<std::optional<scanner::ScanInput>> ScanWalk::find_unfinished() {
  return scanner::find_unfinished(database_, options_);
}

base::Result<scanner::ScanReport> ScanWalk::run(const scanner::ScanInput& input) {
  std::error_code failure;  // of 1.0.0, which kept there what a killed scan had read
  std::filesystem::remove_all(config_.node.data_dir / base::data_dir::unfinished_of_1_0_0, failure);
  const StopOnSignal stop;
  const RaisedDescriptorLimit descriptors;
  options_.open_directories_max = descriptors.directories_max();
  scanner::SystemWaiter waiter;
  const scanner::PosixDirectoryReader reader;
  std::optional<ScanProgress> progress;
  std::function<void(const scanner::Progress&)> on_progress;
  if (progress_) {
    progress.emplace(clock_, *progress_, [](std::string_view text) {
      base::write_to_standard_error(text);  // may fail
    });
    on_progress = [&](const scanner::Progress& now) { progress->report(now); };
  }
  auto report = scanner::run_scan(database_, options_, input,
                                  {.reader = reader,
                                   .clock = clock_,
                                   .waiter = waiter,
                                   .stop = stop.token(),
                                   .progress = on_progress,
                                   .stamp_drive = std::bind_front(&ScanWalk::stamp_drive, this)});
  if (progress) progress->end();
  was_stopped_ = stop.token().stop_requested();
  return report;
}

base::Result<> ScanWalk::synchronise() {
  const auto watched = config::watched_drives(config_);
  if (watched.empty()) return {};
  auto daemon = DaemonClient::create(global_, config_.watch.timeout + response_margin);
  if (!daemon) return daemon.error();
  peer::SyncRequest request{
      .cluster = config_.node.cluster, .node = config_.node.name, .timeout = config_.watch.timeout};
  for (const auto& path : watched) request.drives.push_back(path.native());
  unwatched_.clear();
  for (const peer::DriveSync& sync : peer::synchronise(daemon->transport(), daemon->endpoint(), request)) {
    auto& drive =
        *std::ranges::find(options_.drives, std::filesystem::path(sync.drive), &scanner::Drive::path);
    const bool is_walked =
        sync.error.empty() || options_.full || config_.watch.unwatched == config::Unwatched::walk;
    drive.gap = sync.gap.id;
    drive.gap_reason = sync.error.empty() ? sync.gap.reason
                       : is_walked        ? "it is not watched: " + sync.error
                                          : "";
    if (!is_walked)
      unwatched_.push_back(fmt::format("{} is not watched: {}", base::printable(sync.drive), sync.error));
  }
  return {};
}

// The daemon writes to the drives, a scan does not.
bool ScanWalk::stamp_drive(const std::filesystem::path& drive, const std::string& stamp,
                           const std::string& before) const {
  auto daemon = DaemonClient::create(global_, response_margin);
  return daemon && daemon->exchange(
                       "POST", fmt::format("/v1/drives/stamp?cluster={}&node={}&path={}&stamp={}&before={}",
                                           url_encoded(config_.node.cluster), url_encoded(config_.node.name),
                                           url_encoded(drive.native()), stamp, before));
}

}  // namespace spoor::cli
