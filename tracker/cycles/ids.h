// Strong types for numbers and ids that must not be mixed, and cursors, which consist of them.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spoor::tracker {

// The number of a cycle, from 1; 0 is "none". Numbers are shared by the whole cluster and only
// grow.
struct CycleId {
  std::uint64_t value = 0;

  // Upper bounds that no cluster reaches by counting. A request for a cycle beyond request_max is refused; a
  // stored or received cycle beyond value_max is invalid. The distance lets a tracker continue to count.
  static constexpr std::uint64_t request_max = std::uint64_t{1} << 62U;
  static constexpr std::uint64_t value_max = std::uint64_t{1} << 63U;

  // The largest step of one request. A cluster that opens a cycle every second needs 68 years for it: a
  // number further ahead is an error of the peer that reports it (docs/cluster.md).
  static constexpr std::uint64_t jump_max = std::uint64_t{1} << 31U;

  friend auto operator<=>(const CycleId&, const CycleId&) = default;
};

inline CycleId next(CycleId cycle) { return {cycle.value + 1}; }

// The last cycle that a request can open in a tracker whose current cycle is `cycle`.
inline CycleId reach_of(CycleId cycle) {
  constexpr std::uint64_t last = CycleId::request_max;
  return {cycle.value >= last - CycleId::jump_max ? last : cycle.value + CycleId::jump_max};
}

// Identifies one tracker's state as long as it loses no marks: 128 random bits. Any loss of marks starts a
// new instance.
struct InstanceId {
  std::array<std::uint8_t, 16> bytes{};

  static InstanceId random();

  // Parses the 32 hex digits of to_string(); nullopt for any other text.
  static std::optional<InstanceId> parse(std::string_view text);
  std::string to_string() const;

  bool is_none() const { return *this == InstanceId{}; }
  friend auto operator<=>(const InstanceId&, const InstanceId&) = default;
};

// The first cycle of one peer whose marks one scanner has not walked yet. Valid only for the instance
// that issued it.
struct Cursor {
  InstanceId instance;
  CycleId cycle;

  friend bool operator==(const Cursor&, const Cursor&) = default;
};

// A name of a node, which identifies its tracker, or of a cluster: printable ASCII without spaces and colons,
// 1 to 255 bytes.
bool is_node_name(std::string_view text);

}  // namespace spoor::tracker
