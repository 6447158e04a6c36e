// HTTP requests to the daemon of this machine over its Unix socket, one at a time, each by a deadline.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file_system.h"
#include "peer/http/transport.h"

namespace spoor::client {

// Keeps its connection for the next request. Not thread-safe.
class DaemonSocket final : public peer::Transport {
 public:
  // `token` is for the Authorization field; empty: none.
  DaemonSocket(std::filesystem::path socket, std::string token);
  ~DaemonSocket() override;
  DaemonSocket(const DaemonSocket&) = delete;
  DaemonSocket& operator=(const DaemonSocket&) = delete;

  // Of the requests that follow: they fail with std::errc::timed_out then.
  void set_deadline(std::chrono::steady_clock::time_point deadline) { deadline_ = deadline; }

  // The endpoints of the requests are ignored: all go to the socket.
  void exchange(std::span<const peer::HttpRequest> requests, const OnResponse& on_response) override;

 private:
  base::Result<peer::HttpResponse> exchange_one(const peer::HttpRequest& request);
  base::Result<peer::HttpResponse> try_once(std::string_view request, bool& has_response_begun);
  base::Result<base::Descriptor> connect() const;
  void drop_connection_of_others();
  base::Result<> wait_for(int connection, short events) const;

  const std::filesystem::path socket_;
  const std::string token_;
  std::chrono::steady_clock::time_point deadline_{};
  std::optional<base::Descriptor> connection_;  // idle: no request or response is on its way
  ino_t inode_ = 0;                             // of connection_
};

}  // namespace spoor::client
