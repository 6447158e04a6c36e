#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/http/http_session.h"
#include "daemon/http/tls.h"

namespace spoor::daemon {

// Serves HTTP/1.1 on TCP and Unix sockets, optionally with TLS. All input is bounded: header, body, time,
// connections, and the memory of all bodies together.
//
// Not thread-safe: used on the thread of `context`, which accepts the connections and distributes them round
// robin to the threads of all contexts. All contexts must outlive it.
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

  // `others`: further contexts. Each runs on one thread, from after start() until it runs out of work, which
  // is after stop().
  HttpServer(boost::asio::io_context& context, const HttpLimits& limits,
             const std::vector<boost::asio::io_context*>& others = {});
  // No context may be running.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds and listens. Returns the URL. Requests are served after start().
  base::Result<std::string> listen(const TcpListener& listener);

  // Replaces a socket file on which no process listens; creates its directory (one level).
  base::Result<std::string> listen(const UnixListener& listener);

  // Serve a socket that is already listening, and take ownership of it. stop() does not remove the file of a
  // Unix socket: the process that created it still listens.
  base::Result<std::string> adopt(int descriptor, const TcpListener& listener);
  base::Result<std::string> adopt_unix(int descriptor, const Caller& caller);

  const HttpTotals& totals() const;

  // The earliest expiry of its certificates; std::nullopt without TLS. On the thread of `context`.
  std::optional<base::WallTime> certificates_valid_until() const;

  void start(const HttpService& service);

  // Affects later connections and requests only.
  void set_limits(const HttpLimits& limits);

  // Stops accepting connections, closes idle ones, and lets open requests finish (for at most grace_max).
  // Then no context has work left; `context` keeps work until the others have none.
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace spoor::daemon
