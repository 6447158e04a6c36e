#pragma once

#include <chrono>
#include <cstdint>

#include "peer/transport.h"

namespace spoor::peer {

// HTTP/1.1 over TCP and Unix sockets, one connection a request.
class HttpTransport final : public Transport {
 public:
  struct Options {
    std::chrono::milliseconds timeout{10'000};  // of one whole exchange, from resolving the name on
    std::uint64_t body_bytes_max = std::uint64_t{256} << 20U;
    std::size_t concurrent_max = 64;
  };

  explicit HttpTransport(Options options) : options_(options) {}

  void exchange(std::span<const HttpRequest> requests, const OnResponse& on_response) override;

 private:
  Options options_;
};

}  // namespace spoor::peer
