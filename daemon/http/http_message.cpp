#include "daemon/http/http_message.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace spoor::daemon {
namespace {

constexpr std::pair<unsigned, std::string_view> phrases[] = {
    {200, "OK"},
    {204, "No Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {431, "Request Header Fields Too Large"},
    {503, "Service Unavailable"},
};

}  // namespace

std::string_view reason_phrase(unsigned status) {
  const auto* const known = std::ranges::find(phrases, status, &std::pair<unsigned, std::string_view>::first);
  return known == std::end(phrases) ? "Internal Server Error" : known->second;
}

std::string session_cookie(std::string_view host) {
  constexpr std::size_t digits_max = 5;
  const std::string_view port = host.substr(host.rfind(':') + 1);
  const bool is_port = port.size() < host.size() && !port.empty() && port.size() <= digits_max &&
                       port.find_first_not_of("0123456789") == std::string_view::npos;
  return is_port ? "spoor_session_" + std::string(port) : "spoor_session";
}

HttpResponse to_response(const Problem& problem) {
  nlohmann::ordered_json json{{"type", "about:blank"},
                              {"title", reason_phrase(problem.status)},
                              {"status", problem.status},
                              {"code", problem.code},
                              {"detail", problem.detail}};
  if (problem.index) json["index"] = *problem.index;
  if (problem.path) json["path"] = *problem.path;
  if (!problem.feed.empty()) {
    json["feed"] = problem.feed;
    json["scan"] = problem.scan;
  }
  HttpResponse response;
  response.status = problem.status;
  response.problem = problem.code;
  response.content_type = "application/problem+json";
  response.body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (problem.status == 401) response.headers["WWW-Authenticate"] = "Bearer realm=\"spoor\"";
  if (problem.status == 503) response.headers["Retry-After"] = "1";
  return response;
}

}  // namespace spoor::daemon
