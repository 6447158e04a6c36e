// What comes from outside is escaped wherever it is printed or logged: base/printable.h.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace spoor::architecture {
namespace {

namespace fs = std::filesystem;

const fs::path root = SPOOR_SOURCE_DIR;

// In these everything that is written goes through an escape, or is exact on purpose.
const std::set<std::string> writers{
    "base/standard_streams.h",
    "base/standard_streams.cpp",  // defines write_to_standard_error()
    "cli/program/format.cpp",  // print_text() and print_error(), which escape, print_exact() and print_json()
    "cli/scan/scan_walk.cpp",  // progress: figures only
    "config/logging.cpp",      // print_failure(), which escapes
    "config/program.cpp",      // one sentence, and figures
    "daemon/main.cpp",         // a path, which it escapes
};

// Who may print as it is, and why.
const std::map<std::string, std::string> exact{
    {"cli/program/format.cpp", "defines it"},
    {"cli/program/format.h", "declares it"},
    {"cli/changes_command.cpp", "a number; paths for rsync and the like, raw on purpose"},
    {"cli/config_command.cpp", "JSON"},
    {"cli/status_command.cpp", "the sequence that clears the screen"},
    {"cli/usage/usage_command.cpp", "CSV for pipes, and a table, which escapes"},
};

std::string without_comments(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return std::regex_replace(text, std::regex("//[^\n]*"), "");
}

// By name, of the folders that make programs.
std::map<std::string, std::string> sources() {
  std::map<std::string, std::string> found;
  for (const char* folder :
       {"base", "cli", "config", "daemon", "peer", "scanner", "tracker", "watch", "publish"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const fs::path extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".h") continue;
      found[entry.path().lexically_relative(root).generic_string()] = without_comments(entry.path());
    }
  }
  return found;
}

std::vector<std::string> statements(const std::string& text) {
  std::vector<std::string> found;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(';', start), text.size());
    found.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return found;
}

TEST(OutputTest, OnlyTheFunctionsThatEscape_Print) {
  const std::regex prints(
      R"(fmt::print\(|\bf?puts\(|\bfputc\(|\bfwrite\(|\bprintf\(|std::cout|std::cerr|\bwrite_to_standard_error\()");
  for (const auto& [name, text] : sources()) {
    if (writers.contains(name)) continue;
    EXPECT_FALSE(std::regex_search(text, prints))
        << name
        << " prints by itself: use print_text(), print_error() or print_exact() of cli/program/format.h";
  }
}

TEST(OutputTest, ExactOutput_IsListedWithItsReason) {
  for (const auto& [name, text] : sources()) {
    if (text.find("print_exact(") == std::string::npos) continue;
    EXPECT_TRUE(exact.contains(name)) << name << " prints as it is: use print_text(), or say here why";
  }
}

// A line break in one of these would make a line of its own of what comes behind it.
TEST(OutputTest, UntrustedFields_AreEscapedInText) {
  const std::regex field(
      R"((\w+\()?\s*\b(peer|error|outcome|record|entry|drive|inspected)\.(name|url|error|message|reason|note|path|owner)\b(?!\())");
  std::size_t checked = 0;
  for (const auto& [name, text] : sources()) {
    if (!name.starts_with("cli/")) continue;
    for (const std::string& statement : statements(text)) {
      const bool is_text = statement.find("fmt::format(") != std::string::npos ||
                           statement.find("throw_failure(") != std::string::npos ||
                           statement.find("print_text(") != std::string::npos ||
                           statement.find("text +=") != std::string::npos;
      if (!is_text || statement.find("csv_quoted(") != std::string::npos) continue;  // CSV is exact for pipes
      for (std::sregex_iterator at(statement.begin(), statement.end(), field), end; at != end; ++at) {
        const std::string call = (*at)[1];
        if (statement.substr(static_cast<std::size_t>(at->position() + at->length())).starts_with(".empty()"))
          continue;
        ++checked;
        EXPECT_EQ(call, "printable(")
            << name << ": " << at->str() << " is not made printable in " << statement;
      }
    }
  }
  EXPECT_GE(checked, 7U) << "the names of the fields have changed";
}

// What is logged passes the formatter of set_up_logging(), which escapes: another logger, or another pattern
// for text, would not.
TEST(OutputTest, EveryLogger_HasTheFormatterThatEscapes) {
  const std::regex makes(
      R"(spdlog::logger>\(|set_pattern\(|_logger_mt\(|_logger_st\(|stdout_color|stderr_color)");
  for (const auto& [name, text] : sources()) {
    if (name == "config/logging.cpp") {
      EXPECT_EQ(text.find("%v"), std::string::npos) << "the message as it is";
      continue;
    }
    EXPECT_FALSE(std::regex_search(text, makes)) << name << " makes a logger of its own";
  }
}

}  // namespace
}  // namespace spoor::architecture
