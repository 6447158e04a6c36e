// A service manager that keeps file descriptors for its service, as systemd does with
// FileDescriptorStoreMax= (sd_pid_notify_with_fds(3)).
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temp_directory.h"

namespace spoor::watch {

// Receives messages on its own thread, and keeps the descriptors of FDSTORE=1 until FDSTOREREMOVE=1.
//
// Thread-safe.
class FdStore {
 public:
  FdStore();
  FdStore(const FdStore&) = delete;
  FdStore& operator=(const FdStore&) = delete;
  ~FdStore();

  // Starts a program with NOTIFY_SOCKET and all descriptors (LISTEN_FDS, LISTEN_FDNAMES), which stay stored.
  std::unique_ptr<support::Daemon> start(const std::vector<std::string>& command);

  // How many messages had READY=1.
  std::size_t ready_count() const;

  // The names of the descriptors, in the order in which they came.
  std::vector<std::string> names() const;

  // Closes all descriptors, as a service manager does after a stop without a restart.
  void discard();

 private:
  struct Stored {
    std::string name;
    int descriptor;
  };

  void receive();
  void handle(const std::string& message, std::vector<int> descriptors);
  void store(const std::string& name, int descriptor);
  void remove(const std::string& name);

  support::TempDirectory directory_;
  int socket_;
  mutable std::mutex mutex_;
  std::vector<Stored> stored_;
  std::size_t ready_count_ = 0;
  std::jthread receiver_;
};

}  // namespace spoor::watch
