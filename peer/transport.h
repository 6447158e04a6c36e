// Requests to daemons, many side by side, behind an interface, so that gathering can be tested and
// simulated without a network.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "peer/endpoint.h"

namespace spoor::peer {

struct HttpRequest {
  Endpoint endpoint;
  std::string method = "GET";
  std::string target = "/";
  std::string content_type;
  std::string body;
};

struct HttpResponse {
  unsigned status = 0;
  std::string content_type;
  std::string body;
  // Whom the certificate of the other end was issued for: its DNS names, or else its common name. None over a
  // plain connection.
  std::vector<std::string> certificate_names = {};
  bool is_own_authority =
      false;  // the operator's own authority vouches for them, not one that the system trusts

  bool is_success() const { return status >= 200 && status < 300; }
};

// Not thread-safe.
class Transport {
 public:
  using OnResponse = std::function<void(std::size_t index, base::Result<HttpResponse> response)>;

  virtual ~Transport() = default;

  // Sends all requests side by side and calls `on_response` once for each, in the order in which
  // they finish, on the calling thread; returns when all have. A failure is one of the connection,
  // the time limit or the answer's form; an HTTP status is a success. An answer larger than is read fails
  // with std::errc::message_size.
  virtual void exchange(std::span<const HttpRequest> requests, const OnResponse& on_response) = 0;
};

// One request by itself.
base::Result<HttpResponse> exchange(Transport& transport, const HttpRequest& request);

// The failure that an answer with another status than 2xx reports: the `detail` of its problem
// details (RFC 9457) where it has them, made printable.
std::string problem_detail(const HttpResponse& response);

}  // namespace spoor::peer
