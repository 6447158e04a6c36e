// Who owns the files of a directory, and how much that is.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "scanner/store/directory_row.h"

namespace spoor::scanner {

struct Owner {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;

  friend auto operator<=>(const Owner&, const Owner&) = default;
};

// All further owners of a directory that has more than owners_max. No file has these ids: chown(2) takes them
// for "unchanged".
inline constexpr Owner other_owners = {std::numeric_limits<std::uint32_t>::max(),
                                       std::numeric_limits<std::uint32_t>::max()};
inline constexpr std::size_t owners_max = 1000;  // of the files in one directory

// The files of one owner, or a difference of such totals, modulo 2^64: it may represent a negative number.
// The members are those of Totals.
struct OwnedTotals {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t allocated = 0;

  void add(const OwnedTotals& other) {
    files += other.files;
    bytes += other.bytes;
    allocated += other.allocated;
  }

  OwnedTotals negative() const { return {-files, -bytes, -allocated}; }

  friend bool operator==(const OwnedTotals&, const OwnedTotals&) = default;
};

using Owners = std::map<Owner, OwnedTotals>;

// Of a single owner only the ids: its totals are the directory's own. Empty for no owner.
std::string encode_owners(const Owners& owners);

// `own` are the directory's own totals. Nothing for damaged bytes.
std::optional<Owners> decode_owners(std::string_view bytes, const Totals& own);

}  // namespace spoor::scanner
