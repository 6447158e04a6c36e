#include "tracker/storage/mark_set_codec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/largest_allocation.h"
#include "tests/tracker/samples.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

std::string encoded(const MarkSet& marks) {
  base::ByteWriter out;
  encode_mark_set(out, marks);
  return out.take();
}

base::Result<MarkSet> decoded(std::string_view bytes) {
  base::ByteReader in(bytes);
  return decode_mark_set(in);
}

MarkSet varied() { return *varied_state().current_marks; }

// A filter that packs and one that does not, and tree marks.
MarkSet with_sparse() {
  MarkSet marks = varied();
  for (const std::string_view path : {"x", "y", "z"}) marks.add(hash_path(path), {3'001, 4});
  return marks;
}

void head_of(base::ByteWriter& out, BloomShape shape, std::uint32_t form) {
  out.u64(shape.bits);
  out.u32(static_cast<std::uint32_t>(shape.hashes));
  out.u32(form);
}

// One position, 0, as packed bits.
void packed_filter(base::ByteWriter& out, BloomShape shape) {
  head_of(out, shape, 1);
  out.u64(10);
  out.u64(1);
  out.u8(0);
  out.u8(1);
}

std::vector<std::vector<std::uint64_t>> bits_of(const MarkSet& marks) {
  std::vector<std::vector<std::uint64_t>> bits;
  for (const BloomFilter& filter : marks.filters()) {
    BloomFilter dense(filter.shape());
    dense.merge(filter);
    bits.emplace_back(dense.words().begin(), dense.words().end());
  }
  return bits;
}

void expect_corrupt(std::string_view bytes) {
  support::reset_largest_allocation();
  const auto marks = decoded(bytes);
  EXPECT_LT(support::largest_allocation_bytes(), 64U * 1024) << "allocated by a length it was told";
  ASSERT_FALSE(marks);
  EXPECT_EQ(marks.error().code, Errc::snapshot_corrupt);
}

TEST(MarkSetCodecTest, EncodedSet_IsDecoded) {
  const auto marks = decoded(encoded(varied()));
  ASSERT_TRUE(marks);
  EXPECT_EQ(encoded(*marks), encoded(varied()));
  EXPECT_EQ(marks->filters().size(), 2U);
  EXPECT_TRUE(contains(*marks, "bucket/now"));
  EXPECT_TRUE(contains(*marks, "foreign"));
  EXPECT_TRUE(contains(*marks, "bucket/tree/x"));
}

TEST(MarkSetCodecTest, SparseFilter_IsPackedAndStaysPacked) {
  const std::string bytes = encoded(with_sparse());
  EXPECT_LT(bytes.size(), 250U);
  const auto marks = decoded(bytes).value();
  ASSERT_EQ(marks.filters().size(), 3U);
  EXPECT_FALSE(marks.filters()[0].is_packed());
  EXPECT_TRUE(marks.filters()[2].is_packed());
  EXPECT_EQ(bits_of(marks), bits_of(with_sparse()));
  EXPECT_EQ(encoded(marks), bytes);
  EXPECT_EQ(encoded(with_sparse().packed()), bytes);
}

TEST(MarkSetCodecTest, FilterBits_RoundTripAtEveryDensity) {
  SPOOR_RANDOM(random);
  for (const std::uint64_t items : {0U, 1U, 10U, 300U, 1'000U, 2'000U, 4'000U, 100'000U}) {
    for (const BloomShape shape : {BloomShape{1, 1}, {65, 2}, {20'000, 4}, {20'001, 3}}) {
      MarkSet marks;
      marks.add_filter(BloomFilter(shape));
      for (std::uint64_t n = items; n > 0; --n) marks.add(hash_path(random.bytes(8)), shape);
      const std::string bytes = encoded(marks);
      ASSERT_LE(bytes.size(), 22 + shape.byte_count());
      const auto again = decoded(bytes);
      ASSERT_TRUE(again) << again.error().message;
      ASSERT_EQ(bits_of(*again), bits_of(marks));
    }
  }
}

// Before there was a form, k had 64 bits.
TEST(MarkSetCodecTest, FilterInOldFormat_IsDecoded) {
  base::ByteWriter out;
  out.u16(1);
  out.u64(130);
  out.u64(3);
  out.words(std::vector<std::uint64_t>{1, 2, 3});
  out.u32(0);
  const auto marks = decoded(out.bytes());
  ASSERT_TRUE(marks);
  EXPECT_EQ(marks->filters().front().shape(), (BloomShape{130, 3}));
  EXPECT_EQ(bits_of(*marks).front(), (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(MarkSetCodecTest, UnknownFilterForm_IsRefusedAndNamed) {
  for (const std::uint32_t form : {2U, 7U, ~0U}) {
    base::ByteWriter out;
    out.u16(1);
    head_of(out, {64, 3}, form);
    out.u64(0);
    out.u32(0);
    expect_corrupt(out.bytes());
    EXPECT_NE(decoded(out.bytes()).error().message.find("form " + std::to_string(form)), std::string::npos);
  }
}

TEST(MarkSetCodecTest, LargestShapePacked_AllocatesFewBytes) {
  base::ByteWriter out;
  out.u16(1);
  packed_filter(out, {BloomShape::bits_max, 4});
  out.u32(0);
  support::reset_largest_allocation();
  const auto marks = decoded(out.bytes());
  ASSERT_TRUE(marks) << marks.error().message;
  EXPECT_EQ(encoded(*marks), out.bytes());
  EXPECT_LT(support::largest_allocation_bytes(), 64U * 1024);
}

TEST(MarkSetCodecTest, DuplicateLargeShape_IsRefusedRatherThanUnpacked) {
  base::ByteWriter out;
  out.u16(2);
  packed_filter(out, {BloomShape::bits_max, 4});
  packed_filter(out, {BloomShape::bits_max, 4});
  out.u32(0);
  expect_corrupt(out.bytes());
  base::ByteWriter words;
  words.u16(2);
  for (const std::uint64_t word : {1U, 2U}) {
    head_of(words, {64, 4}, 0);
    words.u64(word);
  }
  words.u32(0);
  EXPECT_EQ(bits_of(decoded(words.bytes()).value()).front(), std::vector<std::uint64_t>{3});
}

TEST(MarkSetCodecTest, PackedFilterWithWrongLength_IsRefused) {
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{9}, std::uint64_t{11}, ~std::uint64_t{0}}) {
    base::ByteWriter out;
    out.u16(1);
    head_of(out, {64, 4}, 1);
    out.u64(length);
    out.u64(1);
    out.u8(0);
    out.raw(std::string("\1", 1));
    out.u32(0);
    expect_corrupt(out.bytes());
  }
}

TEST(MarkSetCodecTest, FilterCountBeyondMaximum_IsRefused) {
  for (const std::uint16_t count : {std::uint16_t{1024}, std::uint16_t{1025}}) {
    base::ByteWriter out;
    out.u16(count);
    for (std::uint64_t bits = 1; bits <= count; ++bits) packed_filter(out, {bits, 1});
    out.u32(0);
    EXPECT_EQ(decoded(out.bytes()).has_value(), count == 1024);
  }
}

TEST(MarkSetCodecTest, FlippedBit_IsRefusedOrDecodesToValidSet) {
  const std::string bytes = encoded(with_sparse());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    support::reset_largest_allocation();
    const auto marks = decoded(changed);
    ASSERT_LT(support::largest_allocation_bytes(), 64U * 1024);
    if (!marks) continue;
    const std::string again = encoded(*marks);
    ASSERT_LE(again.size(), changed.size());
    ASSERT_EQ(encoded(decoded(again).value()), again) << bit;
  }
}

TEST(MarkSetCodecTest, EmptySet_IsDecoded) { EXPECT_TRUE(decoded(encoded(MarkSet())).value().empty()); }

TEST(MarkSetCodecTest, RootAndLongestTreeMark_AreDecoded) {
  MarkSet root;
  root.add_tree("");
  EXPECT_TRUE(decoded(encoded(root)).value().tree_marks().covers("any"));

  std::string longest(path_bytes_max, 'x');
  for (std::size_t at = 200; at < longest.size(); at += 200) longest[at] = '/';
  MarkSet deep;
  deep.add_tree(longest);
  EXPECT_TRUE(decoded(encoded(deep)).value().tree_marks().covers(longest));
}

TEST(MarkSetCodecTest, BytesAfterSet_AreLeftUnread) {
  const std::string bytes = encoded(varied()) + "next";
  base::ByteReader in(bytes);
  ASSERT_TRUE(decode_mark_set(in));
  EXPECT_EQ(in.raw(4), "next");
}

TEST(MarkSetCodecTest, TruncatedInput_IsRefused) {
  const std::string bytes = encoded(with_sparse());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    expect_corrupt(std::string_view(bytes).substr(0, size));
}

TEST(MarkSetCodecTest, FilterLongerThanInput_IsRefusedBeforeAllocation) {
  base::ByteWriter out;
  out.u16(1);
  out.u64(BloomShape::bits_max);
  out.u64(4);
  expect_corrupt(out.bytes());
}

// ancestor 4
TEST(MarkSetCodecTest, InvalidShape_IsRefused) {
  for (const auto& [bits, hashes] :
       {std::pair<std::uint64_t, std::uint64_t>{0, 4}, {64, 0}, {64, 65}, {~std::uint64_t{0}, 4}}) {
    base::ByteWriter out;
    out.u16(1);
    out.u64(bits);
    out.u64(hashes);
    out.u64(0);
    out.u32(0);
    expect_corrupt(out.bytes());
  }
}

TEST(MarkSetCodecTest, CountBeyondInput_IsRefused) {
  base::ByteWriter filters;
  filters.u16(0xffff);
  expect_corrupt(filters.bytes());
  base::ByteWriter trees;
  trees.u16(0);
  trees.u32(0xffffffff);
  expect_corrupt(trees.bytes());
}

TEST(MarkSetCodecTest, TreeMarkBeyondMaximumPathLength_IsRefused) {
  base::ByteWriter out;
  out.u16(0);
  out.u32(1);
  out.short_string(std::string(path_bytes_max + 1, 'x'));
  expect_corrupt(out.bytes());
}

// One that ends in a slash would cover nothing.
TEST(MarkSetCodecTest, TreeMarkNotNormalised_IsRefused) {
  for (const std::string_view path : {"a/", "a//b", "/", "../x", "."}) {
    base::ByteWriter out;
    out.u16(0);
    out.u32(1);
    out.short_string(path);
    expect_corrupt(out.bytes());
  }
}

TEST(MarkSetCodecTest, RandomMutations_NeverCrashOrOverallocate) {
  SPOOR_RANDOM(random);
  const std::string whole = encoded(with_sparse());
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = whole;
    for (std::uint64_t n = random.between(1, 4); n > 0; --n)
      bytes[random.below(bytes.size())] = random.byte();
    support::reset_largest_allocation();
    static_cast<void>(decoded(bytes));
    ASSERT_LT(support::largest_allocation_bytes(), 64U * 1024);
  }
}

}  // namespace
}  // namespace spoor::tracker
