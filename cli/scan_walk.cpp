#include "cli/scan_walk.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>

#include "base/data_dir.h"
#include "base/printable.h"
#include "base/standard_streams.h"
#include "cli/daemon_client.h"
#include "cli/stop_on_signal.h"
#include "config/derived.h"
#include "peer/http/watch_report.h"
#include "scanner/feed/change_feed.h"
#include "scanner/feed/consumers.h"
#include "tracker/cycles/ids.h"
#include "tracker/storage/drive_registry.h"

namespace spoor::cli {
namespace {

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

}  // namespace

ScanWalk::ScanWalk(const GlobalOptions& global, const config::Config& config, const base::Clock& clock,
                   scanner::UsageDatabase& database, Options options)
    : global_(global), config_(config), clock_(clock), database_(database), progress_(options.progress) {
  options_.drives = drives();
  options_.rules = config::namespace_rules(config);
  if (config.scan.daemons == config::Daemons::own) options_.own_marks_of = config.node.name;
  options_.full = options.full;
  options_.oldest_unread = oldest_unread();
  options_.max_dirs_per_second = config.scan.max_dirs_per_second;
  options_.threads = threads();
  options_.audit_period = config.scan.audit_period;
  options_.file_feed = config.scan.file_feed;
  if (config.usage.owners) options_.owners_depth = config.history.depth;
  options_.history.keep = config.history.keep;
  options_.history.depth = config.history.depth;
  options_.history.prefixes = config.history.prefixes;
  options_.limits = limits();
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
  auto daemon = DaemonClient::create(global_, {.timeout = config_.watch.timeout + response_margin});
  if (!daemon) return daemon.error();
  peer::SyncRequest request{
      .cluster = config_.node.cluster, .node = config_.node.name, .timeout = config_.watch.timeout};
  for (const auto& path : watched) request.drives.push_back(path.native());
  unwatched_.clear();
  for (const peer::DriveSync& sync : peer::synchronise(daemon->transport(), daemon->endpoint(), request)) {
    scanner::Drive& drive =
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
  const auto encoded = [](const std::string& text) {
    return boost::urls::encode(text, boost::urls::unreserved_chars);
  };
  auto daemon = DaemonClient::create(global_, {.timeout = response_margin});
  return daemon && daemon->exchange(
                       "POST", fmt::format("/v1/drives/stamp?cluster={}&node={}&path={}&stamp={}&before={}",
                                           encoded(config_.node.cluster), encoded(config_.node.name),
                                           encoded(drive.native()), stamp, before));
}

// A drive whose identity differs from the one that the daemon registered for its path is not walked.
std::vector<scanner::Drive> ScanWalk::drives() const {
  base::PosixFileSystem files;
  tracker::DriveRegistry registry(files, config_.node.data_dir);
  // The daemon also reports a damaged registry. check() refuses drives that carry no identity of their own.
  static_cast<void>(registry.load(config_.drives));
  std::vector<scanner::Drive> drives;
  drives.reserve(config_.drives.size());
  for (const auto& path : config_.drives) {
    scanner::Drive& drive = drives.emplace_back();
    drive.path = path;
    drive.refused = registry.check(path).error;
    drive.identity = registry.id_of(path);
  }
  return drives;
}

std::vector<scanner::UsageLimit> ScanWalk::limits() const {
  std::vector<scanner::UsageLimit> limits;
  limits.reserve(config_.usage.limits.size());
  for (const config::UsageLimit& limit : config_.usage.limits)
    limits.push_back({limit.path, limit.bytes, limit.files, limit.growth_per_day_bytes, limit.cluster});
  return limits;
}

// Each drive has its own queue: two threads for each drive, even with fewer processors.
std::size_t ScanWalk::threads() const {
  if (config_.scan.threads != 0) return config_.scan.threads;
  const std::size_t processors = std::max(std::thread::hardware_concurrency(), 2U);
  return std::min<std::size_t>(std::max(processors, 2 * config_.drives.size()), threads_max);
}

// If it cannot be read, a consumer may be far behind: all changes are kept, up to the bound.
std::optional<std::uint64_t> ScanWalk::oldest_unread() {
  constexpr std::uint64_t first_scan = 1;
  const auto unread = [&]() -> base::Result<std::optional<std::uint64_t>> {
    auto consumers = scanner::Consumers::open(config_.node.data_dir);
    if (!consumers) return consumers.error();
    const auto id = scanner::feed_id(database_);
    if (!id) return id.error();
    return consumers->oldest_unread(*id);
  }();
  if (unread) return *unread;
  note_ = fmt::format(
      "no change was removed from the feed, because the positions of its consumers are unknown: {}",
      unread.error().message);
  return first_scan;
}

}  // namespace spoor::cli
