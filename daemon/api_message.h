// What every route reads and answers in the same way.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/http_message.h"
#include "daemon/problem.h"

namespace spoor::daemon {

// A whole decimal number and nothing else; nothing where it is none.
std::optional<std::uint64_t> parse_number(std::string_view text);

// The Content-Type without its parameters.
std::string media_type(const HttpRequest& request);

// The problem that the body is encoded; nothing where it is as it is.
std::optional<Problem> refuse_content_encoding(const HttpRequest& request);

// What is not UTF-8 becomes U+FFFD.
HttpResponse json_response(const nlohmann::ordered_json& body);

}  // namespace spoor::daemon
