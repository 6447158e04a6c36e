// The version of Spoor. It is in a library of its own, spoor_version, which only the programs are linked
// with: a new commit compiles and links no more than that.
#pragma once

#include <string>
#include <string_view>

namespace spoor::base {

// "1.0.0"
std::string_view version();

// "spoord 1.0.0 (5f461af12345)": the version and the commit. A commit with "-dirty" had changes that are not
// in it. Without the brackets if the build had neither git nor SPOOR_COMMIT.
std::string version_text(std::string_view program);

}  // namespace spoor::base
