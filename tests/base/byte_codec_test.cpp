#include "base/byte_codec.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

#include "tests/support/random.h"

namespace spoor::base {
namespace {

using namespace std::string_view_literals;

TEST(ByteCodecTest, Fields_AreLittleEndianAndFixedWidth) {
  ByteWriter out;
  out.u8(0x01);
  out.u16(0x0203);
  out.u32(0x04050607);
  out.u64(0x08090a0b0c0d0e0fU);
  EXPECT_EQ(out.bytes(), "\x01\x03\x02\x07\x06\x05\x04\x0f\x0e\x0d\x0c\x0b\x0a\x09\x08"sv);
}

TEST(ByteCodecTest, BigEndianWord_IsReadHighestByteFirst) {
  ByteReader in("\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"sv);
  EXPECT_EQ(in.u64_big(), 0x08090a0b0c0d0e0fU);
}

TEST(ByteCodecTest, WrittenFields_AreReadBack) {
  constexpr std::array<std::uint64_t, 2> words{1, std::numeric_limits<std::uint64_t>::max()};
  ByteWriter out;
  out.u8(0xff);
  out.u16(0xfffe);
  out.u32(0xfffffffd);
  out.u64(0xfffffffffffffffcU);
  out.short_string("with a \0 byte"sv);
  out.words(words);
  out.raw("end");

  const std::string bytes = out.take();
  ByteReader in(bytes);
  EXPECT_EQ(in.u8(), 0xff);
  EXPECT_EQ(in.u16(), 0xfffe);
  EXPECT_EQ(in.u32(), 0xfffffffd);
  EXPECT_EQ(in.u64(), 0xfffffffffffffffcU);
  EXPECT_EQ(in.short_string(), "with a \0 byte"sv);
  EXPECT_EQ(in.u64(), words[0]);
  EXPECT_EQ(in.u64(), words[1]);
  EXPECT_EQ(in.raw(3), "end");
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.remaining(), 0U);
}

TEST(ByteCodecTest, LongestShortString_IsReadBack) {
  const std::string longest(std::numeric_limits<std::uint16_t>::max(), 'x');
  ByteWriter out;
  out.short_string(longest);
  EXPECT_EQ(ByteReader(out.bytes()).short_string(), longest);
}

TEST(ByteCodecTest, ReadPastEnd_ReturnsZeroAndFails) {
  ByteReader in("\xff\xff\xff"sv);
  EXPECT_EQ(in.u32(), 0U);
  EXPECT_FALSE(in.ok());
}

TEST(ByteCodecTest, FailedReader_StaysFailedAndEmpty) {
  // What is left after a short read must not be taken for the next field.
  ByteReader in("\xff\xff\xff"sv);
  in.u64();
  EXPECT_EQ(in.u8(), 0U);
  EXPECT_EQ(in.remaining(), 0U);
  EXPECT_FALSE(in.ok());
}

TEST(ByteCodecTest, RawLengthBeyondEnd_IsRefused) {
  for (const std::uint64_t length :
       {std::uint64_t{4}, std::uint64_t{1} << 60U, std::numeric_limits<std::uint64_t>::max()}) {
    ByteReader in("abc");
    EXPECT_TRUE(in.raw(length).empty()) << length;
    EXPECT_FALSE(in.ok()) << length;
  }
}

TEST(ByteCodecTest, TruncatedShortString_Fails) {
  ByteWriter out;
  out.short_string("hello");
  ByteReader in(std::string_view(out.bytes()).substr(0, out.bytes().size() - 1));
  EXPECT_EQ(in.short_string(), "");
  EXPECT_FALSE(in.ok());
}

TEST(ByteCodecTest, EmptyInput_FailsOnlyWhenRead) {
  ByteReader in("");
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.raw(0), "");
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.u8(), 0U);
  EXPECT_FALSE(in.ok());
}

TEST(ByteCodecTest, RandomReads_NeverLeaveTheInput) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 2'000; ++round) {
    // An exact copy on the heap: the address sanitizer sees one byte too many.
    const std::string bytes = random.bytes(random.below(40));
    ByteReader in(bytes);
    std::size_t left = bytes.size();
    for (int read = 0; read < 12; ++read) {
      switch (random.below(6)) {
        case 0:
          in.u8();
          break;
        case 1:
          in.u16();
          break;
        case 2:
          in.u32();
          break;
        case 3:
          in.u64();
          break;
        case 4:
          in.u64_big();
          break;
        default:
          in.short_string();
      }
      ASSERT_LE(in.remaining(), left);
      left = in.remaining();
    }
  }
}

}  // namespace
}  // namespace spoor::base
