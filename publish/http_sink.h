#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/endpoint.h"
#include "peer/http/transport.h"
#include "publish/sink.h"

namespace spoor::publish {

// Posts CloudEvents in their HTTP binding: a batch as one JSON array, or each event by itself, one after the
// other. Any status of 200 to 299 is an acknowledgement.
class HttpSink final : public Sink {
 public:
  struct Options {
    base::Endpoint endpoint;
    std::string target = "/";
    bool is_batched = true;
    std::string token = {};  // of the bearer; empty: none
  };

  HttpSink(Options options, std::unique_ptr<peer::Transport> transport)
      : options_(std::move(options)), transport_(std::move(transport)) {}

  base::Result<std::size_t> publish(const Source& source, std::span<const Event> events) override;

 private:
  // Returns the number of events in the body, once they are stored.
  base::Result<std::size_t> post(const char* content_type, std::string body, std::size_t events);

  const Options options_;
  const std::unique_ptr<peer::Transport> transport_;
};

}  // namespace spoor::publish
