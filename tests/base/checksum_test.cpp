#include "base/checksum.h"

#include <gtest/gtest.h>

namespace spoor::base {
namespace {

// Values published with XXH3: another one would make every file on every disk "corrupt".
TEST(ChecksumTest, PublishedVectors_MatchXxh3WithSeedZero) {
  EXPECT_EQ(checksum(""), 0x2d06800538d394c2U);
  EXPECT_EQ(checksum("a"), 0xe6c632b61e964e1fU);
  EXPECT_EQ(checksum("abc"), 0x78af5f94892f3950U);
}

}  // namespace
}  // namespace spoor::base
