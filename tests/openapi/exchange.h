// A request as it is written, and its answer as it came: with every header, and also where no proper client
// would send such a thing.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace spoor::openapi {

struct Request {
  std::string method;
  std::string target;
  std::string content_type = {};
  std::string body = {};
  std::string headers = {};  // further lines, each with its end
  bool sends_length = true;  // of the body, where there is one or `method` is POST
  std::string host = "localhost";

  std::string path() const { return target.substr(0, target.find('?')); }

  // The connection is to end after the answer.
  std::string to_bytes() const;
};

struct Answer {
  unsigned status = 0;                         // 0: none came
  std::map<std::string, std::string> headers;  // names in small letters
  std::string body;

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

// What came until the connection ended. An interim answer is skipped.
Answer parse_answer(const std::string& bytes);

// To a port of own_loopback(), on a connection of its own.
Answer send_bytes(std::uint16_t port, const std::string& bytes);
inline Answer send(std::uint16_t port, const Request& request) {
  return send_bytes(port, request.to_bytes());
}

// What may stand in a query.
std::string query_encoded(const std::string& text);

}  // namespace spoor::openapi
