// Which folder may use which, and what goes against it in a file's text.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::architecture {

using Folders = std::set<std::string, std::less<>>;

struct Rules {
  // What each folder may use besides itself. A folder that is not named here may not hold sources.
  std::map<std::string, Folders, std::less<>> may_use;
  // What each folder within a module ("tracker/filter") may use of its module, besides itself and errors.h at
  // the module's top. Other files at the top may use all of them, and are used by none.
  std::map<std::string, Folders, std::less<>> may_use_within;
  // The only files that include Beast, which is slow to compile and belongs to the edges.
  std::set<std::string, std::less<>> beast_files;
};

// The rules of this project.
const Rules& rules();

// What the includes of `file` ("tracker/cycles/tracker.cpp") break, a sentence each. `declared` is what its
// folder's CMakeLists.txt declares to use.
std::vector<std::string> check_includes(const Rules& rules, std::string_view file, std::string_view text,
                                        const Folders& declared);

// The folders that a CMakeLists.txt declares to use: USES of add_module, and spoor::<folder>.
Folders declared_uses(std::string_view cmake_text);

// What the declarations of `folder` break, a sentence each.
std::vector<std::string> check_declared(const Rules& rules, std::string_view folder, const Folders& declared);

}  // namespace spoor::architecture
