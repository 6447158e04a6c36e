// The ancestor's failure replayed. MinIO kept one filter a cycle and merged those of all nodes and cycles
// until the result "often got saturated". Here the same writes go to one fixed level and to levels that
// grow and are fed back, and untouched directories are asked for: each by itself, and as a walk from the top
// meets them, which asks for one only where all above it answered yes.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/bench_support.h"
#include "tests/bench/saturation_node.h"
#include "tracker/filter/hash.h"
#include "tracker/filter/level_schedule.h"

namespace {

using namespace spoor;

constexpr std::uint64_t MiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t rounds = 3;
constexpr double nearly_full = 0.95;

struct Settings {
  bool is_short = false;
  bool is_full = false;
  std::size_t asked = 100'000;      // untouched directories
  std::vector<std::uint64_t> cell;  // the only one that is run; empty: all
  std::uint64_t marks_max = 6'000'000;
  std::uint64_t memory_limit_mib = 256;  // of each tracker
  std::uint64_t memory_max_mib = 4096;   // of this benchmark
};

struct Cell {
  std::uint64_t nodes;
  std::uint64_t cycles;
  std::uint64_t objects;  // a cycle and node

  std::uint64_t marks() const { return nodes * cycles * objects; }
};

// What a scan gathered.
struct Gathered {
  tracker::MarkSet marks;
  tracker::MarkSet merged;  // into one filter of each shape, as MinIO did: how many items there are
  double answers_items = 0;
  std::uint64_t tracker_bytes = 0;  // of the largest
  bool is_saturated = false;

  void add(const bench::NodeAnswer& answer) {
    if (!marks.try_add_apart(answer.marks)) throw std::runtime_error("the filters take too much memory");
    merged.merge(answer.marks);
    answers_items += tracker::MarkSetFigures::of(answer.marks).items;
    tracker_bytes = std::max(tracker_bytes, answer.memory_bytes);
    is_saturated = is_saturated || answer.is_saturated;
  }

  // A filter that is nearly full says little of how much it holds; what it was merged from may say more.
  double items() const {
    const auto& filters = merged.filters();
    const bool any_nearly_full = std::any_of(filters.begin(), filters.end(), [](const auto& filter) {
      return tracker::FilterFigures::of(filter).density > nearly_full;
    });
    const double merged_items = tracker::MarkSetFigures::of(merged).items;
    return any_nearly_full ? std::max(answers_items, merged_items) : merged_items;
  }
};

// Asks every node, some at a time.
template <class Run>
Gathered gather(std::uint64_t nodes, const Run& run) {
  Gathered gathered;
  std::mutex mutex;
  std::atomic<std::uint64_t> next = 0;
  const auto work = [&] {
    for (std::uint64_t node = next++; node < nodes; node = next++) {
      const bench::NodeAnswer answer = run(node);
      const std::scoped_lock lock(mutex);
      gathered.add(answer);
    }
  };
  std::vector<std::future<void>> workers;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) {
    workers.push_back(std::async(std::launch::async, work));
  }
  for (auto& worker : workers) worker.get();
  return gathered;
}

// `groups`: those of `marks`, which take a look at every word to find.
bool is_walked_to(const tracker::MarkSet& marks, tracker::MarkSet::Groups groups, std::string_view path) {
  const tracker::PrefixHashes hashes(path);
  for (const tracker::PathHash& hash : hashes.all()) groups = marks.groups_that_may_contain(hash, groups);
  return groups != 0;
}

struct FalsePositives {
  double asked_directly = 0;
  double met_by_a_walk = 0;
};

FalsePositives false_positives(const Cell& cell, std::uint64_t round, std::size_t asked,
                               const tracker::MarkSet& marks) {
  std::mt19937_64 engine(round + 1);
  bench::SaturationPaths paths;
  const tracker::MarkSet::Groups groups = marks.groups();
  std::size_t directly = 0;
  std::size_t walked_to = 0;
  for (std::size_t i = 0; i < asked; ++i) {
    const bench::SaturationLoad load{round, engine() % cell.nodes, 1 + engine() % cell.cycles, cell.objects};
    if (!is_walked_to(marks, groups, paths.written(load, engine() % cell.objects))) {
      throw std::logic_error("a path that was marked is not found");
    }
    const std::string_view path = paths.untouched(load, engine);
    if (marks.filters_may_contain(tracker::hash_path(path))) ++directly;
    if (is_walked_to(marks, groups, path)) ++walked_to;
  }
  const auto all = static_cast<double>(asked);
  return {static_cast<double>(directly) / all, static_cast<double>(walked_to) / all};
}

class Table {
 public:
  explicit Table(const tracker::LevelSchedule& levels) : levels_(levels) {
    fmt::print("{:>5}{:>7}{:>9}  {:<20}{:>7}{:>13}{:>9}{:>10}{:>10}{:>13}{:>12}\n", "nodes", "cycles",
               "objects", "filters", "levels", "items", "density", "asked", "walked", "tracker MiB",
               "merged MiB");
  }

  void add(const Cell& cell, const std::string& name, const Gathered& gathered, const FalsePositives& rates) {
    const auto figures = tracker::MarkSetFigures::of(gathered.marks);
    const std::string levels = levels_of(gathered.marks);
    const double tracker_mib = mib(gathered.tracker_bytes);
    const double merged_mib = mib(figures.bits / 8);
    // What the nodes' status says, or the scan's report.
    const bool is_saturated = gathered.is_saturated || figures.fp_rate > levels_.fp_rate_max();
    fmt::print("{:>5}{:>7}{:>9}  {:<20}{:>7}{:>13.0f}{:>9.3f}{:>8.2f} %{:>8.2f} %{:>13.1f}{:>12.1f}  {}\n",
               cell.nodes, cell.cycles, cell.objects, name, levels, gathered.items(), figures.density,
               rates.asked_directly * 100, rates.met_by_a_walk * 100, tracker_mib, merged_mib,
               is_saturated ? "saturated" : "");
    std::fflush(stdout);
    rows_.push_back({{"nodes", cell.nodes},
                     {"cycles", cell.cycles},
                     {"objects", cell.objects},
                     {"filters", name},
                     {"levels", levels},
                     {"items", gathered.items()},
                     {"density", figures.density},
                     {"fp_rate_asked", rates.asked_directly},
                     {"fp_rate_walked", rates.met_by_a_walk},
                     {"tracker_bytes", gathered.tracker_bytes},
                     {"merged_bytes", figures.bits / 8},
                     {"saturated", is_saturated}});
  }

  void skip(const Cell& cell, const std::string& why) {
    fmt::print("{:>5}{:>7}{:>9}  skipped: {}\n", cell.nodes, cell.cycles, cell.objects, why);
  }

  const nlohmann::ordered_json& rows() const { return rows_; }

 private:
  static double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(MiB); }

  std::string levels_of(const tracker::MarkSet& marks) const {
    std::vector<std::size_t> levels;
    for (const auto& filter : marks.filters()) levels.push_back(levels_.level_of(filter.shape()).value());
    if (levels.empty()) return "-";
    const auto [low, high] = std::minmax_element(levels.begin(), levels.end());
    return *low == *high ? fmt::format("{}", *low) : fmt::format("{}-{}", *low, *high);
  }

  const tracker::LevelSchedule& levels_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
};

void run_fixed(const Cell& cell, const Settings& settings, Table& table) {
  auto gathered = gather(cell.nodes, [&](std::uint64_t node) {
    return bench::run_node({0, node, 0, cell.objects}, {.cycles = cell.cycles});
  });
  gathered.marks = gathered.merged;
  table.add(cell, "level 0, merged", gathered, false_positives(cell, 0, settings.asked, gathered.marks));
}

// Each round's cycles are opened at the level that the scan before asked for.
void run_growing(const Cell& cell, const Settings& settings, std::uint64_t memory_limit_mib,
                 const tracker::LevelSchedule& levels, Table& table) {
  bench::NodeOptions options{
      .cycles = cell.cycles, .levels = levels, .memory_bytes_max = memory_limit_mib * MiB};
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    const auto gathered = gather(cell.nodes, [&](std::uint64_t node) {
      return bench::run_node({round, node, 0, cell.objects}, options);
    });
    const auto rates = false_positives(cell, round, settings.asked, gathered.marks);
    table.add(cell, fmt::format("round {}, {} MiB", round, memory_limit_mib), gathered, rates);
    const bool has_target = round == 1 && cell.nodes == 16 && cell.cycles == 1 && cell.objects == 100'000;
    if (has_target) {
      bench::Targets().at_most("16 x 100,000, round 1: % of untouched directories read",
                               rates.met_by_a_walk * 100, 5);
    }
    options.start_level = levels.level_for(2 * gathered.items());
  }
}

// Of the filters alive at one time: of the nodes at work, current and merged, and of the scan.
std::uint64_t memory_mib(const Cell& cell, const Settings& settings, const tracker::LevelSchedule& levels) {
  const std::uint64_t items = 2 * cell.marks();  // the directories included, this is more than there are
  const std::uint64_t wanted =
      levels.shape(levels.level_for(2 * static_cast<double>(items))).byte_count() / MiB;
  const std::uint64_t at_work = std::min<std::uint64_t>(cell.nodes, std::thread::hardware_concurrency());
  return 2 * (at_work + 1) * std::min(wanted, settings.memory_limit_mib / 2);
}

void run_cell(const Cell& cell, const Settings& settings, const tracker::LevelSchedule& levels,
              Table& table) {
  if (!settings.is_full && cell.marks() > settings.marks_max) {
    table.skip(cell, fmt::format("{} M marks a round; --full runs it", cell.marks() / 1'000'000));
    return;
  }
  const std::uint64_t memory = memory_mib(cell, settings, levels);
  if (memory > settings.memory_max_mib) {
    table.skip(cell, fmt::format("may take {} MiB, --memory-max allows {}", memory, settings.memory_max_mib));
    return;
  }
  run_fixed(cell, settings, table);
  run_growing(cell, settings, settings.memory_limit_mib, levels, table);
}

void run_cells(const Settings& settings, const tracker::LevelSchedule& levels, Table& table) {
  if (settings.is_short) {
    run_cell({2, 4, 20'000}, settings, levels, table);
    return;
  }
  if (!settings.cell.empty()) {
    run_cell({settings.cell[0], settings.cell[1], settings.cell[2]}, settings, levels, table);
    return;
  }
  for (const std::uint64_t objects : {20'000U, 100'000U, 1'000'000U}) {
    for (const std::uint64_t nodes : {1U, 4U, 16U}) {
      for (const std::uint64_t cycles : {1U, 4U, 16U}) {
        run_cell({nodes, cycles, objects}, settings, levels, table);
      }
    }
  }
}

void run(const Settings& settings) {
  fmt::print(
      "False positives among {} untouched directories: asked by themselves, and walked to from the top.\n",
      settings.asked);
  const tracker::LevelSchedule levels(200'000, 0.1);
  Table table(levels);
  run_cells(settings, levels, table);
  // A tracker that may not take what it would have to.
  run_growing({4, 4, settings.is_short ? 20'000U : 100'000U}, settings, 1, levels, table);
  if (settings.is_short) return;
  const auto file = bench::results_file("saturation_bench");
  std::ofstream(file) << table.rows().dump(2) << '\n';
  fmt::print("The figures for machines are in {}\n", file.native());
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App program("Replays how merged filters saturate");
  program.add_flag("--full", settings.is_full, "Also the combinations that take minutes each");
  program.add_option("--memory-limit", settings.memory_limit_mib, "MiB for the filters of each tracker");
  program.add_option("--memory-max", settings.memory_max_mib, "MiB beyond which a combination is skipped");
  program.add_option("--only", settings.cell, "One combination: nodes, cycles, objects a cycle and node")
      ->expected(3)
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  program.add_flag("--short", settings.is_short, "One small combination: figures that say little");
  return bench::run_bench(program, argc, argv, [&] {
    if (settings.is_short) settings.asked = 1000;
    run(settings);
  });
}
