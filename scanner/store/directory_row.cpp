#include "scanner/store/directory_row.h"

#include <algorithm>

#include "base/byte_codec.h"

namespace spoor::scanner {
namespace {

// The first byte of a row: the state, and these.
constexpr std::uint8_t state_bits = 3;
constexpr std::uint8_t racy_bit = 4;
constexpr std::uint8_t read_bit = 8;
constexpr std::uint8_t sums_bit = 16;  // the sums are not those of a directory without subdirectories
constexpr std::uint8_t ctime_bit = 32;
constexpr std::uint8_t all_bits = 63;

void put(base::ByteWriter& out, const Totals& totals) {
  out.number(totals.files);
  out.number(totals.bytes);
  out.number(totals.allocated);
  out.u64(static_cast<std::uint64_t>(totals.mtime_ns));
}

Totals get_totals(base::ByteReader& in) {
  Totals totals;
  totals.files = in.number();
  totals.bytes = in.number();
  totals.allocated = in.number();
  totals.mtime_ns = static_cast<std::int64_t>(in.u64());
  return totals;
}

bool has_other_sums(const DirectoryRow& row) {
  DirectoryRow alone;
  alone.state = row.state;
  alone.restart_sums(row.own);
  return row.subtree != alone.subtree || row.directories != 0 || row.pending != alone.pending ||
         row.mount_points != alone.mount_points;
}

}  // namespace

void Totals::add(const Totals& other) {
  files = saturating_add(files, other.files);
  bytes = saturating_add(bytes, other.bytes);
  allocated = saturating_add(allocated, other.allocated);
  mtime_ns = std::max(mtime_ns, other.mtime_ns);
}

void DirectoryRow::set_state(DirectoryState to) {
  if (itself_pending()) --pending;
  if (state == DirectoryState::mount_point) --mount_points;
  state = to;
  if (itself_pending()) ++pending;
  if (state == DirectoryState::mount_point) ++mount_points;
}

void DirectoryRow::restart_sums(const Totals& own_totals) {
  own = own_totals;
  subtree = own_totals;
  directories = 0;
  pending = itself_pending() ? 1 : 0;
  mount_points = state == DirectoryState::mount_point ? 1 : 0;
}

void DirectoryRow::replace_own(const Totals& own_totals) {
  Totals below = subtree;
  below.files -= own.files;
  below.bytes -= own.bytes;
  below.allocated -= own.allocated;
  own = own_totals;
  below.add(own);
  subtree = below;
}

void DirectoryRow::add_child(const DirectoryRow& child) {
  add_sums(child);
  ++directories;
}

void DirectoryRow::add_sums(const DirectoryRow& sums) {
  subtree.add(sums.subtree);
  directories += sums.directories;
  pending += sums.pending;
  mount_points += sums.mount_points;
}

void DirectoryRow::remove_child(const DirectoryRow& child) {
  subtree.files -= child.subtree.files;
  subtree.bytes -= child.subtree.bytes;
  subtree.allocated -= child.subtree.allocated;
  directories -= 1 + child.directories;
  pending -= child.pending;
  mount_points -= child.mount_points;
}

std::string encode_row(const DirectoryRow& row) {
  const bool with_sums = has_other_sums(row);
  base::ByteWriter out;
  out.reserve(64);
  out.u8(static_cast<std::uint8_t>(static_cast<unsigned>(row.state) | (row.is_racy ? racy_bit : 0U) |
                                   (row.is_read ? read_bit : 0U) | (with_sums ? sums_bit : 0U) |
                                   (row.ctime_ns != 0 ? ctime_bit : 0U)));
  out.u64(row.signature);
  out.u64(row.entries);
  put(out, row.own);
  if (with_sums) {
    put(out, row.subtree);
    out.number(row.directories);
    out.number(row.pending);
    out.number(row.mount_points);
  }
  if (row.ctime_ns != 0) out.u64(static_cast<std::uint64_t>(row.ctime_ns));
  return out.take();
}

bool decode_row(std::string_view bytes, DirectoryRow& row) {
  base::ByteReader in(bytes);
  const std::uint8_t bits = in.u8();
  row.state = static_cast<DirectoryState>(bits & state_bits);
  row.is_racy = (bits & racy_bit) != 0;
  row.is_read = (bits & read_bit) != 0;
  row.signature = in.u64();
  row.entries = in.u64();
  row.restart_sums(get_totals(in));
  if ((bits & sums_bit) != 0) {
    row.subtree = get_totals(in);
    row.directories = in.number();
    row.pending = in.number();
    row.mount_points = in.number();
  }
  if ((bits & ctime_bit) != 0) row.ctime_ns = static_cast<std::int64_t>(in.u64());
  return in.ok() && in.remaining() == 0 && bits <= all_bits;
}

std::string encode_owners(const Owners& owners) {
  base::ByteWriter out;
  for (const auto& [owner, totals] : owners) {
    out.u32(owner.uid);
    out.u32(owner.gid);
    if (owners.size() == 1) break;
    out.u64(totals.files);
    out.u64(totals.bytes);
    out.u64(totals.allocated);
  }
  return out.take();
}

std::optional<Owners> decode_owners(std::string_view bytes, const Totals& own) {
  constexpr std::size_t ids_bytes = 2 * sizeof(std::uint32_t);
  base::ByteReader in(bytes);
  Owners owners;
  while (in.remaining() > 0) {
    const std::uint32_t uid = in.u32();
    const std::uint32_t gid = in.u32();
    OwnedTotals totals{own.files, own.bytes, own.allocated};
    if (bytes.size() != ids_bytes) {
      totals.files = in.u64();
      totals.bytes = in.u64();
      totals.allocated = in.u64();
    }
    if (!in.ok() || !owners.emplace(Owner{uid, gid}, totals).second) return std::nullopt;
  }
  return owners;
}

}  // namespace spoor::scanner
