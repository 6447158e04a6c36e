#include "tracker/paths/path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
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
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
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
  };
  for (const auto& [raw, normal] : cases) {
    const auto path = normalise_path(raw);
    ASSERT_TRUE(path) << raw;
    EXPECT_EQ(*path, normal) << raw;
  }
}

TEST(PathTest, NonUtf8Bytes_AreKept) {
  EXPECT_EQ(normalise_path("bucket/\xff\xfe\x80").value(), "bucket/\xff\xfe\x80");
}

// ancestor 17: a path that climbs marks something else than it says.
TEST(PathTest, DotDotComponent_IsRefused) {
  for (const std::string_view raw : {"..", "../a", "a/..", "a/../b", "/../a", "a/./../b", "a//..//b"}) {
    const auto path = normalise_path(raw);
    ASSERT_FALSE(path) << raw;
    EXPECT_EQ(path.error().code, Errc::invalid_path) << raw;
  }
}

TEST(PathTest, EmptyPath_IsRefused) {
  for (const std::string_view raw : {"", "/", "//", ".", "./", "/.", "/././/"}) {
    const auto path = normalise_path(raw);
    ASSERT_FALSE(path) << raw;
    EXPECT_EQ(path.error().code, Errc::invalid_path) << raw;
  }
}

TEST(PathTest, NulByte_IsRefused) {
  for (const std::string_view raw : {"\0"sv, "a\0"sv, "\0a"sv, "a/b\0c/d"sv, "a/\0"sv}) {
    const auto path = normalise_path(raw);
    ASSERT_FALSE(path);
    EXPECT_EQ(path.error().code, Errc::invalid_path);
  }
}

TEST(PathTest, ComponentOver255Bytes_IsTooLong) {
  const std::string longest(255, 'n');
  EXPECT_EQ(normalise_path("a/" + longest + "/b").value(), "a/" + longest + "/b");
  const auto path = normalise_path("a/" + longest + "n/b");
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, Errc::path_too_long);
}

// ancestor 17: what one mark can cost is bounded.
TEST(PathTest, PathOver4096Bytes_IsTooLong) {
  const std::string longest = longest_path();
  ASSERT_EQ(longest.size(), 4096U);
  EXPECT_EQ(normalise_path(longest).value(), longest);
  const auto path = normalise_path(longest + "z");
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, Errc::path_too_long);
}

TEST(PathTest, MegabyteComponent_IsTooLong) {
  EXPECT_EQ(normalise_path(std::string(1'000'000, 'x')).error().code, Errc::path_too_long);
}

TEST(PathTest, ErrorMessage_NamesThePathEscaped) {
  const auto path = normalise_path("a\n/..");
  ASSERT_FALSE(path);
  EXPECT_NE(path.error().message.find("a\\x0a/.."), std::string::npos) << path.error().message;
}

TEST(PathTest, Normalise_IsIdempotent) {
  SPOOR_RANDOM(random);
  const std::vector<std::string> pieces{"/", ".", "..", "a", "b", "/", "\xff", "//", "./", "a/"};
  for (int round = 0; round < 20'000; ++round) {
    std::string raw;
    for (std::uint64_t n = random.below(8); n > 0; --n) raw += random.pick(pieces);
    const auto once = normalise_path(raw);
    if (!once) continue;
    ASSERT_EQ(normalise_path(*once).value(), *once) << raw;
    for (ComponentCursor at(*once); at.next();) {
      ASSERT_FALSE(at.component().empty() || at.component() == "." || at.component() == "..") << raw;
    }
  }
}

TEST(PathTest, ComponentCursor_IteratesComponentsAndPrefixes) {
  std::vector<std::pair<std::string, std::string>> steps;
  for (ComponentCursor at("bucket/a/b.txt"); at.next();) steps.emplace_back(at.component(), at.prefix());
  const std::vector<std::pair<std::string, std::string>> expected{
      {"bucket", "bucket"}, {"a", "bucket/a"}, {"b.txt", "bucket/a/b.txt"}};
  EXPECT_EQ(steps, expected);
}

TEST(PathTest, ComponentCursor_DetectsLastComponent) {
  ComponentCursor at("a/b");
  ASSERT_TRUE(at.next());
  EXPECT_FALSE(at.is_last());
  ASSERT_TRUE(at.next());
  EXPECT_TRUE(at.is_last());
  EXPECT_FALSE(at.next());
}

TEST(PathTest, Root_HasNoComponents) { EXPECT_FALSE(ComponentCursor("").next()); }

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

TEST(PrintableTest, Utf8_IsUnchanged) {
  EXPECT_EQ(base::printable("bücket/日本語/😀.txt"), "bücket/日本語/😀.txt");
}

TEST(PrintableTest, ControlCharacters_AreEscaped) {
  EXPECT_EQ(base::printable("a\nb\x1b[31m\x7f\0"sv), "a\\x0ab\\x1b[31m\\x7f\\x00");
}

TEST(PrintableTest, NonAsciiControlCharacters_AreEscaped) {
  // U+009B begins a terminal's escape sequence as ESC [ does, U+0085 is a line break.
  EXPECT_EQ(base::printable("\xc2\x9b\xc2\x85\xc2\xa0"), "\\xc2\\x9b\\xc2\\x85\xc2\xa0");
}

TEST(PrintableTest, InvalidUtf8_IsEscaped) {
  EXPECT_EQ(base::printable("\xff"), "\\xff");
  EXPECT_EQ(base::printable("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(base::printable("\xe6\x97"), "\\xe6\\x97") << "cut off";
  EXPECT_EQ(base::printable("\x80"
                            "a"),
            "\\x80"
            "a")
      << "no lead byte";
  EXPECT_EQ(base::printable("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(base::printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf") << "overlong";
  EXPECT_EQ(base::printable("\xf0\x80\x80\xaf"), "\\xf0\\x80\\x80\\xaf") << "overlong";
  EXPECT_EQ(base::printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(base::printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond U+10FFFF";
}

TEST(PrintableTest, LongPath_IsTruncatedWithEllipsis) {
  const std::string text = base::printable(std::string(5'000, 'x'));
  EXPECT_LE(text.size(), 210U);
  EXPECT_TRUE(text.ends_with("..."));
}

TEST(PrintableTest, RandomBytes_BecomeUtf8WithoutControlCharacters) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 5'000; ++round) {
    const std::string text = base::printable(random.bytes(random.below(60)));
    ASSERT_EQ(base::printable(text), text.size() > 200 ? base::printable(text) : text);
    for (const char c : text) ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
}

TEST(NormalisePathTest, IsNormalised_AcceptsOnlyNormalisedPaths) {
  for (const char* path : {"a", "a/b", "a b/.c/..d"}) EXPECT_TRUE(is_normalised(path)) << path;
  for (const char* path : {"", "/", "a/", "/a", "a//b", "a/./b", "a/../b"})
    EXPECT_FALSE(is_normalised(path)) << path;
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
  std::size_t normal = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string path;
    const std::size_t size = random.below(400);
    while (path.size() < size) {
      path += std::string(random.below(300) == 0 ? 254 + random.below(4) : random.below(70), 'x');
      path += std::vector<std::string>{"/", "/.", "/a", "/.b", "/..c", "..", "."}[random.below(7)];
    }
    if (random.below(2) == 0) path += "end";
    if (random.below(100) == 0) path += '\0';
    EXPECT_EQ(is_normalised(path), is_normal(path)) << path;
    if (is_normal(path)) ++normal;
  }
  EXPECT_GT(normal, 2'000U);
  EXPECT_LT(normal, 18'000U);
  EXPECT_TRUE(is_normalised(longest_path()));
  EXPECT_FALSE(is_normalised(longest_path() + 'z'));
}

}  // namespace
}  // namespace spoor::tracker
