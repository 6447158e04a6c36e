// Lets code that creates its own transport use the test's fakes: etcd or a cluster, by the target of the
// request.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "peer/http/http_transport.h"
#include "peer/http/transport.h"

namespace spoor::fakes {

// Sends each request separately, in order. Both must outlive it.
class LentTransport final : public peer::Transport {
 public:
  LentTransport(peer::Transport& etcd, peer::Transport& cluster) : etcd_(etcd), cluster_(cluster) {}

  // For peer::MakeTransport.
  static peer::MakeTransport maker(peer::Transport& etcd, peer::Transport& cluster) {
    return [&etcd, &cluster](const peer::HttpTransport::Options&) {
      return std::make_unique<LentTransport>(etcd, cluster);
    };
  }

  void exchange(std::span<const peer::HttpRequest> requests, const OnResponse& on_response) override {
    for (std::size_t at = 0; at < requests.size(); ++at) {
      auto& to = requests[at].target.starts_with("/v3/") ? etcd_ : cluster_;
      to.exchange(requests.subspan(at, 1), [&](std::size_t, base::Result<peer::HttpResponse> response) {
        on_response(at, std::move(response));
      });
    }
  }

 private:
  peer::Transport& etcd_;
  peer::Transport& cluster_;
};

}  // namespace spoor::fakes
