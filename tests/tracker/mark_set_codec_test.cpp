#include "tracker/storage/mark_set_codec.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/largest_allocation.h"
#include "tests/tracker/samples.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

MarkSet varied() { return *varied_state().current_marks; }

// A filter that packs and one that does not, and tree marks.
MarkSet with_sparse() {
  MarkSet marks = varied();
  marks.merge(mark_set_of({"x", "y", "z"}, {3'001, 4}));
  return marks;
}

std::string bytes_by(const std::function<void(base::ByteWriter&)>& write) {
  base::ByteWriter out;
  write(out);
  return out.take();
}

void head_of(base::ByteWriter& out, BloomShape shape, std::uint32_t form) {
  out.u64(shape.bits);
  out.u32(static_cast<std::uint32_t>(shape.hashes));
  out.u32(form);
}

// One position, 0, as packed bits; `length` is what is told of them.
void packed_filter(base::ByteWriter& out, BloomShape shape, std::uint64_t length = 10) {
  head_of(out, shape, 1);
  out.u64(length);
  out.u64(1);
  out.u8(0);
  out.u8(1);
}

// A set without filters and with one tree mark.
std::string with_tree(std::string_view path) {
  return bytes_by([&](auto& out) {
    out.u16(0);
    out.u32(1);
    out.short_string(path);
  });
}

std::vector<std::vector<std::uint64_t>> all_bits_of(const MarkSet& marks) {
  std::vector<std::vector<std::uint64_t>> bits;
  for (const BloomFilter& filter : marks.filters()) bits.push_back(bits_of(filter));
  return bits;
}

// Decodes within the memory that such an input may take.
base::Result<MarkSet> decoded_within_bounds(std::string_view bytes) {
  support::reset_largest_allocation();
  auto marks = decoded(bytes);
  EXPECT_LT(support::largest_allocation_bytes(), 64U * 1024) << "allocated by a length it was told";
  return marks;
}

void expect_corrupt(std::string_view bytes) {
  const auto marks = decoded_within_bounds(bytes);
  ASSERT_FALSE(marks);
  EXPECT_EQ(marks.error().code, Errc::snapshot_corrupt);
}

TEST(MarkSetCodecTest, EncodedSet_IsDecodedAndBytesAfterItAreLeftUnread) {
  const std::string bytes = encoded(varied()) + "next";
  base::ByteReader in(bytes);
  const auto marks = decode_mark_set(in);
  ASSERT_TRUE(marks);
  EXPECT_EQ(in.raw(4), "next");
  EXPECT_EQ(encoded(*marks), encoded(varied()));
  EXPECT_EQ(marks->filters().size(), 2U);
  for (const char* path : {"bucket/now", "foreign", "bucket/tree/x"}) EXPECT_TRUE(contains(*marks, path));
  EXPECT_TRUE(decoded(encoded(MarkSet())).value().empty());
}

TEST(MarkSetCodecTest, SparseFilter_IsPackedAndStaysPacked) {
  const std::string bytes = encoded(with_sparse());
  EXPECT_LT(bytes.size(), 250U);
  const auto marks = decoded(bytes).value();
  ASSERT_EQ(marks.filters().size(), 3U);
  EXPECT_FALSE(marks.filters()[0].is_packed());
  EXPECT_TRUE(marks.filters()[2].is_packed());
  EXPECT_EQ(all_bits_of(marks), all_bits_of(with_sparse()));
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
      ASSERT_EQ(all_bits_of(*again), all_bits_of(marks));
    }
  }
}

TEST(MarkSetCodecTest, FilterOfWords_IsAsInTheFormat) {
  const auto marks = decoded(bytes_by([](auto& out) {
    out.u16(1);
    head_of(out, {130, 3}, 0);
    out.words(std::vector<std::uint64_t>{1, 2, 3});
    out.u32(0);
  }));
  ASSERT_TRUE(marks);
  EXPECT_EQ(marks->filters().front().shape(), (BloomShape{130, 3}));
  EXPECT_EQ(all_bits_of(*marks).front(), (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(MarkSetCodecTest, UnknownFilterForm_IsRefusedAndNamed) {
  for (const std::uint32_t form : {2U, 7U, ~0U}) {
    const std::string bytes = bytes_by([&](auto& out) {
      out.u16(1);
      head_of(out, {64, 3}, form);
      out.u64(0);
      out.u32(0);
    });
    expect_corrupt(bytes);
    EXPECT_NE(decoded(bytes).error().message.find("form " + std::to_string(form)), std::string::npos);
  }
}

TEST(MarkSetCodecTest, LargestShapePacked_AllocatesFewBytes) {
  const std::string bytes = bytes_by([](auto& out) {
    out.u16(1);
    packed_filter(out, {BloomShape::bits_max, 4});
    out.u32(0);
  });
  const auto marks = decoded_within_bounds(bytes);
  ASSERT_TRUE(marks) << marks.error().message;
  EXPECT_EQ(encoded(*marks), bytes);
}

TEST(MarkSetCodecTest, DuplicateShape_IsMergedOrRefusedRatherThanUnpacked) {
  expect_corrupt(bytes_by([](auto& out) {
    out.u16(2);
    packed_filter(out, {BloomShape::bits_max, 4});
    packed_filter(out, {BloomShape::bits_max, 4});
    out.u32(0);
  }));
  const std::string words = bytes_by([](auto& out) {
    out.u16(2);
    for (const std::uint64_t word : {1U, 2U}) {
      head_of(out, {64, 4}, 0);
      out.u64(word);
    }
    out.u32(0);
  });
  EXPECT_EQ(all_bits_of(decoded(words).value()).front(), std::vector<std::uint64_t>{3});
}

TEST(MarkSetCodecTest, FilterCountBeyondMaximum_IsRefused) {
  for (const std::uint16_t count : {std::uint16_t{1024}, std::uint16_t{1025}}) {
    const std::string bytes = bytes_by([&](auto& out) {
      out.u16(count);
      for (std::uint64_t bits = 1; bits <= count; ++bits) packed_filter(out, {bits, 1});
      out.u32(0);
    });
    EXPECT_EQ(decoded(bytes).has_value(), count == 1024);
  }
}

TEST(MarkSetCodecTest, TreeMarks_HaveBoundsOfNumberAndBytes) {
  MarkSet deep;
  std::string longest(path_bytes_max, 'x');
  for (std::size_t at = 200; at < longest.size(); at += 200) longest[at] = '/';
  deep.add_tree(longest);
  EXPECT_TRUE(decoded(encoded(deep)).value().tree_marks().covers(longest));
  EXPECT_TRUE(decoded(encoded(trees_of({""}))).value().tree_marks().covers("any"));

  const auto of = [](std::size_t count, const std::string& top) {
    return bytes_by([&](auto& out) {
      out.u16(0);
      out.u32(static_cast<std::uint32_t>(count));
      for (std::size_t i = 0; i < count; ++i) out.short_string(top + std::to_string(i));
    });
  };
  EXPECT_TRUE(decoded(of(TreeMarks::count_max, "")));
  EXPECT_FALSE(decoded(of(TreeMarks::count_max + 1, "")));
  std::string top = std::string(100, 'x') + "/";
  while (top.size() < 1'000) top += top;
  const auto joined = decoded(of(5'000, top));
  ASSERT_TRUE(joined);
  EXPECT_LE(joined->tree_marks().bytes(), TreeMarks::bytes_max);
  for (int i = 0; i < 5'000; ++i) ASSERT_TRUE(joined->tree_marks().covers(top + std::to_string(i)));
}

TEST(MarkSetCodecTest, MalformedInput_IsRefusedBeforeAllocation) {
  const std::string whole = encoded(with_sparse());
  for (std::size_t size = 0; size < whole.size(); ++size)
    expect_corrupt(std::string_view(whole).substr(0, size));
  // ancestor 4: an impossible shape; a filter longer than the input; counts beyond it
  for (const BloomShape shape : {BloomShape{0, 4}, {64, 0}, {64, 65}, {~std::uint64_t{0}, 4}}) {
    expect_corrupt(bytes_by([&](auto& out) {
      out.u16(1);
      out.u64(shape.bits);
      out.u64(shape.hashes);
      out.u64(0);
      out.u32(0);
    }));
  }
  expect_corrupt(bytes_by([](auto& out) {
    out.u16(1);
    head_of(out, {BloomShape::bits_max, 4}, 0);
  }));
  expect_corrupt(bytes_by([](auto& out) { out.u16(0xffff); }));
  expect_corrupt(bytes_by([](auto& out) {
    out.u16(0);
    out.u32(0xffffffff);
  }));
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{9}, std::uint64_t{11}, ~std::uint64_t{0}}) {
    expect_corrupt(bytes_by([&](auto& out) {
      out.u16(1);
      packed_filter(out, {64, 4}, length);
      out.u32(0);
    }));
  }
  expect_corrupt(with_tree(std::string(path_bytes_max + 1, 'x')));
  // One that ends in a slash would cover nothing.
  for (const std::string_view path : {"a/", "a//b", "/", "../x", "."}) expect_corrupt(with_tree(path));
}

TEST(MarkSetCodecTest, FlippedBit_IsRefusedOrDecodesToAValidSet) {
  const std::string whole = encoded(with_sparse());
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    const std::string changed = flipped(whole, bit / 8, 1 << (bit % 8));
    const auto marks = decoded_within_bounds(changed);
    if (!marks) continue;
    const std::string again = encoded(*marks);
    ASSERT_LE(again.size(), changed.size()) << bit;
    ASSERT_EQ(encoded(decoded(again).value()), again) << bit;
  }
}

}  // namespace
}  // namespace spoor::tracker
