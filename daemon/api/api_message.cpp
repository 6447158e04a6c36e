#include "daemon/api/api_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/url/grammar/ci_string.hpp>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "tracker/errors.h"

namespace spoor::daemon {

bool has_media_type(const HttpRequest& request, std::string_view type) {
  constexpr std::string_view blanks = " \t";
  std::string_view sent = request.content_type;
  sent = sent.substr(0, sent.find(';'));
  sent.remove_prefix(std::min(sent.find_first_not_of(blanks), sent.size()));
  sent = sent.substr(0, sent.find_last_not_of(blanks) + 1);
  return boost::urls::grammar::ci_is_equal(sent, type);
}

std::optional<Problem> refuse_content_encoding(const HttpRequest& request) {
  const std::string& encoding = request.content_encoding;
  if (encoding.empty() || boost::urls::grammar::ci_is_equal(encoding, "identity")) return std::nullopt;
  return Problem{415, "unsupported_media_type",
                 fmt::format("the Content-Encoding '{}' is not known here; send the body as it is",
                             base::printable(encoding))};
}

std::optional<Problem> unknown_parameter(const HttpRequest& request,
                                         std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : request.query) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string others =
        known.size() == 0 ? "none is" : fmt::format("known are: {}", fmt::join(known, ", "));
    return Problem{
        400, "invalid_request",
        fmt::format("the query parameter '{}' is not known here; {}", base::printable(name), others)};
  }
  return std::nullopt;
}

Problem path_problem(const base::Error& error, std::string_view raw, std::size_t index) {
  const bool too_long = error.code == tracker::Errc::path_too_long;
  return {400, too_long ? "path_too_long" : "invalid_path", error.message, index, base::printable(raw)};
}

HttpResponse json_response(const nlohmann::ordered_json& body) {
  HttpResponse response;
  response.body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return response;
}

}  // namespace spoor::daemon
