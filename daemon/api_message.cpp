#include "daemon/api_message.h"

#include <fmt/core.h>

#include <boost/algorithm/string/predicate.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tracker/path.h"

namespace spoor::daemon {

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string media_type(const HttpRequest& request) {
  return boost::algorithm::trim_copy(request.content_type.substr(0, request.content_type.find(';')));
}

std::optional<Problem> refuse_content_encoding(const HttpRequest& request) {
  const std::string& encoding = request.content_encoding;
  if (encoding.empty() || boost::algorithm::iequals(encoding, "identity")) return std::nullopt;
  return Problem{415, "unsupported_media_type",
                 fmt::format("the Content-Encoding '{}' is not known here; send the body as it is",
                             tracker::printable(encoding))};
}

HttpResponse json_response(const nlohmann::ordered_json& body) {
  HttpResponse response;
  response.body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return response;
}

}  // namespace spoor::daemon
