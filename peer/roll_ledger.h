// What is told of a roll in etcd beside the roll itself, so that a scan learns of members that came and went
// while it did not look.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::peer {

// A daemon as it registers.
struct RollMember {
  std::string node;
  std::string url;  // as others reach it
  std::string instance;

  friend bool operator==(const RollMember&, const RollMember&) = default;
};

// Changed in the same transaction as the entries that it counts.
struct RollLedger {
  static constexpr std::size_t recent_max = 100;

  std::string id;                  // drawn with the first entry; another one is another roll
  std::uint64_t entered = 0;       // so many entries were ever made
  std::uint64_t left = 0;          // so many of them were struck, or gave way to another instance
  std::vector<RollMember> recent;  // the last of those, the newest last
  std::int64_t mod_revision = 0;   // of its key in etcd; 0 while there is none

  // With a new entry, and with one less. The first one draws the id.
  RollLedger with_entry() const;
  RollLedger without(const RollMember& member) const;

  // As it stands in etcd; nothing where the text means none.
  std::string to_value() const;
  static std::optional<RollLedger> parse(std::string_view value);

  friend bool operator==(const RollLedger&, const RollLedger&) = default;
};

// Of a node, by which scans know trackers, or of a cluster: printable ASCII without spaces, at most 255.
bool is_node_name(std::string_view text);

}  // namespace spoor::peer
