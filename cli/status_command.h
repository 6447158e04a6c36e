// The output of `spoor status`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace spoor::cli {

// From the response of any daemon, older and newer ones included: shows '?' for what it lacks or has in
// another form. Ends with a newline.
std::string status_text(const nlohmann::ordered_json& status);

}  // namespace spoor::cli
