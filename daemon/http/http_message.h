// A complete request and its response, independent of the HTTP library.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::daemon {

// The process at the other end of a Unix socket, as reported by the kernel.
struct UnixPeer {
  uid_t user = 0;
  std::vector<gid_t> groups;  // primary and supplementary
};

// What the connection shows about the client.
struct Caller {
  std::string address = {};           // without a port; empty for a Unix socket
  bool is_trusted = false;            // the listener requires no credentials
  bool marks_without_tokens = false;  // the listener requires none for marks while no tokens are configured
  bool is_tls = false;
  bool is_loopback = false;  // the listener has a loopback address
  bool gets_page = true;     // the listener serves the page for browsers
  std::optional<UnixPeer> unix_peer = std::nullopt;
  bool has_certificate = false;                     // a valid one, signed by an authority in `client_ca`
  std::vector<std::string> certificate_names = {};  // its DNS names, or else its common name
};

struct HttpRequest {
  std::string method;
  std::string path;                          // percent-decoded, without the query
  std::map<std::string, std::string> query;  // decoded
  std::string content_type;
  std::string content_encoding;
  std::string authorization;  // secret
  std::string host;           // with the port, if there is one
  std::string origin;         // sent by a browser: the origin of the page that makes the request
  std::string session;        // secret: the cookie session_cookie()
  std::string accept_encoding;
  std::string if_none_match;
  Caller caller;
  bool has_body = false;    // Content-Length is not 0, or the body is chunked
  bool has_length = false;  // there is a Content-Length, or the body is chunked
  std::string body;
  std::function<bool()> is_abandoned = {};  // whether the client sends no more; thread-safe; may be empty

  std::optional<std::string_view> query_value(const std::string& name) const {
    const auto found = query.find(name);
    if (found == query.end()) return std::nullopt;
    return found->second;
  }
};

struct HttpResponse {
  unsigned status = 200;
  std::string_view content_type = "application/json";  // a string with static storage duration
  std::string body;
  std::map<std::string, std::string> headers = {};  // additional ones
  std::string problem = {};                         // the problem's code; empty for a success
  bool is_counted = true;  // among the responses that clients are slow to read, which are bounded together
  std::string_view static_body = {};  // in place of `body`, of static storage duration: no copy

  std::string_view content() const { return static_body.empty() ? body : static_body; }
};

// An error in the format `application/problem+json` (RFC 9457), with a stable code.
struct Problem {
  unsigned status = 500;
  std::string code;    // stable, for programs
  std::string detail;  // for people: what was wrong, where, and what to do

  // The index in the request of the item that caused the problem, and its path if it is a path.
  std::optional<std::size_t> index = std::nullopt;
  std::optional<std::string> path = std::nullopt;

  // The position from which to read the change feed after a full read of everything.
  std::string feed = {};
  std::uint64_t scan = 0;
};

// The cookie of a browser that is signed in to this host: a browser sends it to all ports of the host, so
// that its name has the port, for several daemons on one host.
std::string session_cookie(std::string_view host);

HttpResponse to_response(const Problem& problem);

// The phrases of the statuses that the daemon sends (RFC 9110, section 15; RFC 6585).
std::string_view reason_phrase(unsigned status);

}  // namespace spoor::daemon
