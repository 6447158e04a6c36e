// The numbers and ids that must not be mixed.
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

  // No cluster gets to either by counting. What is asked for from outside is refused beyond the
  // first, which leaves a tracker room to go on by itself; what is stored or answered, beyond the second.
  static constexpr std::uint64_t request_max = std::uint64_t{1} << 62U;
  static constexpr std::uint64_t value_max = std::uint64_t{1} << 63U;

  // How far a request moves a tracker at most. A cluster that opens a cycle every second counts that far in
  // 68 years: a number further ahead is an error of the peer that reports it (docs/cluster.md).
  static constexpr std::uint64_t jump_max = std::uint64_t{1} << 31U;

  friend auto operator<=>(const CycleId&, const CycleId&) = default;
};

inline CycleId next(CycleId cycle) { return {cycle.value + 1}; }

// The last cycle that a tracker in this one opens when it is asked to.
inline CycleId reach_of(CycleId cycle) {
  constexpr std::uint64_t last = CycleId::request_max;
  return {cycle.value >= last - CycleId::jump_max ? last : cycle.value + CycleId::jump_max};
}

// The id of one tracker's unbroken memory: 128 random bits. Any loss of marks starts a new one.
struct InstanceId {
  std::array<std::uint8_t, 16> bytes{};

  static InstanceId random();

  // From the 32 hex digits that to_string() gives; anything else is nothing.
  static std::optional<InstanceId> parse(std::string_view text);
  std::string to_string() const;

  bool is_none() const { return *this == InstanceId{}; }
  friend auto operator<=>(const InstanceId&, const InstanceId&) = default;
};

}  // namespace spoor::tracker
