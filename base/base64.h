// Base64 of RFC 4648: the standard alphabet, padded. Protobuf's JSON encodes bytes in this way.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spoor::base {

std::string to_base64(std::string_view bytes);

// The decoded bytes; nullopt if `text` is not an output of to_base64().
std::optional<std::string> from_base64(std::string_view text);

}  // namespace spoor::base
