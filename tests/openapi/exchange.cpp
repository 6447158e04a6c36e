#include "tests/openapi/exchange.h"

#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <sstream>

#include "tests/support/raw_client.h"

namespace spoor::openapi {

std::string Request::to_bytes() const {
  std::string bytes =
      method + ' ' + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + headers;
  if (!content_type.empty()) bytes += "Content-Type: " + content_type + "\r\n";
  if (sends_length && (!body.empty() || method == "POST")) {
    bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  return bytes + "\r\n" + body;
}

// By hand: what a library would mend or refuse is what a test wants to see.
Answer parse_answer(const std::string& bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string::npos) return {};
  Answer answer;
  std::istringstream lines(bytes.substr(0, end));
  std::string version;
  std::string line;
  lines >> version >> answer.status;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const std::size_t colon = line.find(':');
    const std::string name = boost::algorithm::to_lower_copy(line.substr(0, colon));
    answer.headers[name] = boost::algorithm::trim_copy(line.substr(colon + 1));
  }
  answer.body = bytes.substr(end + 4);
  const bool is_interim = answer.status < 200;
  return is_interim ? parse_answer(answer.body) : answer;
}

Answer send_bytes(std::uint16_t port, const std::string& bytes) {
  support::RawClient client(port);
  client.send(bytes);
  return parse_answer(client.receive_all());
}

std::string query_encoded(const std::string& text) {
  return boost::urls::encode(text, boost::urls::unreserved_chars);
}

}  // namespace spoor::openapi
