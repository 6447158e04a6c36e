// Locales for the programs that a test starts.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temp_directory.h"

namespace spoor::support {

// Compiles a locale if the machine does not have it. The environment is valid for the lifetime of this
// object.
class Locales {
 public:
  // The environment variables of a program in this locale.
  std::vector<std::string> environment(const std::string& name) const {
    if (!name.starts_with("de_DE")) return {"LC_ALL=" + name};
    const std::filesystem::path compiled = directory_ / name;
    if (!std::filesystem::exists(compiled)) {
      const auto made =
          run_command({"localedef", "-i", "de_DE", "-f", "UTF-8", "--no-archive", compiled.native()});
      EXPECT_TRUE(std::filesystem::exists(compiled)) << made.err;
    }
    return {"LC_ALL=" + name, "LOCPATH=" + directory_.path().native()};
  }

  // The name of a test with this locale as its parameter.
  static std::string test_name(const testing::TestParamInfo<const char*>& parameter) {
    return std::string(parameter.param).substr(0, 1) + std::to_string(parameter.index);
  }

  // What differs by locale are shells and other programs: a sanitizer finds the same in each.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static auto all() { return testing::Values("C"); }
#else
  static auto all() { return testing::Values("C", "C.UTF-8", "de_DE.UTF-8"); }
#endif

 private:
  TempDirectory directory_;
};

}  // namespace spoor::support
