#include "tracker/mark_set_codec.h"

#include <fmt/core.h>

#include <utility>

#include "tracker/errors.h"
#include "tracker/path.h"

namespace spoor::tracker {
namespace {

base::Error corrupt(std::string_view what) {
  return {Errc::snapshot_corrupt, fmt::format("corrupt: {}", what)};
}

}  // namespace

void encode_mark_set(base::ByteWriter& out, const MarkSet& marks) {
  out.u16(static_cast<std::uint16_t>(marks.filters().size()));
  for (const BloomFilter& filter : marks.filters()) {
    out.u64(filter.shape().bits);
    out.u64(filter.shape().hashes);
    out.words(filter.words());
  }
  out.u32(static_cast<std::uint32_t>(marks.tree_marks().size()));
  for (const std::string& path : marks.tree_marks()) out.short_string(path);
}

base::Result<MarkSet> decode_mark_set(base::ByteReader& in) {
  MarkSet marks;
  const std::uint16_t filters = in.u16();
  for (std::uint16_t i = 0; i < filters; ++i) {
    const std::uint64_t bits = in.u64();
    const std::uint64_t hashes = in.u64();
    if (!in.ok()) return corrupt("cut off in a filter");
    const auto shape = BloomShape::checked(bits, hashes);
    if (!shape) return corrupt(shape.error().message);
    if (shape->byte_count() > in.remaining()) return corrupt("a filter longer than what is left");
    std::vector<std::uint64_t> words(shape->word_count());
    for (std::uint64_t& word : words) word = in.u64();
    marks.add_filter(BloomFilter(*shape, std::move(words)));
  }
  const std::uint32_t trees = in.u32();
  for (std::uint32_t i = 0; i < trees && in.ok(); ++i) {
    const std::string_view path = in.short_string();
    // One that is not would cover nothing.
    if (!path.empty() && !is_normalised(path)) return corrupt("a tree mark of an impossible path");
    marks.add_tree(path);
  }
  if (!in.ok()) return corrupt("cut off in the marks");
  return marks;
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
