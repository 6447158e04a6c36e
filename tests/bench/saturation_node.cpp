#include "tests/bench/saturation_node.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tracker/cycles/tracker.h"

namespace spoor::bench {
namespace {

constexpr std::uint64_t depth_max = 5;
constexpr std::uint64_t objects_in_a_row = 4;

// The hexadecimal number that tells a component from its siblings.
struct Field {
  std::size_t begin;
  std::size_t end;  // also of the component
};

constexpr std::array<Field, depth_max> fields = {{{7, 8}, {14, 16}, {23, 25}, {30, 31}, {39, 51}}};

// A bijection that looks like chance (Steele et al. 2014, SplitMix64).
std::uint64_t scramble(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

std::uint64_t between(std::uint64_t low, std::uint64_t high, std::mt19937_64& engine) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(engine);
}

// What is written to has a first digit below 8.
void put(std::string& path, const Field& field, std::uint64_t value, bool is_written_to) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (std::size_t at = field.begin; at < field.end; ++at, value >>= 4U) path[at] = digits[value & 15U];
  const std::uint64_t first = value & 7U;
  path[field.begin] = digits[is_written_to ? first : first + 8];
}

}  // namespace

const std::string& SaturationPaths::written(const SaturationLoad& load, std::uint64_t number) {
  const std::uint64_t first = (((load.round << 8U) + load.node) << 8U) + load.cycle;
  const std::uint64_t object = (first << 32U) + number;
  std::uint64_t set = scramble(object / objects_in_a_row);
  for (std::size_t depth = 0; depth + 1 < fields.size(); ++depth, set >>= 12U)
    put(path_, fields[depth], set, true);
  put(path_, fields.back(), scramble(object) >> 12U, true);
  return path_;
}

std::string_view SaturationPaths::untouched(const SaturationLoad& load, std::mt19937_64& engine) {
  written(load, between(0, load.objects - 1, engine));
  const std::uint64_t depth = between(3, depth_max, engine);
  const std::uint64_t first_untouched = between(2, depth, engine);
  for (std::uint64_t at = first_untouched; at <= depth; ++at) put(path_, fields[at - 1], engine(), false);
  return std::string_view(path_).substr(0, fields[depth - 1].end);
}

NodeAnswer run_node(SaturationLoad load, const NodeOptions& options) {
  const base::SystemClock clock;
  const auto born = tracker::Tracker::born(tracker::InstanceId::random(), clock);
  tracker::Tracker tracker({.levels = options.levels, .memory_bytes_max = options.memory_bytes_max}, clock,
                           born);
  NodeAnswer answer;
  SaturationPaths paths;
  std::vector<tracker::Mark> marks(1);
  for (load.cycle = 1; load.cycle <= options.cycles; ++load.cycle) {
    // The first cycle there is was not opened by anybody who asked for a level.
    tracker.cycle({.current = {load.cycle + 1},
                   .oldest = {},
                   .instance = {},
                   .marks_wanted = false,
                   .start_level = options.start_level});
    for (std::uint64_t i = 0; i < load.objects; ++i) {
      marks[0].path.assign(paths.written(load, i));
      tracker.mark(marks);
    }
    const auto status = tracker.status();
    answer.memory_bytes = std::max(answer.memory_bytes, status.memory_bytes);
    answer.is_saturated = answer.is_saturated || status.cycles.front().saturated;
  }
  answer.marks = tracker.cycle({.current = {}, .oldest = {1}, .instance = born.instance}).marks;
  return answer;
}

}  // namespace spoor::bench
