#include "daemon/api/api_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/url/grammar/ci_string.hpp>
#include <nlohmann/json.hpp>

#include "base/number.h"
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

void QueryReader::require(bool holds, std::string_view what) {
  if (!holds && !problem) problem = {400, "invalid_request", std::string(what)};
}

void QueryReader::number(const char* name, std::uint64_t min, std::uint64_t max, std::uint64_t& number) {
  const auto text = request.query_value(name);
  if (!text) return;
  const auto given = base::parse_number<std::uint64_t>(*text);
  require(given && *given >= min && *given <= max,
          fmt::format("'{}' must be a number from {} to {}", name, min, max));
  number = given.value_or(number);
}

Problem path_problem(const base::Error& error, std::string_view raw, std::size_t index) {
  const bool too_long = error.code == tracker::Errc::path_too_long;
  return {400, too_long ? "path_too_long" : "invalid_path", error.message, index, base::printable(raw)};
}

boost::system::result<peer::CycleQuery, Problem> read_cycle_query(const HttpRequest& request,
                                                                  std::string_view node,
                                                                  std::string_view cluster) {
  const auto query = peer::parse_cycle_query(request.body);
  if (!query) {
    const bool is_json = query.error().code != std::errc::bad_message;
    return Problem{400, is_json ? "invalid_request" : "invalid_json", query.error().message};
  }
  if (query->cluster == cluster) return *query;
  return Problem{409, "wrong_cluster",
                 fmt::format("node '{}' belongs to cluster '{}', not to '{}'", node, cluster,
                             base::printable(query->cluster))};
}

base::Error no_scan_error() {
  return {std::make_error_code(std::errc::no_such_file_or_directory),
          "there was no scan of this node yet; run 'spoor scan'"};
}

HttpResponse too_many(std::string_view what) {
  return to_response({503, "overloaded", fmt::format("too many {} already, of this client or of all", what)});
}

HttpResponse json_response(const nlohmann::ordered_json& body) {
  HttpResponse response;
  response.body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return response;
}

}  // namespace spoor::daemon
