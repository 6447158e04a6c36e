// A transport whose responses a function gives.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "peer/http/http_transport.h"
#include "peer/http/transport.h"

namespace spoor::fakes {

class AnsweringTransport final : public peer::Transport {
 public:
  using Answer = std::function<base::Result<peer::HttpResponse>(const peer::HttpRequest&)>;

  explicit AnsweringTransport(Answer answer) : answer_(std::move(answer)) {}

  // Not in the order in which they were sent.
  void exchange(std::span<const peer::HttpRequest> requests, const OnResponse& on_response) override {
    for (std::size_t at = requests.size(); at-- > 0;) on_response(at, answer_(requests[at]));
  }

 private:
  Answer answer_;
};

// For code that creates its own transport: the test's fake etcd or cluster responds, by the target of the
// request. Both must outlive it.
inline peer::MakeTransport transport_maker(peer::Transport& etcd, peer::Transport& cluster) {
  return [&etcd, &cluster](const peer::HttpTransport::Options&) {
    return std::make_unique<AnsweringTransport>([&](const peer::HttpRequest& request) {
      return peer::exchange(request.target.starts_with("/v3/") ? etcd : cluster, request);
    });
  };
}

}  // namespace spoor::fakes
