// A request and an answer as the API sees them: whole, and without a word of the HTTP library.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::daemon {

// The process at the other end of a Unix socket, as the kernel tells.
struct UnixPeer {
  uid_t user = 0;
  std::vector<gid_t> groups;  // its own and the supplementary ones
};

// Who sends a request, as far as the connection tells.
struct Caller {
  std::string address = {};                // without a port; empty for a Unix socket
  bool is_trusted = false;                 // came through a listener that asks nobody who he is
  bool is_trusted_without_tokens = false;  // or does not as long as there are no tokens
  bool is_tls = false;
  std::optional<UnixPeer> unix_peer = std::nullopt;
  bool has_certificate = false;                     // a valid one, of an authority that the listener trusts
  std::vector<std::string> certificate_names = {};  // its DNS names, or else its common name
};

struct HttpRequest {
  std::string method;
  std::string path;                          // percent-decoded, without the query
  std::map<std::string, std::string> query;  // decoded
  std::string content_type;
  std::string content_encoding;
  std::string authorization;  // secret
  std::string host;           // with its port, if it names one
  std::string origin;         // where a browser asks for a page: that page's
  Caller caller;
  bool has_body = false;    // its length is not 0, or it comes in chunks
  bool has_length = false;  // Content-Length was given, or the body comes in chunks
  std::string body;

  std::optional<std::string_view> query_value(const std::string& name) const {
    const auto found = query.find(name);
    if (found == query.end()) return std::nullopt;
    return found->second;
  }
};

struct HttpResponse {
  unsigned status = 200;
  std::string_view content_type = "application/json";  // of static storage
  std::string body;
  std::map<std::string, std::string> headers = {};  // further ones
  std::string problem = {};                         // the code, where this is a problem
};

}  // namespace spoor::daemon
