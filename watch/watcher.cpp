#include "watch/watcher.h"

#include <fmt/core.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/printable.h"
#include "config/derived.h"
#include "watch/drive_source.h"
#include "watch/kept_group.h"
#include "watch/mark_sender.h"

namespace spoor::watch {
namespace {

constexpr std::chrono::seconds open_time{10};
constexpr std::chrono::seconds stop_time{20};
// While much changes. The kernel compares each event with those that wait, so a writer pays for a long queue.
constexpr std::chrono::milliseconds read_interval{3};

// Of all drives together.
constexpr std::size_t cache_bytes_max = std::size_t{16} << 20U;
constexpr std::size_t pending_bytes_max = std::size_t{16} << 20U;
constexpr std::uint64_t queue_bytes_max = std::uint64_t{256} << 20U;
constexpr std::uint64_t queue_bytes_min = std::uint64_t{8} << 20U;  // of one drive

DriveWatch::Options watch_options(const config::Config& config, const std::filesystem::path& drive) {
  const std::size_t drives = config::watched_drives(config).size();
  return {.drive = drive,
          .batch = config.watch.batch,
          .pending_bytes_max = pending_bytes_max / drives,
          .queue_bytes_max = std::max(queue_bytes_max / drives, queue_bytes_min)};
}

DriveSource::Options source_options(const config::Config& config, const std::filesystem::path& drive) {
  const std::size_t drives = config::watched_drives(config).size();
  return {.drive = drive, .data_dir = config.node.data_dir, .cache_bytes_max = cache_bytes_max / drives};
}

// The source that an earlier process left for the drive, if it missed nothing.
std::unique_ptr<EventSource> resume(const DriveSource::Options& options, std::vector<KeptGroup>& kept) {
  for (KeptGroup& group : kept) {
    const auto note = group.settled();
    if (note && note->drive == options.drive) return DriveSource::resume(options, std::move(group));
  }
  return nullptr;
}

// The descriptors that no drive continues stay with the service manager otherwise.
std::vector<KeptGroup> take_kept(const std::vector<std::filesystem::path>& drives) {
  std::vector<KeptGroup> usable;
  for (KeptGroup& group : KeptGroup::take_passed()) {
    const auto note = group.settled();
    const bool is_watched = note && std::ranges::find(drives, note->drive) != drives.end();
    if (!is_watched) {
      group.discard();
      continue;
    }
    usable.push_back(std::move(group));
  }
  return usable;
}

}  // namespace

std::vector<std::string> check(const config::Config& config) {
  std::vector<std::string> problems;
  for (const std::filesystem::path& drive : config::watched_drives(config)) {
    const auto checked = DriveSource::check(source_options(config, drive));
    if (!checked) problems.push_back(checked.error().message);
  }
  return problems;
}

// The thread of one drive.
class Watcher::Drive {
 public:
  Drive(const config::Config& config, std::filesystem::path drive, const base::Clock& clock,
        std::vector<KeptGroup>& kept)
      : path_(std::move(drive)),
        clock_(clock),
        sender_(config),
        watch_(
            watch_options(config, path_),
            [options = source_options(config, path_)] { return DriveSource::open(options); }, sender_, clock,
            resume(source_options(config, path_), kept)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

  Drive(const Drive&) = delete;
  Drive& operator=(const Drive&) = delete;
  ~Drive() { request_stop(); }

  void request_stop() {
    thread_.request_stop();
    static_cast<void>(::eventfd_write(wake_.get(), 1));
  }

  // Waits until the drive was opened, or failed to, for the first time, but not for a disk that hangs.
  void wait_until_open() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, open_time, [this] { return has_begun_; });
  }

  bool is_watched() const {
    const std::scoped_lock lock(mutex_);
    return is_watched_;
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      watch_.step();
      publish();
      wait();
    }
    const base::SteadyTime give_up_at = clock_.steady_now() + stop_time;
    for (watch_.step(); !watch_.is_settled() && clock_.steady_now() < give_up_at; watch_.step()) {
      static_cast<void>(::poll(nullptr, 0, to_milliseconds(watch_.due_in())));
    }
    publish();
  }

  void publish() {
    const bool is_watched = watch_.descriptor() >= 0;
    const std::scoped_lock lock(mutex_);
    is_watched_ = is_watched;
    has_begun_ = true;
    changed_.notify_all();
  }

  // Waits for more events, and then for any: events read together cost a fraction of events read one by one,
  // and the kernel joins equal ones meanwhile. The cookie of a scan on an idle drive is read at once.
  void wait() {
    std::array<pollfd, 2> ready = {pollfd{wake_.get(), POLLIN, 0}, pollfd{watch_.descriptor(), POLLIN, 0}};
    if (watch_.is_busy() && ::poll(ready.data(), 1, to_milliseconds(read_interval)) > 0) return;
    static_cast<void>(::poll(ready.data(), ready.size(), to_milliseconds(watch_.due_in())));
  }

  static int to_milliseconds(std::chrono::nanoseconds time) {
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
  }

  const std::filesystem::path path_;
  const base::Clock& clock_;
  MarkSender sender_;
  DriveWatch watch_;
  const base::Descriptor wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool has_begun_ = false;
  bool is_watched_ = false;
  std::jthread thread_;
};

Watcher::Watcher(const config::Config& config, const base::Clock& clock) {
  const auto paths = config::watched_drives(config);
  std::vector<KeptGroup> kept = take_kept(paths);
  for (const std::filesystem::path& path : paths) drives_.emplace_back(config, path, clock, kept);
  for (Drive& drive : drives_) drive.wait_until_open();
}

Watcher::~Watcher() {
  for (Drive& drive : drives_) drive.request_stop();
}

std::string Watcher::status_line() const {
  const auto watched =
      std::count_if(drives_.begin(), drives_.end(), [](const Drive& drive) { return drive.is_watched(); });
  return fmt::format("watching {} of {} drive{}", watched, drives_.size(), drives_.size() == 1 ? "" : "s");
}

}  // namespace spoor::watch
