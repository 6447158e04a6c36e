// What every route reads and answers in the same way.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/http_message.h"
#include "daemon/problem.h"

namespace spoor::daemon {

// A whole decimal number and nothing else; nothing where it is none.
std::optional<std::uint64_t> parse_number(std::string_view text);

// Whether the Content-Type is this one, whatever its parameters.
bool has_media_type(const HttpRequest& request, std::string_view type);

// The problem that the body is encoded; nothing where it is as it is.
std::optional<Problem> refuse_content_encoding(const HttpRequest& request);

// The problem that there is a parameter of another name: one that is misspelt must not count as not given.
std::optional<Problem> unknown_parameter(const HttpRequest& request,
                                         std::initializer_list<std::string_view> known);

// What is not UTF-8 becomes U+FFFD.
HttpResponse json_response(const nlohmann::ordered_json& body);

}  // namespace spoor::daemon
