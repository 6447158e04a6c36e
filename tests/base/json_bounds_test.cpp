#include "base/json_bounds.h"

#include <gtest/gtest.h>

#include <string>

namespace spoor::base {
namespace {

TEST(JsonBoundsTest, ArraysAndObjects_CountAsLevels) {
  EXPECT_FALSE(is_nested_deeper("", 0));
  EXPECT_FALSE(is_nested_deeper("5", 0));
  EXPECT_TRUE(is_nested_deeper("[]", 0));
  EXPECT_FALSE(is_nested_deeper("[[],{}]", 2));
  EXPECT_TRUE(is_nested_deeper("[[],{}]", 1));
  EXPECT_TRUE(is_nested_deeper(R"({"a":[{"b":1}]})", 2));
  EXPECT_FALSE(is_nested_deeper(R"({"a":[{"b":1}]})", 3));
}

TEST(JsonBoundsTest, BracketsInStrings_DoNotCount) {
  EXPECT_FALSE(is_nested_deeper(R"(["[[[{", "\"[[", "\\"])", 1));
  EXPECT_TRUE(is_nested_deeper(R"(["\\",[])", 1));
}

TEST(JsonBoundsTest, TextThatIsNotJson_CountsUpToItsEnd) {
  EXPECT_FALSE(is_nested_deeper("]]}}[", 1));
  EXPECT_FALSE(is_nested_deeper("\"\\", 0));
  EXPECT_TRUE(is_nested_deeper(std::string(5'000'000, '['), 64));
}

TEST(JsonBoundsTest, Values_AreCountedAtAnyDepth) {
  EXPECT_FALSE(has_more_values("5", 1));
  EXPECT_FALSE(has_more_values(R"({"a":[1,{"b":2}],"c":3})", 6));
  EXPECT_TRUE(has_more_values(R"({"a":[1,{"b":2}],"c":3})", 5));
  EXPECT_FALSE(has_more_values(R"(["a,[{,\",\""])", 2)) << "in strings";
  EXPECT_TRUE(has_more_values("[" + std::string(100, ','), 100));
}

}  // namespace
}  // namespace spoor::base
