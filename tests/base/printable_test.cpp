#include "base/printable.h"

#include <gtest/gtest.h>

#include "tests/support/random.h"

namespace spoor::base {
namespace {

using namespace std::string_view_literals;

TEST(PrintableTest, TextFromOutside_IsEscapedForOneLine) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"bücket/日本語/😀.txt", "bücket/日本語/😀.txt"},
      {"evil\n2026-01-01 \x1b[2J\r\t\x7f\0"sv, R"(evil\x0a2026-01-01 \x1b[2J\x0d\x09\x7f\x00)"},
      // U+009B begins a terminal's escape sequence as ESC [ does, U+0085 is a line break.
      {"\xc2\x9b\xc2\x85\xc2\xa0", "\\xc2\\x9b\\xc2\\x85\xc2\xa0"},
      {"a\xe2\x80\xae.b", R"(a\xe2\x80\xae.b)"},  // U+202E
      {"\xe2\x81\xa6\xe2\x80\xa8\xe2\x80\x8f", R"(\xe2\x81\xa6\xe2\x80\xa8\xe2\x80\x8f)"},
      {"\xd8\x9c \xd8\x9b", "\\xd8\\x9c \xd8\x9b"},                // U+061C; an Arabic semicolon
      {"\xe2\x80\x93 \xe2\x82\xac", "\xe2\x80\x93 \xe2\x82\xac"},  // a dash, the euro
      {"\xff", R"(\xff)"},                                         // not UTF-8
      {"\xc3", R"(\xc3)"},                                         // cut off
      {"\xe6\x97", R"(\xe6\x97)"},                                 // cut off
      {"\x80.a", R"(\x80.a)"},                                     // no lead byte
      {"\xc0\xaf", R"(\xc0\xaf)"},                                 // overlong
      {"\xe0\x80\xaf", R"(\xe0\x80\xaf)"},                         // overlong
      {"\xf0\x80\x80\xaf", R"(\xf0\x80\x80\xaf)"},                 // overlong
      {"\xed\xa0\x80", R"(\xed\xa0\x80)"},                         // a surrogate
      {"\xf4\x90\x80\x80", R"(\xf4\x90\x80\x80)"},                 // beyond U+10FFFF
  };
  for (const auto& [raw, text] : cases) EXPECT_EQ(printable(raw), text);
}

TEST(PrintableTest, LongText_IsTruncatedWithEllipsis) {
  EXPECT_EQ(printable(std::string(500, 'x'), 500), std::string(500, 'x'));
  EXPECT_EQ(printable(std::string(502, 'x'), 500), std::string(501, 'x') + "...");
  EXPECT_EQ(printable(std::string(5'000, 'x')), std::string(printable_bytes_max + 1, 'x') + "...");
}

TEST(PrintableTest, RandomBytes_BecomeUtf8WithoutControlCharacters) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 5'000; ++round) {
    const std::string text = printable(random.bytes(random.below(50)));
    ASSERT_TRUE(is_utf8(text));
    ASSERT_EQ(printable(text), text);
    for (const char c : text) ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
}

TEST(PrintableTest, PrintableLines_KeepLineBreaks) {
  const std::string line(1'000, 'x');
  EXPECT_EQ(printable_lines(line + "\n\x1b[2J\n"), line + "\n\\x1b[2J\n");
}

TEST(PrintableTest, WithoutPassword_HidesUserAndPasswordOfUrlsOnly) {
  const std::pair<const char*, const char*> cases[] = {
      {"http://root:secret@host:2379", "http://***@host:2379"},
      {"http://secret@host", "http://***@host"},            // a token in place of the user
      {"http://u:s/e?c#r@e\"t@host/", "http://***@host/"},  // not encoded
      {"u:secret@host", "***@host"},                        // the scheme is missing
      {"http:/u:secret@host", "***@host"},
      {R"({"x":["http://a","http://u:secret@b"]})", R"({"x":["http://***@b"]})"},
      {"postgresql://u:secret@h/d?password=secret&x=y", "postgresql://***@h/d?password=***"},
  };
  for (const auto& [text, hidden] : cases) EXPECT_EQ(without_password(text), hidden);
  for (const char* text :
       {"http://host:2379", "", "@", "a@b", "/srv/a:b@c", "unix:/run/a@b", "a@b:c", "http:/host"})
    EXPECT_EQ(without_password(text), text);
}

}  // namespace
}  // namespace spoor::base
