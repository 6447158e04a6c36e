#include "base/printable.h"

#include <gtest/gtest.h>

namespace spoor::base {
namespace {

TEST(PrintableTest, TerminalEscapeSequences_AreEscaped) {
  EXPECT_EQ(printable("evil\n2026-01-01 \x1b[2J\r\t\x7f"), "evil\\x0a2026-01-01 \\x1b[2J\\x0d\\x09\\x7f");
}

TEST(PrintableTest, BidiMarksAndLineSeparators_AreEscaped) {
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b"),
            "a\\xe2\\x80\\xae"
            "b")
      << "U+202E";
  EXPECT_EQ(printable("\xe2\x81\xa6\xe2\x80\xa8\xe2\x80\x8f"),
            "\\xe2\\x81\\xa6\\xe2\\x80\\xa8\\xe2\\x80\\x8f");
  EXPECT_EQ(printable("\xd8\x9c \xd8\x9b"), "\\xd8\\x9c \xd8\x9b") << "U+061C, and an Arabic semicolon";
  EXPECT_EQ(printable("\xe2\x80\x93 \xe2\x82\xac"), "\xe2\x80\x93 \xe2\x82\xac") << "a dash, the euro";
}

TEST(PrintableTest, LongText_IsTruncatedAtRequestedLength) {
  EXPECT_EQ(printable(std::string(500, 'x'), 500), std::string(500, 'x'));
  EXPECT_EQ(printable(std::string(502, 'x'), 500), std::string(501, 'x') + "...");
}

TEST(PrintableTest, PrintableLines_KeepLineBreaks) {
  const std::string line(1'000, 'x');
  EXPECT_EQ(printable_lines(line + "\n\x1b[2J\n"), line + "\n\\x1b[2J\n");
}

TEST(PrintableTest, WithoutPassword_HidesUserAndPasswordOfUrls) {
  EXPECT_EQ(without_password("http://root:secret@host:2379"), "http://***@host:2379");
  EXPECT_EQ(without_password("http://secret@host"), "http://***@host") << "a token in place of the user";
  EXPECT_EQ(without_password("http://u:s/e?c#r@e\"t@host/"), "http://***@host/") << "not encoded";
  EXPECT_EQ(without_password("u:secret@host"), "***@host") << "the scheme is missing";
  EXPECT_EQ(without_password("http:/u:secret@host"), "***@host");
  EXPECT_EQ(without_password(R"({"x":["http://a","http://u:secret@b"]})"), R"({"x":["http://***@b"]})");
  EXPECT_EQ(without_password("postgresql://u:secret@h/d?password=secret&x=y"),
            "postgresql://***@h/d?password=***");
}

TEST(PrintableTest, WithoutPassword_KeepsOtherTexts) {
  for (const char* text :
       {"http://host:2379", "", "@", "a@b", "/srv/a:b@c", "unix:/run/a@b", "a@b:c", "http:/host"})
    EXPECT_EQ(without_password(text), text);
}

}  // namespace
}  // namespace spoor::base
