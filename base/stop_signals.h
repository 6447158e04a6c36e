#pragma once

#include <chrono>
#include <csignal>
#include <ctime>

namespace spoor::base {

// SIGTERM, SIGINT and SIGHUP are blocked in this thread and in those that it starts afterwards, and waited
// for here; not SIGHUP if it is ignored, as by nohup.
class StopSignals {
 public:
  StopSignals() {
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, SIGTERM);
    ::sigaddset(&signals_, SIGINT);
    struct sigaction hangup{};
    ::sigaction(SIGHUP, nullptr, &hangup);
    if (hangup.sa_handler != SIG_IGN) ::sigaddset(&signals_, SIGHUP);
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }

  // Returns whether a signal arrived.
  bool wait(std::chrono::seconds time) const {
    const timespec timeout{time.count(), 0};
    return ::sigtimedwait(&signals_, nullptr, &timeout) > 0;
  }

 private:
  sigset_t signals_{};
};

}  // namespace spoor::base
