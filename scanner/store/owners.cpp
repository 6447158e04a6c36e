#include "scanner/store/owners.h"

#include "base/byte_codec.h"

namespace spoor::scanner {

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
