#include "cli/scan_walk.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>

#include "cli/stop_on_signal.h"
#include "config/derived.h"
#include "scanner/feed/change_feed.h"
#include "scanner/feed/consumers.h"
#include "tracker/cycles/ids.h"
#include "tracker/storage/drive_registry.h"
#include "tracker/storage/watch_record.h"

namespace spoor::cli {
namespace {

constexpr std::size_t threads_max = 32;
constexpr std::size_t open_directories_wanted = 2048;
constexpr std::chrono::seconds watch_silence_max{60};  // it writes its record every 10 s

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

// The last gap in what spoor-watch marked on the drive; an empty one if there is none. A record that cannot
// be read may hold another gap in each scan.
tracker::DriveGap last_gap(const base::Result<std::optional<tracker::WatchRecord>>& record,
                           const std::filesystem::path& drive, bool is_watched) {
  if (!record && !is_watched) return {};
  if (!record) return {tracker::InstanceId::random().to_string(), record.error().message, {}};
  const auto* watched = *record ? (*record)->find(drive) : nullptr;
  return watched == nullptr ? tracker::DriveGap() : watched->gap;
}

}  // namespace

ScanWalk::ScanWalk(const config::Config& config, const base::Clock& clock, scanner::UsageDatabase& database,
                   Options options)
    : config_(config),
      clock_(clock),
      database_(database),
      progress_(options.progress),
      unfinished_(scanner::UnfinishedScan::directory_in(config.node.data_dir), files_) {
  options_.drives = drives();
  options_.rules = config::namespace_rules(config);
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
  return scanner::find_unfinished(database_, options_, unfinished_);
}

base::Result<scanner::ScanReport> ScanWalk::run(const scanner::ScanInput& input) {
  const StopOnSignal stop;
  const RaisedDescriptorLimit descriptors;
  options_.open_directories_max = descriptors.directories_max();
  scanner::SystemWaiter waiter;
  const scanner::PosixDirectoryReader reader;
  std::optional<ScanProgress> progress;
  std::function<void(const scanner::Progress&)> on_progress;
  if (progress_) {
    progress.emplace(clock_, *progress_, [](std::string_view text) {
      static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));  // may fail
    });
    on_progress = [&](const scanner::Progress& now) { progress->report(now); };
  }
  auto report = scanner::run_scan(database_, options_, input,
                                  {.reader = reader,
                                   .clock = clock_,
                                   .waiter = waiter,
                                   .stop = stop.token(),
                                   .progress = on_progress,
                                   .unfinished = &unfinished_});
  if (progress) progress->end();
  was_stopped_ = stop.token().stop_requested();
  return report;
}

std::string ScanWalk::watch_note() const {
  if (config::watched_drives(config_).empty()) return {};
  base::PosixFileSystem files;
  const auto record = tracker::read_watch_record(files, config_.node.data_dir);
  const bool is_reported = record && *record && clock_.wall_now() - (*record)->written_at < watch_silence_max;
  return is_reported ? "" : "spoor-watch does not run: what changes on the watched drives is not marked";
}

// A drive whose identity differs from the one that the daemon registered for its path is not walked.
std::vector<scanner::Drive> ScanWalk::drives() const {
  base::PosixFileSystem files;
  tracker::DriveRegistry registry(files, config_.node.data_dir);
  // The daemon also reports a damaged registry. check() refuses drives that carry no identity of their own.
  static_cast<void>(registry.load(config_.drives));
  const auto record = tracker::read_watch_record(files, config_.node.data_dir);
  const auto watched_drives = config::watched_drives(config_);
  std::vector<scanner::Drive> drives;
  drives.reserve(config_.drives.size());
  for (const auto& path : config_.drives) {
    scanner::Drive& drive = drives.emplace_back();
    drive.path = path;
    drive.refused = registry.check(path).error;
    drive.identity = registry.id_of(path);
    const bool is_watched = std::ranges::find(watched_drives, path) != watched_drives.end();
    const tracker::DriveGap gap = last_gap(record, path, is_watched);
    drive.gap = gap.id;
    drive.gap_reason = gap.reason;
  }
  return drives;
}

std::vector<scanner::UsageLimit> ScanWalk::limits() const {
  std::vector<scanner::UsageLimit> limits;
  limits.reserve(config_.usage.limits.size());
  for (const config::UsageLimit& limit : config_.usage.limits)
    limits.push_back({limit.path, limit.bytes, limit.files, limit.growth_per_day_bytes});
  return limits;
}

// Each drive has its own queue: two threads for each drive, even with fewer processors.
std::size_t ScanWalk::threads() const {
  if (config_.scan.threads != 0) return config_.scan.threads;
  const std::size_t processors = std::max(std::thread::hardware_concurrency(), 2U);
  return std::min<std::size_t>(std::max(processors, 2 * config_.drives.size()), threads_max);
}

// If it is unknown, consumers may have to start over; `spoor changes` reports that to them.
std::optional<std::uint64_t> ScanWalk::oldest_unread() const {
  auto consumers = scanner::Consumers::open(config_.node.data_dir);
  const auto id = scanner::feed_id(database_);
  if (!consumers || !id) return std::nullopt;
  const auto unread = consumers->oldest_unread(*id);
  return unread ? *unread : std::nullopt;
}

}  // namespace spoor::cli
