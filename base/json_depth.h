#pragma once

#include <cstddef>
#include <string_view>

namespace spoor::base {

// Whether arrays and objects are nested in more than `levels`, up to the first error of the JSON. Such text
// is not for a parser that allocates for each level, or for recursive code.
//
// nlohmann::json has a callback for the same, with which its time is quadratic in the elements of an array.
bool is_nested_deeper(std::string_view json, std::size_t levels);

}  // namespace spoor::base
