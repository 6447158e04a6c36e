#include "cli/program/format.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace spoor::cli {
namespace {

using namespace std::chrono_literals;

TEST(FormatTest, Numbers_HaveCommas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1234), "1,234");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
}

TEST(FormatTest, PrintJson_InvalidUtf8_IsReplaced) {
  testing::internal::CaptureStdout();
  print_json({{"path", "a\xff"}}, -1);
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "{\"path\":\"a\xef\xbf\xbd\"}\n");
}

TEST(FormatTest, Bytes_AreShownInBinaryUnits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(10ULL << 30U), "10 GiB");
  EXPECT_EQ(human_bytes(~0ULL - 1), "16 EiB");
  EXPECT_EQ(human_bytes(~0ULL), "16 EiB or more");
}

TEST(FormatTest, Durations_ShowAtMostTwoUnits) {
  EXPECT_EQ(human_duration(12ms), "12 ms");
  EXPECT_EQ(human_duration(3400ms), "3.4 s");
  EXPECT_EQ(human_duration(5min), "5 min");
  EXPECT_EQ(human_duration(130min), "2 h 10 min");
  EXPECT_EQ(human_duration(76h), "3 d 4 h");
}

TEST(FormatTest, TextOr_NonText_ReturnsFallback) {
  EXPECT_EQ(text_or("text", "other"), "text");
  EXPECT_EQ(text_or(nullptr, "other"), "other");
  EXPECT_EQ(text_or(7, "other"), "other");
}

TEST(FormatTest, CellWithControlCharacters_IsEscaped) {
  Table table({"name"});
  table.add({"evil\n\x1b[2J"});
  EXPECT_EQ(table.to_string(), "name\nevil\\x0a\\x1b[2J\n");
}

TEST(FormatTest, PrintText_EscapesControlCharacters) {
  testing::internal::CaptureStdout();
  print_text("one\n\x1b[2J\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "one\n\\x1b[2J\n");
  testing::internal::CaptureStdout();
  print_exact("one\n\x1b[2J\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "one\n\x1b[2J\n") << "for other programs";
}

TEST(FormatTest, Columns_AreAsWideAsTheirContent) {
  Table table({"a", "name", "n"}, {1});
  table.add({"xxx", "y", "1"});
  EXPECT_EQ(table.to_string(), "a    name  n\nxxx  y     1\n");
}

}  // namespace
}  // namespace spoor::cli
