// A request and an answer as the API sees them: whole, and without a word of the HTTP library.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace spoor::daemon {

struct HttpRequest {
  std::string method;
  std::string path;                          // percent-decoded, without the query
  std::map<std::string, std::string> query;  // decoded; of a name given twice, the last one
  std::string content_type;
  std::string content_encoding;
  bool has_length = false;  // Content-Length was given, or the body came in chunks
  std::string body;

  std::optional<std::string_view> query_value(const std::string& name) const {
    const auto found = query.find(name);
    if (found == query.end()) return std::nullopt;
    return found->second;
  }
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::map<std::string, std::string> headers;  // further ones
};

}  // namespace spoor::daemon
