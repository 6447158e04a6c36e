// The membership log: counts the members that joined and left the registry in etcd, so that a scan detects
// those that did both since the last one. Counters need no clock. Entries kept for a grace period after an
// eviction would need one: each scanner would compare the period with a clock that may jump. They would also
// not show entries that were erased by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::peer {

// A daemon as it registers.
struct RegisteredMember {
  std::string node;
  std::string url;  // as others reach it
  std::string instance;

  friend bool operator==(const RegisteredMember&, const RegisteredMember&) = default;
};

// Changed in the same transaction as the entries that it counts.
struct MembershipLog {
  static constexpr std::size_t recent_max = 100;

  std::string id;                        // random, drawn with the first entry; identifies the registry
  std::uint64_t entered = 0;             // entries ever made
  std::uint64_t left = 0;                // entries evicted, or replaced by another instance
  std::vector<RegisteredMember> recent;  // the last of those that left, newest last
  std::int64_t mod_revision = 0;         // of its key in etcd; 0: no key

  // With one more or one fewer entry. The first change draws the id.
  MembershipLog with_entry() const;
  MembershipLog without(const RegisteredMember& member) const;

  // The value in etcd; none: invalid.
  std::string to_value() const;
  static std::optional<MembershipLog> parse(std::string_view value);

  friend bool operator==(const MembershipLog&, const MembershipLog&) = default;
};

// A name of a node, which identifies its tracker, or of a cluster: printable ASCII without spaces and colons,
// 1 to 255 bytes.
bool is_node_name(std::string_view text);

}  // namespace spoor::peer
