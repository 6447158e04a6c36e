#include "tracker/cycles/ids.h"

#include <gtest/gtest.h>

#include <string_view>

namespace spoor::tracker {
namespace {

TEST(InstanceIdTest, RandomIds_DifferAndAreNotNone) {
  const InstanceId one = InstanceId::random();
  EXPECT_FALSE(one.is_none());
  EXPECT_NE(one, InstanceId::random());
}

TEST(InstanceIdTest, ToString_Is32HexDigitsAndParsesBack) {
  InstanceId id;
  for (std::size_t at = 0; at < id.bytes.size(); ++at) id.bytes[at] = static_cast<std::uint8_t>(at * 17);
  EXPECT_EQ(id.to_string(), "00112233445566778899aabbccddeeff");
  EXPECT_EQ(InstanceId::parse(id.to_string()), id);
}

TEST(InstanceIdTest, MalformedText_DoesNotParse) {
  for (const std::string_view text :
       {"", "0", "00112233445566778899aabbccddeef", "00112233445566778899aabbccddeefff",
        "00112233445566778899aabbccddeefg", "0x112233445566778899aabbccddeeff"}) {
    EXPECT_FALSE(InstanceId::parse(text)) << text;
  }
}

}  // namespace
}  // namespace spoor::tracker
