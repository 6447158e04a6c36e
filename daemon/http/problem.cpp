#include "daemon/http/problem.h"

#include <nlohmann/json.hpp>

namespace spoor::daemon {
std::string_view reason_phrase(unsigned status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
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
