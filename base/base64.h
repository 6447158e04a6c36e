// Base64 of RFC 4648: the standard alphabet, padded. As protobuf's JSON writes bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spoor::base {

std::string to_base64(std::string_view bytes);

// The bytes; nothing where `text` is not what to_base64() gives for any.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace spoor::base
