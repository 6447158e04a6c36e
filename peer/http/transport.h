// Concurrent requests to daemons, behind an interface, so that gathering can be tested and simulated without
// a network.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/endpoint.h"
#include "base/error.h"

namespace spoor::peer {

struct HttpRequest {
  base::Endpoint endpoint;
  std::string method = "GET";
  std::string target = "/";
  std::string content_type;
  std::string body;
  std::string authorization = {};  // of the Authorization field; empty: the token of the transport, if any
};

struct HttpResponse {
  unsigned status = 0;
  std::string content_type;
  std::string body;
  // The names in the certificate of the other end: its DNS names, or else its common name. None over a plain
  // connection.
  std::vector<std::string> certificate_names = {};
  bool is_own_authority =
      false;  // the certificate is verified by the operator's own authority, not one that the system trusts
  std::string date = {};         // the clock of the other end: the field Date, as it is
  std::string retry_after = {};  // the field Retry-After, as it is

  bool is_success() const { return status >= 200 && status < 300; }
};

// Not thread-safe.
class Transport {
 public:
  using OnResponse = std::function<void(std::size_t index, base::Result<HttpResponse> response)>;

  virtual ~Transport() = default;

  // Sends all requests concurrently, and calls `on_response` on the calling thread once for each, in the
  // order in which they finish; returns after the last one. A failed connection, a timeout and an invalid
  // response are errors; any HTTP status is a success. A response over the size limit fails with
  // std::errc::message_size.
  virtual void exchange(std::span<const HttpRequest> requests, const OnResponse& on_response) = 0;
};

// Sends one request. An error names the endpoint.
base::Result<HttpResponse> exchange(Transport& transport, const HttpRequest& request);

// The error message of a response with a status other than 2xx: the printable `detail` of its problem details
// (RFC 9457), or else the status.
std::string problem_detail(const HttpResponse& response);

// Parses a date of HTTP in its preferred form (RFC 9110, 5.6.7).
std::optional<std::chrono::sys_seconds> parse_http_date(const std::string& text);

// For how long the other end asks not to repeat the request, in seconds or until a date by its own clock;
// nothing if it does not say.
std::optional<std::chrono::seconds> retry_after(const HttpResponse& response);

// A response of GET /v1/usage has at most 10,000 directories, each with less than 100 values.
inline constexpr std::size_t json_values_max = 1'000'000;

// The JSON object in the body of a response; null if there is none, it has more than `json_values_max`
// values, or is nested too deep for recursive code.
nlohmann::ordered_json json_object(const HttpResponse& response);

}  // namespace spoor::peer
