#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "daemon/http_message.h"

namespace spoor::daemon {

// Serves HTTP/1.1 on TCP and Unix sockets. Everything that comes in is bounded: header, body, time,
// connections.
//
// Lives on the thread of `context`, which must outlive it.
class HttpServer {
 public:
  using Handler = std::function<boost::asio::awaitable<HttpResponse>(const HttpRequest&)>;

  struct Options {
    std::uint64_t body_bytes_max = std::uint64_t{8} << 20U;
    std::uint32_t header_bytes_max = 16U << 10U;
    std::size_t connections_max = 1024;
    std::chrono::milliseconds idle_max{75'000};     // between two requests
    std::chrono::milliseconds request_max{30'000};  // for reading a request, and for writing an answer
    std::chrono::milliseconds grace_max{10'000};    // for what is under way at stop()
  };

  HttpServer(boost::asio::io_context& context, Options options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds and listens; port 0 takes a free one. Gives the URL. Requests are served from start() on.
  base::Result<std::string> listen_tcp(const std::string& address, std::uint16_t port);

  // A socket file that nobody answers on is replaced; its folder is created (one level).
  base::Result<std::string> listen_unix(const std::filesystem::path& path);

  void start(Handler handler);

  // Accepts no more connections, closes idle ones, lets requests under way finish (for grace_max at
  // most). context.run() returns when all are gone and nothing else is left to do.
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace spoor::daemon
