#include "peer/http/send_marks.h"

#include <fmt/core.h>

#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <nlohmann/json.hpp>
#include <utility>

namespace spoor::peer {
namespace {

std::size_t begin_of(const std::string& paths, std::size_t index) {
  std::size_t begin = 0;
  for (; index > 0 && begin < paths.size(); --index) begin = paths.find('\0', begin) + 1;
  return begin;
}

std::optional<std::size_t> refused_path(const HttpResponse& response, const std::string& paths) {
  if (response.status != 400) return std::nullopt;
  const auto problem = nlohmann::json::parse(response.body, nullptr, false);
  if (!problem.is_object() || !problem.contains("index") || !problem["index"].is_number_unsigned())
    return std::nullopt;
  const auto index = problem["index"].get<std::size_t>();
  if (begin_of(paths, index) >= paths.size()) return std::nullopt;
  return index;
}

std::uint64_t number(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

}  // namespace

MarkReply send_marks(Transport& transport, const base::Endpoint& daemon, std::string_view kind,
                     std::string paths, const std::string& drive) {
  // Only where needed: earlier daemons do not know the parameter.
  const bool is_absolute =
      paths.starts_with('/') || paths.find(std::string_view("\0/", 2)) != std::string::npos;
  std::string target = fmt::format("/v1/marks?delimiter=nul&kind={}", kind);
  if (is_absolute) target += "&absolute=true";
  if (!drive.empty()) target += "&drive=" + boost::urls::encode(drive, boost::urls::unreserved_chars);
  const HttpRequest request{daemon, "POST", std::move(target), "text/plain", std::move(paths)};
  const auto response = exchange(transport, request);
  MarkReply reply;
  if (!response) {
    reply.problem = response.error().message;
    reply.may_retry = true;
    return reply;
  }
  if (!response->is_success()) {
    reply.problem = problem_detail(*response);
    reply.may_retry = response->status >= 500 || response->status == 408;
    reply.refused = refused_path(*response, request.body);
    reply.is_too_large = response->status == 413;
    return reply;
  }
  const auto json = nlohmann::json::parse(response->body, nullptr, false);
  if (!json.is_object()) {
    reply.problem = "the response is not a JSON object";
    return reply;
  }
  reply.is_acknowledged = true;
  reply.marked = number(json, "marked");
  reply.ignored = number(json, "ignored");
  reply.cycle = number(json, "cycle");
  return reply;
}

void remove_path(std::string& paths, std::size_t index) {
  const std::size_t begin = begin_of(paths, index);
  if (begin < paths.size()) paths.erase(begin, paths.find('\0', begin) + 1 - begin);
}

}  // namespace spoor::peer
