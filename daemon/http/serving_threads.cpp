#include "daemon/http/serving_threads.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <stop_token>
#include <thread>

namespace spoor::daemon {
namespace {

using boost::asio::io_context;

constexpr unsigned threads_max = 256;  // as in the configuration

// Ends at the latest when its thread is joined, however ServingThreads::run() ends.
void run_until_joined(const std::stop_token& joined, io_context& context) {
  const std::stop_callback stop(joined, [&context] { context.stop(); });
  context.run();
}

}  // namespace

ServingThreads::ServingThreads(std::size_t threads) {
  if (threads == 0) threads = std::clamp(std::thread::hardware_concurrency(), 1U, threads_max);
  while (others_.size() + 1 < threads) others_.push_back(std::make_unique<io_context>(1));
}

std::vector<io_context*> ServingThreads::others() const {
  std::vector<io_context*> all;
  all.reserve(others_.size());
  for (const auto& each : others_) all.push_back(each.get());
  return all;
}

void ServingThreads::run(io_context& main) {
  std::vector<std::jthread> threads;
  threads.reserve(others_.size());
  for (const auto& each : others_) threads.emplace_back(run_until_joined, std::ref(*each));
  try {
    main.run();
  } catch (const std::exception& failure) {
    if (others_.empty()) throw;
    // Coroutines of the other threads refer to objects of this one and vice versa: an orderly stop is
    // impossible.
    spdlog::critical("spoord terminates because of an internal error: {}", failure.what());
    std::terminate();
  }
}

}  // namespace spoor::daemon
