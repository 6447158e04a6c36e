#include "daemon/api_message.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace spoor::daemon {

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

HttpResponse json_response(const nlohmann::ordered_json& body) {
  HttpResponse response;
  response.body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return response;
}

}  // namespace spoor::daemon
