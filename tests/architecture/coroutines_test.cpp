// No statement combines `co_await` with a braced temporary: g++ 12 destroys the temporary twice
// (CONTRIBUTING.md, "Code").
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "tests/architecture/arrows.h"

namespace spoor::architecture {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The position after the bracket that closes the one at `start`.
std::size_t end_of(const std::string& text, std::size_t start, char open, char close) {
  std::size_t depth = 0;
  for (std::size_t at = start; at < text.size(); ++at) {
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) return at + 1;
  }
  return text.size();
}

// Removes comments and literals, moves the bodies of lambdas to the end of the text, and inserts a `;` after
// each condition and instead of each brace that opens a block.
std::string split_statements(std::string text) {
  static const std::regex skipped(
      R"re(//[^\n]*|/\*[^*]*\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'|#[^\n]*)re");
  static const std::regex lambda(
      R"(\[[^\[\]]*\]\s*(?:\([^()]*\))?\s*(?:(?:mutable|noexcept)\s*)*(?:->[^(){};]*)?\{)");
  static const std::regex condition(R"(\b(?:if|for|while|switch)\s*(?:constexpr\s*)?\()");
  static const std::regex block(
      R"((?:[;:)}\]]|\b(?:else|do|try))\s*(?:(?:const|noexcept|override)\s*)*(?:->[^(){};]*)?\{)");
  text = std::regex_replace(text, skipped, "0");
  std::smatch found;
  while (std::regex_search(text, found, lambda)) {
    const auto start = static_cast<std::size_t>(found.position());
    const auto body = start + static_cast<std::size_t>(found.length());
    const std::size_t end = end_of(text, body - 1, '{', '}');
    text += ';' + text.substr(body, end - body - 1);
    text.replace(start, end - start, "0");
  }
  while (std::regex_search(text, found, condition)) {
    const auto start = static_cast<std::size_t>(found.position());
    const auto length = static_cast<std::size_t>(found.length());
    text.insert(end_of(text, start + length - 1, '(', ')'), ";");
    text.replace(start, length - 1, ";");
  }
  return std::regex_replace(text, block, ";");
}

// The statements of a source that break the rule.
std::vector<std::string> violations(const std::string& source) {
  static const std::regex temporary(
      R"([(,{]\s*\{|\bco_return\s*\{|(?:^[\s}]*|[=(,{?:!+]|&&|\|\||\b(?:co_return|co_await)\s))"
      R"(\s*[A-Za-z_][\w:]*(?:<[^;{}()]*>)?\s*\{)");
  std::vector<std::string> found;
  const std::string text = split_statements(source);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(';', start), text.size());
    const std::string statement = text.substr(start, end - start);
    start = end + 1;
    if (statement.find("co_await") == std::string::npos) continue;
    if (std::regex_search(statement, temporary)) found.push_back(statement);
  }
  return found;
}

TEST(CoroutinesTest, BracedTemporary_InStatementWithCoAwait_IsReported) {
  for (const char* const statement :
       {"co_await f({1});", "co_await f(1, {2});", "x = co_await f(Type{1});", "g(Type{1}, co_await f());",
        "co_await f(a::Type<b>{});", "co_return Type{co_await f()};", "co_return {co_await f(), 1};",
        "if (co_await f({1})) {\n}", "if (a) co_await f({1});", "co_await f([] { return 1; }, Type{1});",
        "while (a) {\n  co_await f({.x = 1});\n}", "spawn([]() -> T {\n  co_await f({1});\n});"}) {
    EXPECT_THAT(violations(statement), ElementsAre(HasSubstr("co_await"))) << statement;
  }
}

TEST(CoroutinesTest, OtherBraces_AreAllowed) {
  EXPECT_THAT(violations("co_return f({1});\nconst Type a{1};\nco_await f(a);\nconst T b{co_await f()};"),
              IsEmpty());
  EXPECT_THAT(violations("for (;;) {\n  if (co_await f()) {\n    g({1});\n  }\n}"), IsEmpty());
  EXPECT_THAT(violations("for (int a : {1, 2}) co_await f(a);\nif (g({1})) co_await f();"), IsEmpty());
  EXPECT_THAT(violations("co_await f([&, a] { g({1}); }, [](T b) -> U { return U{b}; });"), IsEmpty());
  EXPECT_THAT(violations("T f() {\n  // co_await f({1});\n  g({1}, \"co_await\");\n}"), IsEmpty());
  EXPECT_THAT(violations("T f() const {\n  co_await g();\n}\nstruct A : B {\n  int c{1};\n};"), IsEmpty());
}

TEST(CoroutinesTest, Sources_HaveNoBracedTemporaryInStatementWithCoAwait) {
  std::size_t checked = 0;
  for (const auto& [folder, may_use] : rules().may_use) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SPOOR_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      if (text.find("co_await") == std::string::npos) continue;
      ++checked;
      EXPECT_THAT(violations(text), IsEmpty()) << entry.path();
    }
  }
  EXPECT_GT(checked, 10U) << "no coroutines found";
}

}  // namespace
}  // namespace spoor::architecture
