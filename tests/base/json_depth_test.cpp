#include "base/json_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace spoor::base {
namespace {

TEST(JsonDepthTest, ArraysAndObjects_CountAsLevels) {
  EXPECT_FALSE(is_nested_deeper("", 0));
  EXPECT_FALSE(is_nested_deeper("5", 0));
  EXPECT_TRUE(is_nested_deeper("[]", 0));
  EXPECT_FALSE(is_nested_deeper("[[],{}]", 2));
  EXPECT_TRUE(is_nested_deeper("[[],{}]", 1));
  EXPECT_TRUE(is_nested_deeper(R"({"a":[{"b":1}]})", 2));
  EXPECT_FALSE(is_nested_deeper(R"({"a":[{"b":1}]})", 3));
}

TEST(JsonDepthTest, BracketsInStrings_DoNotCount) {
  EXPECT_FALSE(is_nested_deeper(R"(["[[[{", "\"[[", "\\"])", 1));
  EXPECT_TRUE(is_nested_deeper(R"(["\\",[])", 1));
}

TEST(JsonDepthTest, TextThatIsNotJson_CountsUpToItsEnd) {
  EXPECT_FALSE(is_nested_deeper("]]}}[", 1));
  EXPECT_FALSE(is_nested_deeper("\"\\", 0));
  EXPECT_TRUE(is_nested_deeper(std::string(5'000'000, '['), 64));
}

}  // namespace
}  // namespace spoor::base
