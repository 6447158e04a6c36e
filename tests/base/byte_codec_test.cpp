#include "base/byte_codec.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

#include "tests/support/random.h"

namespace spoor::base {
namespace {

using namespace std::string_view_literals;

TEST(ByteCodecTest, Fields_AreLittleEndianAndFixedWidthAndReadBack) {
  constexpr std::array<std::uint64_t, 2> words{1, std::numeric_limits<std::uint64_t>::max()};
  const std::string longest(std::numeric_limits<std::uint16_t>::max(), 'x');
  ByteWriter out;
  out.u8(0x01);
  out.u16(0x0203);
  out.u32(0x04050607);
  out.u64(0x08090a0b0c0d0e0fU);
  EXPECT_EQ(out.bytes(), "\x01\x03\x02\x07\x06\x05\x04\x0f\x0e\x0d\x0c\x0b\x0a\x09\x08"sv);
  out.short_string("with a \0 byte"sv);
  out.short_string(longest);
  out.words(words);
  out.raw("end");

  const std::string bytes = out.take();
  ByteReader in(bytes);
  EXPECT_EQ(in.u8(), 0x01);
  EXPECT_EQ(in.u16(), 0x0203);
  EXPECT_EQ(in.u32(), 0x04050607U);
  EXPECT_EQ(in.u64(), 0x08090a0b0c0d0e0fU);
  EXPECT_EQ(in.short_string(), "with a \0 byte"sv);
  EXPECT_EQ(in.short_string(), longest);
  std::array<std::uint64_t, 2> read{};
  in.words(read);
  EXPECT_EQ(read, words);
  EXPECT_EQ(in.raw(3), "end");
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(in.remaining(), 0U);
  EXPECT_EQ(ByteReader("\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"sv).u64_big(), 0x08090a0b0c0d0e0fU);
}

TEST(ByteCodecTest, NumbersOfVariableLength_AreReadBackOrRefused) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, most / 2, most / 2 + 1, most - 63, most}) {
    ByteWriter out;
    out.number(value);
    out.difference(value);
    ByteReader in(out.bytes());
    EXPECT_EQ(in.number(), value);
    EXPECT_EQ(in.difference(), value);
    EXPECT_TRUE(in.ok() && in.remaining() == 0);
  }
  ByteWriter small;
  small.difference(most);
  EXPECT_EQ(small.bytes(), "\x01") << "-1";
  ByteReader endless("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80");
  EXPECT_EQ(endless.number(), 0U);
  EXPECT_FALSE(endless.ok());
}

// What is left after a short read must not be taken for the next field.
TEST(ByteCodecTest, ReadPastEnd_ReturnsZeroAndStaysFailed) {
  ByteReader empty("");
  EXPECT_EQ(empty.raw(0), "");
  EXPECT_TRUE(empty.ok()) << "until something is read";
  ByteReader in("\xff\xff\xff"sv);
  EXPECT_EQ(in.u32(), 0U);
  EXPECT_EQ(in.u8(), 0U);
  EXPECT_EQ(in.remaining(), 0U);
  EXPECT_FALSE(in.ok());
  for (const std::uint64_t length :
       {std::uint64_t{4}, std::uint64_t{1} << 60U, std::numeric_limits<std::uint64_t>::max()}) {
    ByteReader bytes("abc");
    EXPECT_TRUE(bytes.raw(length).empty()) << length;
    EXPECT_FALSE(bytes.ok()) << length;
  }
  ByteReader cut_off("\x05\x00hell"sv);
  EXPECT_EQ(cut_off.short_string(), "");
  EXPECT_FALSE(cut_off.ok());
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
