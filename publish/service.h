// What spoor-publish runs: a thread for each sink, so that one that does not respond delays no other.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "config/config.h"
#include "publish/publisher.h"
#include "scanner/feed/publish_record.h"

namespace spoor::publish {

// How long after a failure a sink is tried again: twice as long after each one, up to a minute, as long as it
// stores nothing. `last`: the pause before this attempt; zero after a success.
std::chrono::milliseconds next_pause(std::chrono::milliseconds last, bool has_stored);

// The time until the next attempt: the pause, or the longer one that the other end has asked for, up to an
// hour.
std::chrono::milliseconds wait_for_attempt(std::chrono::milliseconds pause, std::chrono::seconds asked);

// Not thread-safe.
class Service {
 public:
  // Reads the secrets of the sinks; fails, and names the sink, if one is missing.
  static base::Result<std::unique_ptr<Service>> make(const config::Config& config, const base::Clock& clock);

  // Stops the threads, and waits for the last request of each.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Publishes until it is destroyed: what is there, and then what each new scan finds. A sink that fails is
  // tried again.
  void start();

  // Publishes what is there, without start(). Returns the failures, each with the name of the sink.
  std::vector<std::string> publish_once();

  scanner::PublishRecord record() const;
  // Of all sinks, in a line.
  std::string status_line() const;

 private:
  struct Worker {
    std::string name;
    std::unique_ptr<Sink> sink;
    std::unique_ptr<Publisher> publisher;
  };

  Service(std::chrono::milliseconds interval, const base::Clock& clock)
      : interval_(interval), clock_(clock) {}

  void run(Worker& worker, const std::stop_token& stop);
  void wait(std::chrono::milliseconds time, const std::stop_token& stop);

  const std::chrono::milliseconds interval_;
  const base::Clock& clock_;
  std::vector<Worker> workers_;
  std::mutex mutex_;  // of waiting only
  std::condition_variable_any stopped_;
  std::vector<std::jthread> threads_;
};

}  // namespace spoor::publish
