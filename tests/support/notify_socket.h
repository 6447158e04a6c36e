// The service manager as a daemon sees it: whom it tells how it is (sd_notify(3)).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temp_directory.h"

namespace spoor::support {

// Takes messages all the while.
class NotifySocket {
 public:
  NotifySocket();
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;
  ~NotifySocket();

  // For the environment of the daemon.
  std::string variable() const { return "NOTIFY_SOCKET=" + path(); }
  std::string path() const { return directory_ / "notify"; }

  // The first message that holds `text`, from the one numbered `from` on; waits until it comes.
  std::string wait_for(const std::string& text, std::size_t from = 0);

  // Whether a message numbered `from` or higher has come, or comes in that time.
  bool comes_within(std::chrono::milliseconds time, std::size_t from);

  // All that have come.
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
