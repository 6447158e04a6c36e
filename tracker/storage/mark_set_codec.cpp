#include "tracker/storage/mark_set_codec.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tracker/errors.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {
namespace {

// How a filter's bits are encoded.
enum class FilterForm : std::uint32_t { words = 0, packed = 1 };

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t silent_ms_max = std::uint64_t{1} << 48U;
constexpr std::uint16_t filters_max = MarkSet::group_filters_max;

base::Error corrupt(std::string_view what) {
  return {Errc::snapshot_corrupt, fmt::format("corrupt: {}", what)};
}

void encode_packed(base::ByteWriter& out, const PackedBits& bits) {
  out.u32(static_cast<std::uint32_t>(FilterForm::packed));
  out.u64(bits.bytes().size());
  out.raw(bits.bytes());
}

void encode_filter(base::ByteWriter& out, const BloomFilter& filter) {
  out.u64(filter.shape().bits);
  out.u32(static_cast<std::uint32_t>(filter.shape().hashes));
  if (filter.is_packed()) return encode_packed(out, filter.packed_bits());
  const std::uint64_t bytes = filter.shape().byte_count();
  const auto bits = PackedBits::pack(filter.words(), bytes - std::min(bytes, length_bytes));
  if (bits) return encode_packed(out, *bits);
  out.u32(static_cast<std::uint32_t>(FilterForm::words));
  out.words(filter.words());
}

base::Result<BloomFilter> decode_words(base::ByteReader& in, BloomShape shape) {
  if (shape.byte_count() > in.remaining()) return corrupt("a filter longer than what is left");
  std::vector<std::uint64_t> words(shape.word_count());
  in.words(words);
  return BloomFilter(shape, std::move(words));
}

base::Result<BloomFilter> decode_packed(base::ByteReader& in, BloomShape shape) {
  const std::string_view bytes = in.raw(in.u64());
  if (!in.ok()) return corrupt("a packed filter longer than what is left");
  auto bits = PackedBits::parse(bytes, shape.bits);
  if (!bits) return corrupt(bits.error().message);
  return BloomFilter(shape, *std::move(bits));
}

base::Result<BloomFilter> decode_filter(base::ByteReader& in) {
  const std::uint64_t bits = in.u64();
  const std::uint32_t hashes = in.u32();
  const std::uint32_t form = in.u32();
  if (!in.ok()) return corrupt("cut off in a filter");
  const auto shape = BloomShape::checked(bits, hashes);
  if (!shape) return corrupt(shape.error().message);
  switch (static_cast<FilterForm>(form)) {
    case FilterForm::words:
      return decode_words(in, *shape);
    case FilterForm::packed:
      return decode_packed(in, *shape);
  }
  return corrupt(fmt::format("a filter in form {}, which this program does not know", form));
}

// Two filters of one shape, one of them packed, would have to be made dense: far larger than the input.
bool needs_unpacking(const MarkSet& marks, const BloomFilter& filter) {
  const BloomFilter* known = marks.filter_of(filter.shape());
  return known != nullptr && (known->is_packed() || filter.is_packed());
}

}  // namespace

void encode_mark_set(base::ByteWriter& out, const MarkSet& marks) {
  out.u16(static_cast<std::uint16_t>(marks.filters().size()));
  for (const BloomFilter& filter : marks.filters()) encode_filter(out, filter);
  const TreeMarks& trees = marks.tree_marks();
  out.u32(static_cast<std::uint32_t>(trees.size() + trees.members().size()));
  for (const std::string& path : trees) out.short_string(path);
  for (const auto& member : trees.members()) out.short_string(TreeMarks::member_path(member));
}

base::Result<MarkSet> decode_mark_set(base::ByteReader& in) {
  MarkSet marks;
  const std::uint16_t filters = in.u16();
  if (filters > filters_max) return corrupt(fmt::format("{} filters in one set", filters));
  for (std::uint16_t i = 0; i < filters; ++i) {
    auto filter = decode_filter(in);
    if (!filter) return std::move(filter).error();
    if (needs_unpacking(marks, *filter)) return corrupt("two filters of one shape, one of them packed");
    marks.add_filter(*std::move(filter));
  }
  const std::uint32_t count = in.u32();
  TreeMarks trees;
  TreeMarks::Members members;
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const std::string_view path = in.short_string();
    // A path that is not normalised would cover nothing.
    if (!path.empty() && !is_normalised(path)) return corrupt("a tree mark of an impossible path");
    if (TreeMarks::is_member(path)) {
      TreeMarks::add_member(path, members);
    } else {
      trees.add(path);
    }
    const std::size_t trees_so_far = i + 1 - members.size();
    if (members.size() > TreeMarks::members_max || trees_so_far > TreeMarks::count_max)
      return corrupt(fmt::format("{} tree marks in one set", count));
  }
  trees.add_members(members);
  marks.set_trees(std::move(trees));
  if (!in.ok()) return corrupt("cut off in the marks");
  return marks;
}

void encode_mark_groups(base::ByteWriter& out, const MarkSet& marks) {
  const std::size_t groups = std::max<std::size_t>(marks.group_count(), 1);
  out.u8(static_cast<std::uint8_t>(groups));
  for (std::size_t number = 0; number < groups; ++number) {
    MarkSet group = marks.group(number);
    if (number == 0) group.set_trees(marks.tree_marks());
    encode_mark_set(out, group);
  }
}

base::Result<MarkSet> decode_mark_groups(base::ByteReader& in) {
  MarkSet marks;
  const std::size_t groups = in.u8();
  for (std::size_t number = 0; number < groups; ++number) {
    const auto group = decode_mark_set(in);
    if (!group) return group.error();
    if (!marks.try_add_apart(*group)) return corrupt("filters that are too large together");
  }
  if (!in.ok()) return corrupt("cut off in the marks");
  return marks;
}

void encode_peer_book(base::ByteWriter& out, const PeerBook& book) {
  out.u64(book.size());
  for (const auto& [id, peer] : book) {
    out.text(id.name);
    encode_instance(out, id.instance);
    out.u64(peer.cycle.value);
    out.text(peer.home);
    out.u8(static_cast<std::uint8_t>(peer.standing));
    out.u64(static_cast<std::uint64_t>(peer.silent.count()));
    out.u64(peer.run);
  }
}

PeerBook decode_peer_book(base::ByteReader& in) {
  PeerBook book;
  for (std::uint64_t left = in.u64(); left > 0 && in.ok(); --left) {
    std::string name(in.text());
    const InstanceId instance = decode_instance(in);
    KnownPeer& peer = book[{std::move(name), instance}];
    peer.cycle = {std::min(in.u64(), CycleId::value_max)};
    peer.home = in.text();
    peer.standing =
        static_cast<Standing>(std::min<std::uint8_t>(in.u8(), static_cast<std::uint8_t>(standing_max)));
    peer.silent = std::chrono::milliseconds(std::min(in.u64(), silent_ms_max));
    peer.run = in.u64();
  }
  return book;
}

void encode_instance(base::ByteWriter& out, const InstanceId& id) {
  for (const std::uint8_t byte : id.bytes) out.u8(byte);
}

InstanceId decode_instance(base::ByteReader& in) {
  InstanceId id;
  for (std::uint8_t& byte : id.bytes) byte = in.u8();
  return id;
}

}  // namespace spoor::tracker
