#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "daemon/http_session.h"
#include "daemon/tls.h"

namespace spoor::daemon {

// Serves HTTP/1.1 on TCP and Unix sockets, with TLS where asked for. Everything that comes in is bounded:
// header, body, time, connections, and what all bodies take together.
//
// Lives on the thread of `context`, which must outlive it.
class HttpServer {
 public:
  using Handler = HttpService::Handler;
  using Admission = HttpService::Admission;
  using Options = HttpLimits;

  struct TcpListener {
    std::string address;
    std::uint16_t port = 0;                    // 0 takes a free one
    Caller caller = {};                        // what is known of whoever connects
    std::shared_ptr<TlsServer> tls = nullptr;  // none: plain
  };

  struct UnixListener {
    std::filesystem::path path;
    mode_t mode = 0660;
    std::optional<gid_t> group = std::nullopt;
  };

  HttpServer(boost::asio::io_context& context, Options options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds and listens. Gives the URL. Requests are served from start() on.
  base::Result<std::string> listen(const TcpListener& listener);

  // A socket file that nobody answers on is replaced; its folder is created (one level).
  base::Result<std::string> listen(const UnixListener& listener);

  // Serve a socket that listens already, and take it over. The file of a Unix one stays at stop(): whoever
  // made it goes on listening.
  base::Result<std::string> adopt(int descriptor, const TcpListener& listener);
  base::Result<std::string> adopt_unix(int descriptor);

  // Since the start.
  struct Figures {
    std::size_t open = 0;        // connections, at present
    std::uint64_t accepted = 0;  // connections that were served
    std::uint64_t refused = 0;   // connections beyond connections_max
    std::map<std::string, std::uint64_t>
        unread;  // requests refused before they were read, by the problem's code
  };
  Figures figures() const;

  // `admit` looks at a request before its body is read; what it answers ends it.
  void start(Handler handle, Admission admit = {});

  // For the connections and requests that come from now on.
  void set_body_max(std::uint64_t bytes);
  void set_bodies_max(std::uint64_t bytes);
  void set_connections_max(std::size_t connections);

  // Accepts no more connections, closes idle ones, lets requests under way finish (for grace_max at
  // most). context.run() returns when all are gone and nothing else is left to do.
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace spoor::daemon
