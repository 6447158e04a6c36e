#include "watch/watcher.h"

#include <fmt/core.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "base/printable.h"
#include "config/derived.h"
#include "config/secret_file.h"
#include "peer/http/credentials.h"
#include "peer/http/http_transport.h"
#include "peer/http/send_marks.h"
#include "watch/drive_source.h"
#include "watch/drive_watch.h"

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

constexpr std::uint64_t batch_bytes_max = std::uint64_t{256} << 10U;  // of a request

DriveWatch::Options watch_options(const config::Config& config, const std::filesystem::path& drive) {
  const std::size_t drives = config::watched_drives(config).size();
  return {.drive = drive,
          .batch = config.watch.batch,
          .pending_bytes_max = pending_bytes_max / drives,
          .queue_bytes_max = std::max(queue_bytes_max / drives, queue_bytes_min)};
}

DriveSourceOptions source_options(const config::Config& config, const std::filesystem::path& drive) {
  const std::size_t drives = config::watched_drives(config).size();
  return {.drive = drive, .data_dir = config.node.data_dir, .cache_bytes_max = cache_bytes_max / drives};
}

// The source that an earlier process left for the drive, if it missed nothing.
std::unique_ptr<EventSource> resume(const DriveSourceOptions& options, std::vector<FanotifyGroup>& kept) {
  for (FanotifyGroup& group : kept) {
    const auto note = group.settled();
    if (note && note->drive == options.drive) return resume_drive(options, std::move(group));
  }
  return nullptr;
}

// The descriptors that no drive continues stay with the service manager otherwise.
std::vector<FanotifyGroup> take_kept(const std::vector<std::filesystem::path>& drives) {
  std::vector<FanotifyGroup> usable;
  for (FanotifyGroup& group : FanotifyGroup::take_passed()) {
    const auto note = group.settled();
    if (note && std::ranges::find(drives, note->drive) != drives.end()) {
      usable.push_back(std::move(group));
    } else {
      group.discard();
    }
  }
  return usable;
}

// Sends marks and reports to the daemon of this node, marks in one request or several. After a failure, it
// chooses the endpoint again, and reads the credentials: a Unix socket may exist by then.
//
// Not thread-safe. `config` must outlive it.
class MarkSender final : public MarkSink {
 public:
  explicit MarkSender(const config::Config& config) : config_(config) {}

  // Where other nodes, or drives that are not watched, may rely on the marks, they name no drive.
  base::Result<> send(const std::filesystem::path& drive, const EventMarks& marks) override {
    drive_ = config_.scan.daemons == config::Daemons::own ? drive.native() : "";
    auto sent = connect();
    if (sent) sent = send("dir", marks.of(MarkKind::dir));
    if (sent) sent = send("tree", marks.of(MarkKind::tree));
    if (sent) sent = send("file", marks.of(MarkKind::file));
    if (!sent) transport_.reset();
    return sent;
  }

  base::Result<> report(const peer::WatchedDrive& drive) override {
    if (auto connected = connect(); !connected) return connected;
    const auto response = peer::exchange(*transport_, {daemon_, "POST", "/v1/watch", "application/json",
                                                       peer::watched_drive_json(drive).dump()});
    if (response && response->is_success()) return {};
    transport_.reset();
    if (!response) return response.error();
    return base::Error(std::make_error_code(std::errc::io_error), peer::problem_detail(*response));
  }

 private:
  // At a Unix socket, the kernel identifies the user.
  base::Result<> connect() {
    if (transport_) return {};
    auto daemon = config::own_endpoint(config_);
    if (!daemon) return daemon.error();
    const auto secrets = config::peer_secrets(daemon->is_unix() ? config::Config::Peers() : config_.peers);
    if (!secrets) return secrets.error();
    auto credentials = peer::make_credentials(secrets->secret, secrets->tls);
    if (!credentials) return credentials.error();
    daemon_ = *std::move(daemon);
    transport_ = peer::make_http_transport({.credentials = *std::move(credentials)});
    return {};
  }

  base::Result<> send(const char* kind, const std::set<std::string>& paths) {
    const std::uint64_t bytes_max = std::min(batch_bytes_max, config_.limits.max_body_bytes);
    std::string batch;
    for (const std::string& path : paths) {
      if (!batch.empty() && batch.size() + path.size() + 1 > bytes_max) {
        if (auto sent = send_batch(kind, std::exchange(batch, {})); !sent) return sent;
      }
      batch += path;
      batch += '\0';
    }
    return batch.empty() ? base::Result<>() : send_batch(kind, std::move(batch));
  }

  base::Result<> send_batch(const char* kind, std::string batch) {
    const auto reply = peer::send_marks(*transport_, daemon_, kind, std::move(batch), drive_);
    if (reply.is_acknowledged) return {};
    const auto code = reply.refused ? std::errc::invalid_argument : std::errc::io_error;
    return base::Error(std::make_error_code(code), reply.problem);
  }

  const config::Config& config_;
  std::string drive_;  // that the marks name; empty: none
  base::Endpoint daemon_;
  std::unique_ptr<peer::Transport> transport_;  // null: not connected
};

}  // namespace

std::vector<std::string> check(const config::Config& config) {
  std::vector<std::string> problems;
  for (const std::filesystem::path& drive : config::watched_drives(config)) {
    const auto checked = check_drive(source_options(config, drive));
    if (!checked) problems.push_back(checked.error().message);
  }
  return problems;
}

// The thread of one drive.
class Watcher::Drive {
 public:
  Drive(const config::Config& config, std::filesystem::path drive, const base::Clock& clock,
        std::vector<FanotifyGroup>& kept)
      : path_(std::move(drive)),
        clock_(clock),
        sender_(config),
        watch_(
            watch_options(config, path_),
            [options = source_options(config, path_)] { return open_drive(options); }, sender_, clock,
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
  void wait_until_open() { has_begun_.get_future().wait_for(open_time); }

  bool is_watched() const { return is_watched_; }

 private:
  void run(const std::stop_token& stop) {
    step();
    has_begun_.set_value();
    while (!stop.stop_requested()) {
      wait();
      step();
    }
    const base::SteadyTime give_up_at = clock_.steady_now() + stop_time;
    for (step(); !watch_.is_settled() && clock_.steady_now() < give_up_at; step()) {
      static_cast<void>(::poll(nullptr, 0, to_milliseconds(watch_.due_in())));
    }
  }

  void step() {
    watch_.step();
    is_watched_ = watch_.descriptor() >= 0;
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
  std::promise<void> has_begun_;
  std::atomic<bool> is_watched_ = false;
  std::jthread thread_;
};

Watcher::Watcher(const config::Config& config, const base::Clock& clock) {
  const auto paths = config::watched_drives(config);
  std::vector<FanotifyGroup> kept = take_kept(paths);
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
