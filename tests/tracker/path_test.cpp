#include "tracker/paths/path.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/random.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

using namespace std::string_view_literals;

// 17 components, none too long: 4,096 bytes in all.
std::string longest_path() {
  std::string path;
  for (int i = 0; i < 15; ++i) path += std::string(255, 'x') + '/';
  return path + std::string(127, 'y') + '/' + std::string(128, 'z');
}

// ancestor 18: one way to spell a path is left, whoever marks it.
TEST(PathTest, EverySpelling_IsNormalisedToOnePath) {
  const std::string component(255, 'n');
  const std::vector<std::pair<std::string, std::string>> cases{
      {"bucket", "bucket"},
      {"bucket/a/b.txt", "bucket/a/b.txt"},
      {"/bucket/a", "bucket/a"},
      {"///bucket/a", "bucket/a"},
      {"./bucket/a", "bucket/a"},
      {"/./bucket/a", "bucket/a"},
      {"./a//b/./c/", "a/b/c"},
      {"bucket/a/", "bucket/a"},
      {"bucket/a///", "bucket/a"},
      {"bucket/a/.", "bucket/a"},
      {"bucket//a", "bucket/a"},
      {"bucket/.//./a", "bucket/a"},
      {".hidden/..dots/...", ".hidden/..dots/..."},
      {"bucket/a..b/..c/d..", "bucket/a..b/..c/d.."},
      {" /\t", " /\t"},
      {"line\nbreak/back\\slash", "line\nbreak/back\\slash"},
      {"b\xc3\xbc/\xe6\x97\xa5", "b\xc3\xbc/\xe6\x97\xa5"},
      {"bucket/\xff\xfe\x80", "bucket/\xff\xfe\x80"},
      {"a/" + component + "/b", "a/" + component + "/b"},
      {longest_path(), longest_path()},
  };
  for (const auto& [raw, normal] : cases) {
    const auto path = normalise_path(raw);
    ASSERT_TRUE(path) << raw;
    EXPECT_EQ(*path, normal) << raw;
    EXPECT_EQ(is_normalised(raw), raw == normal) << raw;
  }
}

// ancestor 17: a path that climbs marks something else than it says, and what one mark can cost is bounded.
TEST(PathTest, ImpossiblePath_IsRefused) {
  for (const std::string_view raw : std::initializer_list<std::string_view>{
           "..", "../a", "a/..", "a/../b", "/../a", "a/./../b", "a//..//b", "", "/", "//", ".", "./", "/.",
           "/././/", "\0"sv, "a\0"sv, "\0a"sv, "a/b\0c/d"sv, "a/\0"sv}) {
    const auto path = normalise_path(raw);
    ASSERT_FALSE(path) << raw;
    EXPECT_EQ(path.error().code, Errc::invalid_path) << raw;
    EXPECT_FALSE(is_normalised(raw)) << raw;
  }
  for (const std::string& raw :
       {"a/" + std::string(256, 'n') + "/b", longest_path() + "z", std::string(1'000'000, 'x')}) {
    const auto path = normalise_path(raw);
    ASSERT_FALSE(path);
    EXPECT_EQ(path.error().code, Errc::path_too_long);
    EXPECT_FALSE(is_normalised(raw));
  }
  const std::string message = normalise_path("a\n/..").error().message;
  EXPECT_NE(message.find("a\\x0a/.."), std::string::npos) << message;
}

// It looks for separators many bytes at a time: whatever stands where, it must say what going from one to the
// next says.
TEST(PathTest, RandomPath_IsNormalisedIfEachComponentIs) {
  SPOOR_RANDOM(random);
  const auto is_normal = [](std::string_view path) {
    if (path.empty() || path.size() > path_bytes_max || path.find('\0') != path.npos) return false;
    for (std::size_t begin = 0;;) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const std::string_view component = path.substr(begin, end - begin);
      if (component.empty() || component.size() > component_bytes_max || component == "." ||
          component == "..") {
        return false;
      }
      if (end == path.size()) return true;
      begin = end + 1;
    }
  };
  const std::vector<std::string> pieces{"/", "/.", "/a", "/.b", "/..c", "..", ".", "//", "./"};
  std::size_t normal = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string path;
    const std::size_t size = random.below(400);
    while (path.size() < size) {
      path += std::string(random.below(300) == 0 ? 254 + random.below(4) : random.below(70), 'x');
      path += random.pick(pieces);
    }
    if (random.below(2) == 0) path += "end";
    if (random.below(100) == 0) path += '\0';
    ASSERT_EQ(is_normalised(path), is_normal(path)) << path;
    if (is_normal(path)) ++normal;
    if (const auto once = normalise_path(path)) {
      ASSERT_TRUE(is_normal(*once)) << path;
    }
  }
  EXPECT_GT(normal, 1'000U);
  EXPECT_LT(normal, 18'000U);
}

TEST(PathTest, ComponentCursor_IteratesComponentsAndPrefixes) {
  std::vector<std::pair<std::string, std::string>> steps;
  for (ComponentCursor at("bucket/a/b.txt"); at.next();) {
    steps.emplace_back(at.component(), at.prefix());
    EXPECT_EQ(at.is_last(), steps.size() == 3);
  }
  const std::vector<std::pair<std::string, std::string>> expected{
      {"bucket", "bucket"}, {"a", "bucket/a"}, {"b.txt", "bucket/a/b.txt"}};
  EXPECT_EQ(steps, expected);
  EXPECT_FALSE(ComponentCursor("").next()) << "the root has none";
}

TEST(PathTest, JoinPath_IsInverseOfParentPath) {
  EXPECT_EQ(join_path("", "bucket"), "bucket");
  EXPECT_EQ(join_path("bucket/a", "b"), "bucket/a/b");
  EXPECT_EQ(parent_path("bucket/a/b"), "bucket/a");
  EXPECT_EQ(parent_path("bucket"), "");
  EXPECT_EQ(parent_path(""), "");
}

TEST(PathTest, ParseMarkKind_AcceptsExactNamesOnly) {
  EXPECT_EQ(parse_mark_kind("dir"), MarkKind::dir);
  EXPECT_EQ(parse_mark_kind("file"), MarkKind::file);
  EXPECT_EQ(parse_mark_kind("tree"), MarkKind::tree);
  for (const std::string_view text : {"", "Dir", "dir ", "directory"})
    EXPECT_FALSE(parse_mark_kind(text)) << text;
}

}  // namespace
}  // namespace spoor::tracker
