#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "base/endpoint.h"
#include "peer/http/transport.h"
#include "publish/sink.h"

namespace spoor::publish {

// Posts CloudEvents in their HTTP binding: a batch as one JSON array, or each event by itself, one after the
// other. Any status of 200 to 299 is an acknowledgement. After 413 (too large) a body has half the bytes, and
// then grows again slowly. An event that is refused like this by itself is given up, unless it is a small
// one.
class HttpSink final : public Sink {
 public:
  // Of a body with several events: servers refuse larger ones by default (nginx: 1 MiB).
  static constexpr std::size_t body_bytes_max = std::size_t{512} << 10U;

  struct Options {
    base::Endpoint endpoint;
    std::string target = "/";
    bool is_batched = true;
    std::string token = {};  // of the bearer; empty: none
  };

  HttpSink(Options options, std::unique_ptr<peer::Transport> transport)
      : options_(std::move(options)), transport_(std::move(transport)) {}

  base::Result<std::size_t> publish(const Source& source, std::span<const Event> events) override;
  std::chrono::seconds take_retry_after() override { return std::exchange(retry_after_, {}); }

 private:
  struct Body {
    std::string text;
    std::size_t events = 0;
  };

  Body body_of(const Source& source, std::span<const Event> events) const;
  base::Result<peer::HttpResponse> post(std::string body);

  const Options options_;
  const std::unique_ptr<peer::Transport> transport_;
  std::size_t body_bytes_ = body_bytes_max;  // of the next body with several events
  std::chrono::seconds retry_after_{0};
};

}  // namespace spoor::publish
