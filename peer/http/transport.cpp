#include "peer/http/transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_bounds.h"
#include "base/number.h"
#include "base/printable.h"

namespace spoor::peer {
namespace {

constexpr std::size_t problem_bytes_max = std::size_t{64} << 10U;
constexpr std::size_t detail_bytes_max = 500;
constexpr std::size_t json_depth_max = 64;

}  // namespace

base::Result<HttpResponse> exchange(Transport& transport, const HttpRequest& request) {
  base::Result<HttpResponse> answer =
      base::Error(std::make_error_code(std::errc::io_error), "the transport returned no response");
  transport.exchange({&request, 1},
                     [&](std::size_t, base::Result<HttpResponse> response) { answer = std::move(response); });
  if (!answer) return base::wrap(request.endpoint.to_string(), answer.error());
  return answer;
}

std::string problem_detail(const HttpResponse& response) {
  // Spoor sends no longer problem details, and parsing takes many times the size in memory.
  const auto json = response.body.size() > problem_bytes_max
                        ? nlohmann::json()
                        : nlohmann::json::parse(response.body, nullptr, false);
  const auto text = [&](const char* member) -> std::string {
    if (!json.is_object() || !json.contains(member) || !json[member].is_string()) return {};
    return json[member].get<std::string>();
  };
  if (const std::string detail = text("detail"); !detail.empty()) {
    return base::printable(detail, detail_bytes_max);
  }
  return fmt::format("HTTP status {}", response.status);
}

std::optional<std::chrono::sys_seconds> parse_http_date(const std::string& text) {
  std::tm parts{};
  const char* const end = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)));
}

std::optional<std::chrono::seconds> retry_after(const HttpResponse& response) {
  if (const auto seconds = base::parse_number<std::uint32_t>(response.retry_after))
    return std::chrono::seconds(*seconds);
  const auto until = parse_http_date(response.retry_after);
  const auto now = parse_http_date(response.date);
  if (!until || !now) return std::nullopt;
  return std::max(*until - *now, std::chrono::seconds(0));
}

nlohmann::ordered_json json_object(const HttpResponse& response) {
  if (base::is_nested_deeper(response.body, json_depth_max)) return {};
  if (base::has_more_values(response.body, json_values_max)) return {};
  auto json = nlohmann::ordered_json::parse(response.body, nullptr, false);
  if (!json.is_object()) json = nullptr;
  return json;
}

}  // namespace spoor::peer
