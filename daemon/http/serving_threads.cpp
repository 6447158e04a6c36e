#include "daemon/http/serving_threads.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <thread>

namespace spoor::daemon {
namespace {

using boost::asio::io_context;

constexpr unsigned threads_max = 256;  // as in the configuration

using Contexts = std::vector<std::unique_ptr<io_context>>;

// Stops the contexts however run() ends, so that their threads can be joined.
class StopAtEnd {
 public:
  explicit StopAtEnd(const Contexts& contexts) : contexts_(contexts) {}
  StopAtEnd(const StopAtEnd&) = delete;
  StopAtEnd& operator=(const StopAtEnd&) = delete;
  ~StopAtEnd() {
    for (const auto& each : contexts_) each->stop();
  }

 private:
  const Contexts& contexts_;
};

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
  const StopAtEnd stop(others_);
  for (const auto& each : others_) threads.emplace_back([&context = *each] { context.run(); });
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
