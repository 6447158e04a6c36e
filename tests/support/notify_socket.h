// The socket of a service manager, to which a daemon reports its state (sd_notify(3)).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temp_directory.h"

namespace spoor::support {

// Receives messages on its own thread.
class NotifySocket {
 public:
  NotifySocket();
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;
  ~NotifySocket();

  // The environment variable for the daemon.
  std::string variable() const { return "NOTIFY_SOCKET=" + path(); }
  std::string path() const { return directory_ / "notify"; }

  // Waits for a message that contains `text`, starting at message number `from`, and returns it.
  std::string wait_for(const std::string& text, std::size_t from = 0);

  // Whether a message numbered `from` or higher has arrived, or arrives within `time`.
  bool comes_within(std::chrono::milliseconds time, std::size_t from);

  // All messages received.
  std::vector<std::string> messages();

 private:
  void receive();

  TempDirectory directory_;
  int fd_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> messages_;
  std::jthread receiver_;
};

}  // namespace spoor::support
