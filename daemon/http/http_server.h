#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "daemon/http/http_session.h"
#include "daemon/http/tls.h"

namespace spoor::daemon {

class AcceptError;
class HttpWorker;

// That of one of so many threads. A body of the largest size fits on each.
HttpLimits share_of(HttpLimits limits, std::size_t threads);

// Serves HTTP/1.1 on TCP and Unix sockets, optionally with TLS. All input is bounded: header, body, time,
// connections, and the memory of all bodies together.
//
// Several threads may serve: that of `context`, the main thread, and others with a context each. Each accepts
// from all sockets, and has its share of the limits.
//
// Not thread-safe: used on the main thread. `context` must outlive it.
class HttpServer {
 public:
  struct TcpListener {
    std::string address;
    std::uint16_t port = 0;                    // 0: any free port
    Caller caller = {};                        // the initial Caller of each connection
    std::shared_ptr<TlsServer> tls = nullptr;  // none: plain HTTP
  };

  struct UnixListener {
    std::filesystem::path path;
    mode_t mode = 0660;
    std::optional<gid_t> group = std::nullopt;
    Caller caller = {};  // the initial Caller of each connection
  };

  // `threads`: that serve, all together; 0: one for each processor.
  HttpServer(boost::asio::io_context& context, const HttpLimits& limits, std::size_t threads = 1);
  // No context may be running.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds and listens. Returns the URL. Requests are served after start().
  base::Result<std::string> listen(const TcpListener& listener);

  // Replaces a socket file on which no process listens; creates its directory (one level).
  base::Result<std::string> listen(const UnixListener& listener);

  // Serves a TCP or Unix socket that is already listening, and takes ownership of it. stop() does not remove
  // the file of a Unix socket: the process that created it still listens.
  base::Result<std::string> adopt(int descriptor, const Caller& caller, std::shared_ptr<TlsServer> tls = {});

  const HttpTotals& totals() const { return *totals_; }

  // The contexts of the other threads. They live as long as this object.
  std::vector<boost::asio::io_context*> others() const;

  // Of the listeners.
  const std::vector<std::shared_ptr<TlsServer>>& tls() const { return tls_; }
  // The earliest expiry of their certificates; std::nullopt without TLS.
  std::optional<base::WallTime> certificates_valid_until() const;

  // Starts the other threads.
  void start(const HttpService& service);

  // Affects later connections and requests only.
  void set_limits(const HttpLimits& limits);

  // Runs `context` until it has no work left, then waits for the other threads. If there are any, an
  // exception in one of all these threads terminates the program.
  void run();

  // Stops accepting connections, closes idle ones, and lets open requests finish (for at most grace_max).
  // Then no context has work left; `context` keeps work until the others have none.
  void stop();

 private:
  boost::asio::io_context& context_;
  const std::shared_ptr<HttpTotals> totals_ = std::make_shared<HttpTotals>();
  std::vector<std::unique_ptr<boost::asio::io_context>> others_;  // each runs on one of threads_
  std::vector<std::shared_ptr<HttpWorker>> workers_;              // the first is that of `context`
  std::vector<std::filesystem::path> files_;                      // of Unix sockets, which stop() removes
  std::vector<std::shared_ptr<TlsServer>> tls_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace spoor::daemon
