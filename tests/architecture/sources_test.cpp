// The sources as they are, held against the rules.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/architecture/arrows.h"

namespace spoor::architecture {
namespace {

namespace fs = std::filesystem;

const fs::path root = SPOOR_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_source(const fs::path& path) {
  const fs::path extension = path.extension();
  return extension == ".h" || extension == ".hpp" || extension == ".cpp" || extension == ".cc";
}

// Whether a folder at the top may hold production code.
bool is_production(const fs::path& folder) {
  const std::string name = folder.filename().native();
  return fs::is_directory(folder) && name != "tests" && name != "build" && name != "cmake" &&
         !name.starts_with('.');
}

std::vector<fs::path> sources_in(const fs::path& folder) {
  std::vector<fs::path> sources;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && is_source(entry.path())) sources.push_back(entry.path());
  }
  return sources;
}

TEST(SourcesTest, Includes_FollowModuleDependencies) {
  std::size_t checked = 0;
  for (const auto& folder : fs::directory_iterator(root)) {
    if (!is_production(folder.path())) continue;
    const Folders declared = declared_uses(read(folder.path() / "CMakeLists.txt"));
    for (const fs::path& source : sources_in(folder.path())) {
      const std::string name = source.lexically_relative(root).generic_string();
      for (const std::string& broken : check_includes(rules(), name, read(source), declared)) {
        ADD_FAILURE() << broken;
      }
      ++checked;
    }
  }
  EXPECT_GT(checked, 10U) << "no sources found in " << root;
}

TEST(SourcesTest, CmakeDeclarations_FollowModuleDependencies) {
  for (const auto& [folder, may_use] : rules().may_use) {
    const fs::path cmake = root / folder / "CMakeLists.txt";
    ASSERT_TRUE(fs::exists(cmake)) << cmake;
    for (const std::string& broken : check_declared(rules(), folder, declared_uses(read(cmake)))) {
      ADD_FAILURE() << broken;
    }
  }
}

}  // namespace
}  // namespace spoor::architecture
