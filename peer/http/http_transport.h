#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

#include "peer/http/credentials.h"
#include "peer/http/transport.h"

namespace spoor::peer {

// HTTP/1.1 over TCP, with or without TLS, and Unix sockets. Connections stay open for the next request to the
// same endpoint.
class HttpTransport final : public Transport {
 public:
  struct Options {
    Credentials credentials = {};
    // Of one request, from resolving the name to the last byte of the response, including retries and pauses.
    std::chrono::milliseconds timeout{10'000};
    // Of all requests of one call; 0 is no limit. Requests without a response by then have failed.
    std::chrono::milliseconds total_timeout{0};
    // How often a request is sent at most. It is retried if there was no response, or a response of 503,
    // after a pause that doubles, with jitter, so that many clients do not retry at the same moment.
    unsigned attempts_max = 1;
    // Of one response. The levels of a cycle (LevelSchedule::bytes_max) fit into it, with 64 MiB to spare.
    std::uint64_t body_bytes_max = std::uint64_t{256} << 20U;
    // Of all responses that are being read at one time.
    std::uint64_t bodies_bytes_max = std::uint64_t{1} << 30U;
    std::size_t concurrent_max = 64;
    std::size_t idle_max = 512;  // connections that stay open
    // Once it is requested, all requests without a response fail (std::errc::operation_canceled).
    std::stop_token stop = {};
  };

  explicit HttpTransport(Options options);
  HttpTransport(const HttpTransport&) = delete;
  HttpTransport& operator=(const HttpTransport&) = delete;
  ~HttpTransport() override;

  void exchange(std::span<const HttpRequest> requests, const OnResponse& on_response) override;

 private:
  class Client;
  std::unique_ptr<Client> client_;
};

// A factory for components that make transports as they need them: over the network, or of a test.
using MakeTransport = std::function<std::unique_ptr<Transport>(HttpTransport::Options)>;
std::unique_ptr<Transport> make_http_transport(HttpTransport::Options options);

}  // namespace spoor::peer
