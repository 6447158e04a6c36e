// Mark sets, with no checksum in the way, and packed bits alone.
#include <string>
#include <vector>

#include "base/byte_codec.h"
#include "tests/fuzz/fuzz_support.h"
#include "tracker/errors.h"
#include "tracker/storage/mark_set_codec.h"

namespace spoor::tracker {
namespace {

using fuzz::require;

constexpr std::uint64_t dense_bytes_max = std::uint64_t{1} << 20U;

base::Result<MarkSet> decoded(std::string_view bytes) {
  base::ByteReader in(bytes);
  return decode_mark_set(in);
}

std::string encoded(const MarkSet& marks) {
  base::ByteWriter out;
  encode_mark_set(out, marks);
  return out.take();
}

void check_same(const MarkSet& one, const MarkSet& other) {
  for (unsigned i = 0; i < 64; ++i) {
    const PathHash hash = hash_path(std::to_string(i));
    require(one.filters_may_contain(hash) == other.filters_may_contain(hash), "a filter keeps its answers");
  }
  require(one.tree_marks() == other.tree_marks(), "tree marks are kept");
  require(one.filters().size() == other.filters().size(), "filters are kept");
  for (const BloomFilter& filter : one.filters()) {
    const BloomFilter* same = other.filter_of(filter.shape());
    require(same != nullptr && same->bits_set() == filter.bits_set(), "bits are kept");
  }
}

// Over all positions, if they are few: what one by one says is what all at once says.
void check_positions(const PackedBits& packed, std::uint64_t bits) {
  if (bits > 1'000) return;
  std::vector<std::uint64_t> words((bits + 63) / 64);
  packed.unpack_into(words);
  std::uint64_t count = 0;
  for (std::uint64_t at = 0; at < words.size() * 64; ++at) {
    const bool is_set = (words[at / 64] >> (at % 64) & 1U) != 0;
    require(packed.test(at) == is_set, "test() agrees with unpack_into()");
    require(!is_set || at < bits, "no position is beyond the last");
    count += is_set ? 1 : 0;
  }
  require(count == packed.count(), "there are as many positions as it says");
}

void check_merge(const MarkSet& marks) {
  MarkSet apart = marks.packed();
  require(apart.memory_bytes() <= marks.memory_bytes(), "packing takes no more memory");
  check_same(apart, marks);
  if (!apart.try_add_apart(marks, dense_bytes_max)) {
    check_same(apart, marks);
    return;
  }
  MarkSet merged;
  merged.merge(apart);
  require(merged.memory_bytes() <= dense_bytes_max, "the bound holds");
  check_same(merged, marks);
  check_same(decoded(encoded(merged)).value(), marks);
}

void check_set(std::string_view bytes) {
  const auto marks = [&] {
    const fuzz::MemoryBound bound(bytes.size());
    return decoded(bytes);
  }();
  if (!marks) return require(marks.error().code == Errc::snapshot_corrupt, "what is refused is corrupt");
  for (const BloomFilter& filter : marks->filters()) {
    const BloomShape shape = filter.shape();
    require(BloomShape::checked(shape.bits, shape.hashes).has_value(), "a filter is one that can be");
    if (filter.is_packed()) check_positions(filter.packed_bits(), shape.bits);
  }
  const std::string again = encoded(*marks);
  require(again.size() <= bytes.size(), "nothing is made up");
  const auto read_again = decoded(again);
  require(read_again && encoded(*read_again) == again, "what was decoded survives the next save");
  check_same(*read_again, *marks);
  check_merge(*marks);
}

// The first two bytes are the number of bits.
void check_bits(std::string_view bytes) {
  base::ByteReader in(bytes);
  const std::uint64_t bits = in.u16();
  if (!in.ok()) return;
  const std::string_view stream = in.raw(in.remaining());
  const auto packed = [&] {
    const fuzz::MemoryBound bound(bytes.size());
    return PackedBits::parse(stream, bits);
  }();
  if (!packed) return require(packed.error().code == Errc::invalid_shape, "what is refused has its code");
  require(packed->bytes() == stream, "the bytes are kept");
  check_positions(*packed, bits);
  std::vector<std::uint64_t> words((bits + 63) / 64);
  packed->unpack_into(words);
  const auto own = PackedBits::pack(words, ~std::uint64_t{0});
  require(own && own->count() == packed->count(), "what was unpacked can be packed");
  std::vector<std::uint64_t> again(words.size());
  own->unpack_into(again);
  require(again == words, "and is the same then");
}

}  // namespace
}  // namespace spoor::tracker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = spoor::fuzz::text_of(data, size);
  spoor::tracker::check_set(bytes);
  spoor::tracker::check_bits(bytes);
  return 0;
}
