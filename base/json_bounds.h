// Bounds on JSON from outside, for a parser that allocates for each level and value, and for recursive code.
// The functions count up to the first error of the JSON.
#pragma once

#include <cstddef>
#include <string_view>

namespace spoor::base {

// Whether arrays and objects are nested in more than `levels`.
//
// nlohmann::json has a callback for the same, with which its time is quadratic in the elements of an array.
bool is_nested_deeper(std::string_view json, std::size_t levels);

// Whether there may be more than `values`: arrays and objects count, and an empty one counts twice. Parsed,
// each value takes up to some 100 bytes, however short it is.
bool has_more_values(std::string_view json, std::size_t values);

}  // namespace spoor::base
