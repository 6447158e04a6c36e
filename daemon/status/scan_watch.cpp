#include "daemon/status/scan_watch.h"

#include <spdlog/spdlog.h>

#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file_system.h"
#include "daemon/process/task.h"
#include "scanner/store/usage_database.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

constexpr std::uint64_t scans_max = 1'000;  // between two scrapes: ten days, with a scan every 15 minutes

// `logged`: the error as it was logged last; empty if there was none.
void log_once(std::string& logged, const auto& result, std::string_view consequence) {
  const std::string error = result ? "" : result.error().message;
  if (!error.empty() && error != logged) spdlog::error("{}: {}", consequence, error);
  logged = error;
}

struct Scans {
  std::vector<scanner::ScanRecord> records;  // newest first
  base::Result<std::vector<scanner::LimitState>> limits;
};

// Nothing: there is no database.
base::Result<std::optional<Scans>> load_scans(const std::filesystem::path& database) {
  auto opened = scanner::UsageDatabase::open_read_only(database);
  if (!opened && opened.error().code == std::errc::no_such_file_or_directory) return std::optional<Scans>();
  if (!opened) return opened.error();
  auto records = opened->scans(scans_max, 0);
  if (!records) return records.error();
  return std::optional(Scans{*std::move(records), scanner::read_limits(*opened)});
}

}  // namespace

struct ScanWatch::Loaded {
  base::Result<std::optional<Scans>> scans;
  base::Result<std::optional<scanner::PublishRecord>> publish;
  std::optional<std::filesystem::space_info> space;
};

ScanWatch::ScanWatch(asio::io_context& context, asio::thread_pool& pool, std::filesystem::path database,
                     std::chrono::milliseconds patience)
    : context_(context),
      pool_(pool),
      database_(std::move(database)),
      patience_(patience),
      finished_(context) {}

asio::awaitable<void> ScanWatch::refresh() {
  if (!std::exchange(reading_, true)) {
    finished_.expires_after(patience_);
    asio::co_spawn(context_, read(), rethrow);
  }
  co_await finished_.async_wait(as_result);
}

asio::awaitable<void> ScanWatch::read() {
  auto loading = [database = database_] {
    base::PosixFileSystem files;
    std::error_code error;
    const auto space = std::filesystem::space(database.parent_path(), error);
    return Loaded{load_scans(database), scanner::read_publish_record(files, database.parent_path()),
                  error ? std::nullopt : std::optional(space)};
  };
  const Loaded loaded = co_await run_on(pool_, std::move(loading));
  take(loaded);
  reading_ = false;
  finished_.cancel();
}

void ScanWatch::take(const Loaded& loaded) {
  const auto& scans = loaded.scans;
  log_once(publish_error_, loaded.publish, "the metrics have no figures of spoor-publish");
  figures_.publish = loaded.publish ? *loaded.publish : std::nullopt;
  figures_.space = loaded.space;
  figures_.is_known = true;
  figures_.ok = scans.has_value();
  if (!scans) {
    figures_.has_database = true;
    return;
  }
  const std::optional<Scans>& found = *scans;
  figures_.has_database = found.has_value();
  figures_.last.reset();
  if (found && !found->records.empty()) figures_.last = found->records.front();
  take_limits(found ? found->limits : std::vector<scanner::LimitState>());
  count(found ? found->records : std::vector<scanner::ScanRecord>());
}

// Another version may have stored them. The scans are known all the same.
void ScanWatch::take_limits(const base::Result<std::vector<scanner::LimitState>>& limits) {
  log_once(limits_error_, limits, "the status has no usage.limits until the next scan");
  figures_.limits = limits ? *limits : std::vector<scanner::LimitState>();
}

void ScanWatch::count(const std::vector<scanner::ScanRecord>& scans) {
  const std::uint64_t newest = scans.empty() ? 0 : scans.front().id;
  if (!counted_) counted_ = newest;
  if (newest < *counted_) counted_ = 0;  // the database was rebuilt, and its numbers with it
  for (const scanner::ScanRecord& scan : scans) {
    if (scan.id <= *counted_) break;
    ++figures_.scans;
    figures_.audited += scan.figures.audited;
    figures_.missed += scan.figures.missed;
    figures_.errors += scan.errors;
  }
  counted_ = newest;
}

}  // namespace spoor::daemon
