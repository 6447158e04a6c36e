#include "tracker/mark_set_codec.h"

#include <gtest/gtest.h>

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

void expect_corrupt(std::string_view bytes) {
  support::reset_largest_allocation();
  const auto marks = decoded(bytes);
  EXPECT_LT(support::largest_allocation_bytes(), 64U * 1024) << "allocated by a length it was told";
  ASSERT_FALSE(marks);
  EXPECT_EQ(marks.error().code, Errc::snapshot_corrupt);
}

TEST(MarkSetCodecTest, WhatWasEncodedIsDecoded) {
  const auto marks = decoded(encoded(varied()));
  ASSERT_TRUE(marks);
  EXPECT_EQ(encoded(*marks), encoded(varied()));
  EXPECT_EQ(marks->filters().size(), 2U);
  EXPECT_TRUE(contains(*marks, "bucket/now"));
  EXPECT_TRUE(contains(*marks, "foreign"));
  EXPECT_TRUE(contains(*marks, "bucket/tree/x"));
}

TEST(MarkSetCodecTest, AnEmptySetIsDecoded) { EXPECT_TRUE(decoded(encoded(MarkSet())).value().empty()); }

TEST(MarkSetCodecTest, TheRootAndTheLongestTreeMarkAreDecoded) {
  MarkSet root;
  root.add_tree("");
  EXPECT_TRUE(decoded(encoded(root)).value().tree_marks().covers("any"));

  std::string longest(path_bytes_max, 'x');
  for (std::size_t at = 200; at < longest.size(); at += 200) longest[at] = '/';
  MarkSet deep;
  deep.add_tree(longest);
  EXPECT_TRUE(decoded(encoded(deep)).value().tree_marks().covers(longest));
}

TEST(MarkSetCodecTest, ReadingStopsBehindTheSet) {
  const std::string bytes = encoded(varied()) + "next";
  base::ByteReader in(bytes);
  ASSERT_TRUE(decode_mark_set(in));
  EXPECT_EQ(in.raw(4), "next");
}

TEST(MarkSetCodecTest, EveryTruncationIsRefused) {
  const std::string bytes = encoded(varied());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    expect_corrupt(std::string_view(bytes).substr(0, size));
}

TEST(MarkSetCodecTest, AFilterLongerThanTheInputIsRefusedBeforeItIsAllocated) {
  base::ByteWriter out;
  out.u16(1);
  out.u64(BloomShape::bits_max);
  out.u64(4);
  expect_corrupt(out.bytes());
}

// ancestor 4
TEST(MarkSetCodecTest, AnImpossibleShapeIsRefused) {
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

TEST(MarkSetCodecTest, CountsBeyondTheInputAreRefused) {
  base::ByteWriter filters;
  filters.u16(0xffff);
  expect_corrupt(filters.bytes());
  base::ByteWriter trees;
  trees.u16(0);
  trees.u32(0xffffffff);
  expect_corrupt(trees.bytes());
}

TEST(MarkSetCodecTest, ATreeMarkOverTheLongestPathIsRefused) {
  base::ByteWriter out;
  out.u16(0);
  out.u32(1);
  out.short_string(std::string(path_bytes_max + 1, 'x'));
  expect_corrupt(out.bytes());
}

// One that ends in a slash would cover nothing.
TEST(MarkSetCodecTest, ATreeMarkThatIsNoNormalisedPathIsRefused) {
  for (const std::string_view path : {"a/", "a//b", "/", "../x", "."}) {
    base::ByteWriter out;
    out.u16(0);
    out.u32(1);
    out.short_string(path);
    expect_corrupt(out.bytes());
  }
}

TEST(MarkSetCodecTest, RandomMutationsNeverCrashNorAllocateByWhatTheySay) {
  SPOOR_RANDOM(random);
  const std::string whole = encoded(varied());
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
