#include "cli/scan_walk.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>

#include "cli/stop_on_signal.h"
#include "scanner/change_feed.h"
#include "scanner/consumers.h"
#include "tracker/drive_registry.h"

namespace spoor::cli {
namespace {

constexpr std::size_t threads_max = 32;
constexpr std::size_t open_directories_wanted = 2048;

// A walk has many directories open; the soft limit is meant for programs that use select(2), and for what a
// hook runs.
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

  // How many directories may be open: half of all descriptors.
  std::size_t directories_max() const {
    return std::min<std::size_t>((is_raised_ ? before_.rlim_max : before_.rlim_cur) / 2,
                                 open_directories_wanted);
  }

 private:
  rlimit before_{};
  bool is_raised_ = false;
};

}  // namespace

tracker::NamespaceRules rules_of(const config::Config& config) {
  return tracker::NamespaceRules(
      {config.name_space.exclude, config.name_space.bucket_names == config::BucketNames::s3});
}

ScanWalk::ScanWalk(const config::Config& config, const base::Clock& clock, scanner::UsageDatabase& database,
                   Options options)
    : config_(config),
      clock_(clock),
      database_(database),
      progress_(options.progress),
      unfinished_(scanner::UnfinishedScan::directory_in(config.node.data_dir), files_) {
  options_.drives = drives();
  options_.rules = rules_of(config);
  options_.full = options.full;
  options_.oldest_unread = oldest_unread();
  options_.max_dirs_per_second = config.scan.max_dirs_per_second;
  options_.threads = threads();
  options_.audit_period = config.scan.audit_period;
  options_.file_feed = config.scan.file_feed;
}

base::Result<std::optional<scanner::ScanInput>> ScanWalk::find_unfinished() {
  if (options_.full) return std::optional<scanner::ScanInput>();
  const auto setting = scanner::setting_of_scan(database_, options_);
  if (!setting) return setting.error();
  return unfinished_.find(*setting);
}

base::Result<scanner::ScanReport> ScanWalk::run(const scanner::ScanInput& input) {
  const StopOnSignal stop;
  const RaisedDescriptorLimit descriptors;
  options_.open_directories_max = descriptors.directories_max();
  scanner::SystemWaiter waiter;
  const scanner::PosixDirectoryReader reader;
  std::optional<ScanProgress> progress;
  std::function<void(const scanner::Progress&)> tell;
  if (progress_) {
    progress.emplace(clock_, *progress_, [](std::string_view text) {
      static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));  // a scan does not fail with it
    });
    tell = [&](const scanner::Progress& now) { progress->tell(now); };
  }
  auto report = scanner::run_scan(database_, options_, input,
                                  {.reader = reader,
                                   .clock = clock_,
                                   .waiter = waiter,
                                   .stop = stop.token(),
                                   .progress = tell,
                                   .unfinished = &unfinished_});
  if (progress) progress->end();
  was_stopped_ = stop.token().stop_requested();
  return report;
}

// A drive that is not the one the daemon knows by its path is left alone.
std::vector<scanner::Drive> ScanWalk::drives() const {
  base::PosixFileSystem files;
  tracker::DriveRegistry registry(files, config_.node.data_dir);
  // What it says of a damaged registry the daemon says too; drives without a word of their own are refused.
  static_cast<void>(registry.load(config_.drives));
  std::vector<scanner::Drive> drives;
  drives.reserve(config_.drives.size());
  for (const auto& path : config_.drives) {
    drives.push_back({path, registry.check(path).error, registry.id_of(path)});
  }
  return drives;
}

// Drives have queues of their own: two for each of them, however few processors there are.
std::size_t ScanWalk::threads() const {
  if (config_.scan.threads != 0) return config_.scan.threads;
  const std::size_t processors = std::max(std::thread::hardware_concurrency(), 2U);
  return std::min<std::size_t>(std::max(processors, 2 * config_.drives.size()), threads_max);
}

// Where that can't be told, consumers may have to start over, which they are told.
std::optional<std::uint64_t> ScanWalk::oldest_unread() const {
  auto consumers = scanner::Consumers::open(config_.node.data_dir);
  const auto id = scanner::feed_id(database_);
  if (!consumers || !id) return std::nullopt;
  const auto unread = consumers->oldest_unread(*id);
  return unread ? *unread : std::nullopt;
}

}  // namespace spoor::cli
