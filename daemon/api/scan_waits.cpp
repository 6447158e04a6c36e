#include "daemon/api/scan_waits.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/data_dir.h"
#include "base/file_system.h"
#include "daemon/api/api_message.h"
#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

constexpr std::size_t waits_max = 64;
constexpr std::size_t starts_max = 16;
constexpr std::chrono::seconds news_period{1};
constexpr std::chrono::seconds scan_start_max{10};
constexpr std::chrono::milliseconds scan_start_period{100};

Problem too_many_waits(std::size_t most) {
  return {
      503, "overloaded",
      fmt::format("too many requests wait for a scan, of this client or of all ({}); try again later", most)};
}

}  // namespace

ScanWaits::ScanWaits(const std::filesystem::path& database, boost::asio::thread_pool& pool,
                     const base::Clock& clock, Timers& timers)
    : scan_request_(database.parent_path() / base::data_dir::scan_request),
      pool_(pool),
      clock_(clock),
      timers_(timers),
      waiters_(waits_max),
      starters_(starts_max) {
  std::error_code error;  // of a daemon that was killed meanwhile, it would start a scan some day
  std::filesystem::remove(scan_request_, error);
}

void ScanWaits::stop() {
  is_stopped_ = true;
  for (Timer* const wait : waits_) wait->cancel();
}

boost::asio::awaitable<void> ScanWaits::wait_until(std::function<bool()> is_so,
                                                   std::chrono::milliseconds period,
                                                   std::chrono::milliseconds time_max) {
  const base::SteadyTime until = clock_.steady_now() + time_max;
  const std::unique_ptr<Timer> timer = timers_.make();
  const auto forget = [this](Timer* wait) { waits_.erase(wait); };
  waits_.insert(timer.get());
  const std::unique_ptr<Timer, decltype(forget)> registered(timer.get(), forget);
  bool is_over = false;
  while (!is_over && !is_stopped_) {
    std::function<bool()> asking = is_so;
    is_over = co_await run_on(pool_, std::move(asking));
    if (is_over || is_stopped_ || clock_.steady_now() >= until) break;
    is_over = !co_await timer->wait(period);
  }
}

boost::asio::awaitable<std::optional<Problem>> ScanWaits::wait_for_news(const HttpRequest& request,
                                                                        std::string caller,
                                                                        std::function<bool()> has_news,
                                                                        std::chrono::milliseconds time_max) {
  const CallerQueue::Place place(waiters_, std::move(caller));
  if (!place.is_held()) co_return too_many_waits(waits_max);
  std::function<bool()> is_over = [&request, has_news = std::move(has_news)] {
    return (request.is_abandoned && request.is_abandoned()) || has_news();
  };
  co_await wait_until(std::move(is_over), news_period, time_max);
  co_return std::nullopt;
}

boost::asio::awaitable<HttpResponse> ScanWaits::start_scan(const HttpRequest& request, std::string caller) {
  if (auto unknown = unknown_parameter(request, {})) co_return to_response(*unknown);
  const CallerQueue::Place place(starters_, std::move(caller));
  if (!place.is_held()) co_return to_response(too_many_waits(starts_max));
  ++starting_;  // from before the file is made: no other request withdraws it
  std::function<base::Result<>()> asking = [file = scan_request_] {
    base::PosixFileSystem files;
    const auto made = files.create(file);
    return made ? base::Result<>() : made.error();
  };
  const base::Result<> asked = co_await run_on(pool_, std::move(asking));
  if (!asked) {
    --starting_;
    co_return to_response({503, "not_started", asked.error().message});
  }
  std::function<bool()> is_taken = [file = scan_request_] {
    std::error_code error;
    return !std::filesystem::exists(file, error);
  };
  co_await wait_until(is_taken, scan_start_period, scan_start_max);
  --starting_;
  const bool is_started = co_await run_on(pool_, std::move(is_taken));
  if (is_started) co_return json_response({{"started", true}});
  // A request that no unit takes must not start a scan in a week; the last one that waits withdraws it.
  std::function<bool()> withdrawing = [file = scan_request_] {
    std::error_code error;
    return std::filesystem::remove(file, error);
  };
  if (starting_ == 0) co_await run_on(pool_, std::move(withdrawing));
  co_return to_response({503, "not_started",
                         "no scan has started within 10 s: one is running, or spoor-scan.path, which starts "
                         "it, is not enabled: systemctl enable --now spoor-scan.path"});
}

}  // namespace spoor::daemon
