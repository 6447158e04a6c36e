// What no answer can tell: that nothing is left out, in the sources and in the words of http-api.md.
#include <fstream>
#include <iterator>
#include <regex>

#include "tests/openapi/fixture.h"

namespace spoor::openapi {
namespace {

namespace fs = std::filesystem;

const fs::path root = SPOOR_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The part of each match that this group has, where it has one.
std::set<std::string> matches(const std::string& text, const std::string& pattern, std::size_t group = 1) {
  std::set<std::string> found;
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    if ((*at)[group].matched) found.insert((*at)[group]);
  }
  return found;
}

std::string sources_of_the_daemon() {
  std::string all;
  for (const auto& entry : fs::recursive_directory_iterator(root / "daemon")) {
    if (entry.path().extension() == ".cpp") all += read(entry.path());
  }
  return all;
}

std::string words() { return read(root / "docs/http-api.md"); }

using SourcesTest = OpenApiTest;

TEST_F(SourcesTest, EveryDaemonRoute_IsDescribed) {
  Node node;
  node.start();
  const auto literals = matches(read(root / "daemon/api/api.cpp"), "\"(/[a-z0-9/_{}.-]*)\"");
  EXPECT_GT(literals.size(), 10U) << "the routes are no longer in daemon/api/api.cpp";
  for (const std::string& path : literals) {
    const bool is_route = send(node.port(), {"OPTIONS", path}).status != 404;
    EXPECT_EQ(is_route, description_.has_path(path)) << path;
  }
  for (const Operation& operation : description_.operations()) {
    EXPECT_TRUE(literals.contains(operation.path)) << operation.path;
  }
}

TEST_F(SourcesTest, EveryDaemonErrorCode_IsDescribed) {
  // `{400, "code"`, `{is ? 503U : 409U, "code"`, `{400, is ? "code" : "code"` and `.code = "code"`.
  const std::string sources = sources_of_the_daemon();
  const std::string one = R"re([45]\d\dU?,\s*(?:\w+ \? "(\w+)" : )?"([a-z_]+)")re";
  auto codes = matches(sources, one, 1);
  codes.merge(matches(sources, one, 2));
  codes.merge(matches(sources, R"re(\.code = "([a-z_]+)")re"));
  const std::set<std::string> described = description_.document()["components"]["schemas"]["Code"]["enum"];
  EXPECT_EQ(codes, described);
  std::set<std::string> of_answers;
  for (const Case& each : description_.cases()) {
    if (!each.code.empty()) of_answers.insert(each.code);
  }
  EXPECT_EQ(of_answers, described);
}

TEST_F(SourcesTest, HttpApiDocument_NamesSameRoutes) {
  const std::string table = words().substr(0, words().find("\n## "));
  std::set<std::string> described;
  for (const Operation& operation : description_.operations()) described.insert(operation.path);
  EXPECT_EQ(matches(table, R"(`(?:GET |POST |DELETE )?(/[a-z0-9/{}.]*)[^`\s]*`)"), described);
}

TEST_F(SourcesTest, HttpApiDocument_NamesSameErrorCodes) {
  const std::string table = words().substr(words().find("\n## Problems"));
  std::set<std::string> named;
  for (const std::string& row : matches(table, R"(\n\| \d\d\d(?:, \d\d\d)* \| ([^|]*) \|)")) {
    named.merge(matches(row, "`([a-z_]+)`"));
  }
  EXPECT_EQ(named, std::set<std::string>(description_.document()["components"]["schemas"]["Code"]["enum"]));
}

}  // namespace
}  // namespace spoor::openapi
