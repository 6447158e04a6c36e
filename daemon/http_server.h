#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/http_session.h"
#include "daemon/tls.h"

namespace spoor::daemon {

// Serves HTTP/1.1 on TCP and Unix sockets, with TLS where asked for. Everything that comes in is bounded:
// header, body, time, connections, and what all bodies take together.
//
// Lives on the thread of `context`; connections are accepted there, and served on the threads of all
// contexts in turn. All contexts must outlive it.
class HttpServer {
 public:
  using Handler = HttpService::Handler;
  using Admission = HttpService::Admission;
  using Refusal = HttpService::Refusal;
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

  // `others`: more contexts, each of which runs on one thread from after start() until it has nothing left to
  // do, which is some time after stop().
  HttpServer(boost::asio::io_context& context, const Options& options,
             const std::vector<boost::asio::io_context*>& others = {});
  // Not while any of the contexts runs.
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
    std::uint64_t handshakes_failed = 0;
    std::map<std::string, std::uint64_t> unread;  // headers refused, by the problem's code
  };
  Figures figures() const;

  // When the first of its certificates ends to be valid. On the thread of the context.
  std::optional<base::WallTime> certificates_valid_until() const;

  // `admit` looks at a request before its body is read; what it answers ends it. `refused` is told of those
  // that the server itself refused. All are called on the threads that serve.
  void start(Handler handle, Admission admit = {}, Refusal refused = {});

  // For the connections and requests that come from now on.
  void set_limits(std::uint64_t body_bytes_max, std::uint64_t bodies_bytes_max, std::size_t connections_max);

  // Accepts no more connections, closes idle ones, lets requests under way finish (for grace_max at
  // most). Then nothing is left to do for any of the contexts; that of this server has something to do until
  // the others have not.
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace spoor::daemon
