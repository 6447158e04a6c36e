#include "base/json_bounds.h"

namespace spoor::base {
namespace {

// Whether `is_beyond` returns true for a character that is in no string.
template <class IsBeyond>
bool any_outside_strings(std::string_view json, IsBeyond is_beyond) {
  bool is_in_string = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char character = json[at];
    if (character == '"') {
      is_in_string = !is_in_string;
    } else if (is_in_string) {
      if (character == '\\') ++at;
    } else if (is_beyond(character)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool is_nested_deeper(std::string_view json, std::size_t levels) {
  std::size_t depth = 0;
  return any_outside_strings(json, [&](char character) {
    if (character == '[' || character == '{') return ++depth > levels;
    if ((character == ']' || character == '}') && depth > 0) --depth;
    return false;
  });
}

bool has_more_values(std::string_view json, std::size_t values) {
  std::size_t count = 1;
  return any_outside_strings(json, [&](char character) {
    const bool precedes_value = character == '[' || character == '{' || character == ',';
    return precedes_value && ++count > values;
  });
}

}  // namespace spoor::base
