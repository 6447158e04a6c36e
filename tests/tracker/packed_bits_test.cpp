#include "tracker/filter/packed_bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "tests/support/largest_allocation.h"
#include "tests/tracker/samples.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

using Words = std::vector<std::uint64_t>;

constexpr std::uint64_t most_bits = std::uint64_t{1} << 36U;
constexpr auto no_bound = std::numeric_limits<std::uint64_t>::max();

Words words_of(const std::vector<std::uint64_t>& positions, std::uint64_t bits) {
  Words words((bits + 63) / 64);
  for (const std::uint64_t position : positions) words[position / 64] |= std::uint64_t{1} << (position % 64);
  return words;
}

Words random_words(support::Random& random, std::uint64_t bits, double density) {
  Words words((bits + 63) / 64);
  for (std::uint64_t bit = 0; bit < bits; ++bit) {
    if (static_cast<double>(random.below(1'000'000)) < density * 1'000'000)
      words[bit / 64] |= std::uint64_t{1} << (bit % 64);
  }
  return words;
}

Words unpacked(const PackedBits& packed, std::uint64_t bits) {
  Words words((bits + 63) / 64);
  packed.unpack_into(words);
  return words;
}

bool has_bit(const Words& words, std::uint64_t bit) { return (words[bit / 64] >> (bit % 64) & 1U) != 0; }

// Written by hand: what no pack() would write.
std::string stream_of(std::uint64_t count, std::uint8_t rice, std::string_view bits_in_order) {
  base::ByteWriter out;
  out.u64(count);
  out.u8(rice);
  for (std::size_t at = 0; at < bits_in_order.size(); at += 8) {
    unsigned byte = 0;
    for (unsigned bit = 0; bit < 8 && at + bit < bits_in_order.size(); ++bit)
      byte |= (bits_in_order[at + bit] == '1' ? 1U : 0U) << bit;
    out.u8(static_cast<std::uint8_t>(byte));
  }
  return out.take();
}

void expect_refused(std::string_view bytes, std::uint64_t bits, std::string_view why) {
  support::reset_largest_allocation();
  const auto packed = PackedBits::parse(bytes, bits);
  EXPECT_LT(support::largest_allocation_bytes(), 2 * bytes.size() + 4096) << "allocated by what it was told";
  ASSERT_FALSE(packed) << why;
  EXPECT_EQ(packed.error().code, Errc::invalid_shape);
  EXPECT_NE(packed.error().message.find(why), std::string::npos) << packed.error().message;
}

TEST(PackedBitsTest, EncodedBytes_MatchTheFormat) {
  // Gaps 5, 0, 26: two zeros, a one, and the lowest bit; and so on.
  const Words words = words_of({5, 6, 33}, 40);
  const auto packed = PackedBits::parse(stream_of(3, 1,
                                                  "0011"
                                                  "10"
                                                  "00000000000001"
                                                  "0"),
                                        40);
  ASSERT_TRUE(packed) << packed.error().message;
  EXPECT_EQ(unpacked(*packed, 40), words);
  EXPECT_EQ(packed->count(), 3U);

  const auto own = PackedBits::pack(words_of({5, 6, 1000}, 1024), no_bound);
  ASSERT_TRUE(own);
  // Gaps 5, 0, 993.
  EXPECT_EQ(own->bytes(), stream_of(3, 8,
                                    "110100000"
                                    "100000000"
                                    "0001"
                                    "10000111"));
}

void expect_round_trip(support::Random& random, const Words& words, std::uint64_t bits) {
  const auto packed = PackedBits::pack(words, no_bound);
  ASSERT_TRUE(packed);
  const auto parsed = PackedBits::parse(packed->bytes(), bits);
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->bytes(), packed->bytes());
  ASSERT_EQ(parsed->memory_bytes(), packed->memory_bytes());
  for (const PackedBits& each : {*packed, *parsed}) {
    ASSERT_EQ(each.count(), count_bits(words));
    ASSERT_EQ(unpacked(each, bits), words);
    for (std::uint64_t bit = 0; bit < bits; bit += random.between(1, 1 + bits / 500))
      ASSERT_EQ(each.test(bit), has_bit(words, bit)) << bit;
  }
}

TEST(PackedBitsTest, RandomBitsAndRuns_RoundTripAtEveryDensity) {
  SPOOR_RANDOM(random);
  for (const double density : {0.0, 0.0001, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.37, 0.5, 0.9, 1.0}) {
    for (const std::uint64_t bits : {1U, 2U, 63U, 64U, 65U, 1'000U, 16'384U, 50'001U}) {
      ASSERT_NO_FATAL_FAILURE(expect_round_trip(random, random_words(random, bits, density), bits))
          << density << ' ' << bits;
    }
  }
  // Runs, and gaps far longer and shorter than the parameter is made for.
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t bits = random.between(1, 200'000);
    Words words((bits + 63) / 64);
    for (std::uint64_t runs = random.below(8); runs > 0; --runs) {
      std::uint64_t bit = random.below(bits);
      for (std::uint64_t n = random.between(1, 3'000); n > 0 && bit < bits; --n, bit += random.between(1, 3))
        words[bit / 64] |= std::uint64_t{1} << (bit % 64);
    }
    ASSERT_NO_FATAL_FAILURE(expect_round_trip(random, words, bits)) << bits;
  }
}

TEST(PackedBitsTest, UnpackInto_KeepsBitsAlreadySet) {
  const auto packed = PackedBits::pack(words_of({3, 500}, 1'000), no_bound);
  Words words = words_of({4, 500, 999}, 1'000);
  packed->unpack_into(words);
  EXPECT_EQ(words, words_of({3, 4, 500, 999}, 1'000));
}

TEST(PackedBitsTest, SparseBitsOfLargestSize_TakeFewBytes) {
  constexpr std::uint64_t bits = most_bits;
  // The one bit, as far away as can be: 2^35 * 1 and the rest.
  const std::string last = stream_of(1, 35, "01" + std::string(35, '1'));
  const auto packed = PackedBits::parse(last, bits);
  ASSERT_TRUE(packed) << packed.error().message;
  EXPECT_TRUE(packed->test(bits - 1));
  EXPECT_FALSE(packed->test(bits - 2));
  EXPECT_FALSE(packed->test(0));
  EXPECT_LT(packed->memory_bytes(), 64U);
  expect_refused(last, bits - 1, "beyond");
  // And with the largest parameter there is.
  EXPECT_TRUE(PackedBits::parse(stream_of(1, 36, "1" + std::string(36, '1')), bits).value().test(bits - 1));
}

TEST(PackedBitsTest, PackedSize_IsWithinFourPercentOfEntropy) {
  SPOOR_RANDOM(random);
  constexpr std::uint64_t bits = 400'000;
  for (const double density : {0.003, 0.01, 0.03, 0.1, 0.2, 0.3}) {
    const Words words = random_words(random, bits, density);
    const auto packed = PackedBits::pack(words, no_bound);
    ASSERT_TRUE(packed);
    const double set = static_cast<double>(packed->count()) / bits;
    const double entropy = -(set * std::log2(set) + (1 - set) * std::log2(1 - set)) * bits / 8;
    EXPECT_LT(static_cast<double>(packed->bytes().size()), 1.04 * entropy + 10) << density;
  }
}

TEST(PackedBitsTest, PackNotShorterThanLimit_IsRefusedWithLittleMemory) {
  SPOOR_RANDOM(random);
  const Words words = random_words(random, 10'000, 0.05);
  const std::uint64_t size = PackedBits::pack(words, no_bound)->bytes().size();
  EXPECT_FALSE(PackedBits::pack(words, size));
  EXPECT_FALSE(PackedBits::pack(words, 0));
  const auto packed = PackedBits::pack(words, size + size / 20);
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->bytes().size(), size);
  const Words dense = random_words(random, 400'000, 0.5);
  support::reset_largest_allocation();
  EXPECT_FALSE(PackedBits::pack(dense, dense.size() * 8));
  EXPECT_LT(support::largest_allocation_bytes(), 1024U);
}

TEST(PackedBitsTest, MalformedStream_IsRefused) {
  EXPECT_TRUE(PackedBits::parse(stream_of(0, 0, ""), 1));
  EXPECT_TRUE(PackedBits::parse(stream_of(2, 0, "11"), 2));
  const std::tuple<std::string, std::uint64_t, const char*> cases[] = {
      {"", 10, "cut off"},
      {stream_of(0, 0, "").substr(0, 8), 10, "cut off"},
      {stream_of(0, 37, ""), 10, "Rice"},
      {stream_of(1, 255, "1"), 10, "Rice"},
      {stream_of(9, 0, "11111111"), 10, "more positions than"},
      {stream_of(no_bound, 36, "1111"), 10, "more positions than"},
      {stream_of(2, 0, "01"), 10, "cut off in"},
      {stream_of(1, 7, "01010101"), 10'000, "cut off in"},
      {stream_of(2, 2, "10000001"), 10'000, "cut off in"},
      {stream_of(2, 0, "11"), 1, "beyond"},
      {stream_of(1, 0, "0001"), 3, "beyond"},
      {stream_of(1, 0, "101"), 10, "after the last"},
      {stream_of(1, 0, "100000000"), 10, "after the last"},
      {stream_of(0, 0, "0"), 10, "after the last"},
  };
  for (const auto& [bytes, bits, why] : cases) expect_refused(bytes, bits, why);
}

TEST(PackedBitsTest, EndlessRunsAndOverflowingGaps_AreRefused) {
  const std::string zeros(100'000, '0');
  for (const unsigned rice : {0U, 1U, 20U, 36U}) {
    const auto parameter = static_cast<std::uint8_t>(rice);
    expect_refused(stream_of(1, parameter, zeros), most_bits, "cut off in");
    expect_refused(stream_of(1, parameter, zeros + "1" + std::string(rice, '1')), 99'999, "beyond");
  }
  // 2^28 zeros, each of 2^36: 2^64, which would be none at all.
  expect_refused(stream_of(1, 36, std::string(std::size_t{1} << 28U, '0') + "1" + std::string(36, '0')),
                 most_bits, "beyond");
}

TEST(PackedBitsTest, FlippedBitOrTruncation_IsRefusedOrStaysInBounds) {
  SPOOR_RANDOM(random);
  constexpr std::uint64_t bits = 3'001;
  const Words words = random_words(random, bits, 0.1);
  const auto whole = PackedBits::pack(words, no_bound);
  const std::string bytes(whole->bytes());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    ASSERT_FALSE(PackedBits::parse(std::string_view(bytes).substr(0, size), bits)) << size;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto packed = PackedBits::parse(flipped(bytes, bit / 8, 1 << (bit % 8)), bits);
    if (!packed) continue;
    const Words now = unpacked(*packed, bits);
    ASSERT_EQ(count_bits(now), packed->count());
    ASSERT_EQ(now.back() >> (bits % 64), 0U);
    for (std::uint64_t at = 0; at < bits; at += 7) ASSERT_EQ(packed->test(at), has_bit(now, at));
  }
}

TEST(CountBitsTest, WordsOfAnySize_AreCountedExactly) {
  SPOOR_RANDOM(random);
  EXPECT_EQ(count_bits({}), 0U);
  for (const std::size_t size : {1U, 2U, 4'094U, 4'095U, 4'096U, 9'000U}) {
    EXPECT_EQ(count_bits(Words(size, ~std::uint64_t{0})), size * 64);
    Words words(size);
    std::uint64_t expected = 0;
    for (std::uint64_t& word : words) {
      word = random.next() >> random.below(64);
      expected += static_cast<std::uint64_t>(std::popcount(word));
    }
    EXPECT_EQ(count_bits(words), expected);
  }
}

}  // namespace
}  // namespace spoor::tracker
