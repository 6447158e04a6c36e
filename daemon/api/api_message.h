// What all routes read and write in the same way.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "daemon/http/http_message.h"

namespace spoor::daemon {

// Whether the Content-Type is this one, whatever its parameters.
bool has_media_type(const HttpRequest& request, std::string_view type);

// The problem that the body has a Content-Encoding; nothing if it has none.
std::optional<Problem> refuse_content_encoding(const HttpRequest& request);

// The problem that there is a parameter of another name: a misspelt one must not count as not given.
std::optional<Problem> unknown_parameter(const HttpRequest& request,
                                         std::initializer_list<std::string_view> known);

// The problem that a path, the `index`th of its request, could not be normalised.
Problem path_problem(const base::Error& error, std::string_view raw, std::size_t index = 0);

// What is not UTF-8 becomes U+FFFD.
HttpResponse json_response(const nlohmann::ordered_json& body);

}  // namespace spoor::daemon
