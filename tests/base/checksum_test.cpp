#include "base/checksum.h"

#include <gtest/gtest.h>

#include <string>

namespace spoor::base {
namespace {

// Values published with XXH3: another one would make every file on every disk "corrupt".
TEST(ChecksumTest, PublishedVectors_MatchXxh3WithSeedZero) {
  EXPECT_EQ(checksum(""), 0x2d06800538d394c2U);
  EXPECT_EQ(checksum("a"), 0xe6c632b61e964e1fU);
  EXPECT_EQ(checksum("abc"), 0x78af5f94892f3950U);
}

TEST(ChecksumTest, FlippedBit_ChangesChecksum) {
  std::string bytes = "bucket/prefix/object";
  const std::uint64_t whole = checksum(bytes);
  for (char& byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const char flip = static_cast<char>(1 << bit);
      byte = static_cast<char>(byte ^ flip);
      EXPECT_NE(checksum(bytes), whole);
      byte = static_cast<char>(byte ^ flip);
    }
  }
}

}  // namespace
}  // namespace spoor::base
