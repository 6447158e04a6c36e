#include "base/json_depth.h"

namespace spoor::base {

bool is_nested_deeper(std::string_view json, std::size_t levels) {
  std::size_t depth = 0;
  bool is_in_string = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char character = json[at];
    if (character == '"') {
      is_in_string = !is_in_string;
    } else if (is_in_string) {
      if (character == '\\') ++at;
    } else if (character == '[' || character == '{') {
      if (++depth > levels) return true;
    } else if ((character == ']' || character == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace spoor::base
