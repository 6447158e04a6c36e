// What a scan costs, from the start of the process to its end, beside what people walk a tree with today, and
// beside the least that any walker has to do.
//
// Everything is warm (but for --cold), and takes turns, so that what else the machine does meets all of them
// alike; ratios are taken within one turn, and the first turn does not count.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/bench/bench_support.h"
#include "tests/bench/scan_node.h"
#include "tests/bench/scan_tree.h"

namespace {

using namespace spoor;
using namespace spoor::bench;
namespace fs = std::filesystem;
using nlohmann::ordered_json;

double visit_seconds(const ScanTree& tree, const std::vector<std::string>& paths, Depth depth) {
  const auto started = std::chrono::steady_clock::now();
  visit(tree.drive(), paths, depth);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

void add_known(Figures& figures, double figure) {
  if (figure > 0) figures.add(figure);
}

// Somebody who reads the whole tree.
struct Walker {
  std::string name;
  std::function<Cost()> walk;
  Cost last = {};
  Figures seconds = {};
  Figures processor_seconds = {};
  Figures memory_mib = {};
  Figures disk_reads = {};
  Figures to_bfs = {};
};

// Scans that find so many objects changed.
struct Incremental {
  std::string name;
  std::uint64_t changed = 0;
  double speed_target = 0;
  Figures walked = {};
  Figures seconds = {};
  Figures memory_mib = {};
  Figures disk_reads = {};
  Figures speed = {};        // how many times as fast as bfs in the same turn
  Figures speed_limit = {};  // of a program that visits the changed directories, and nothing else
};

// Tree and node must outlive it.
class ScanRounds {
 public:
  // Of "first", "full", "incremental", "idle"; none are all. `cold`: the caches are dropped before each walk.
  ScanRounds(const std::set<std::string>& steps, const ScanTree& tree, const ScanNode& node, bool cold);
  ScanRounds(const ScanRounds&) = delete;
  ScanRounds& operator=(const ScanRounds&) = delete;

  // Each once. The first turn, which warms up, should not count. Throws where a scan does not find just what
  // was changed.
  void acquire_all(bool counts);

  const std::vector<Walker>& walkers() const { return walkers_; }
  const std::vector<Incremental>& incrementals() const { return incrementals_; }
  const Walker* walker(std::string_view name) const;  // null where it is not among the steps

 private:
  void add_walkers(bool first, bool full);
  void scan_changed(Incremental& each, bool counts);
  Cost measured(const std::function<Cost()>& walk) const;

  const ScanTree& tree_;
  const ScanNode& node_;
  const bool cold_;
  std::mt19937_64 random_{1};  // the same for every run: let the machine be all that differs
  std::vector<Walker> walkers_;
  std::vector<Incremental> incrementals_;
};

ScanRounds::ScanRounds(const std::set<std::string>& steps, const ScanTree& tree, const ScanNode& node,
                       bool cold)
    : tree_(tree), node_(node), cold_(cold) {
  const auto wanted = [&](const char* step) { return steps.empty() || steps.contains(step); };
  if (wanted("first") || wanted("full")) add_walkers(wanted("first"), wanted("full"));
  const auto share = [&](double of_all) {
    return std::max<std::uint64_t>(static_cast<std::uint64_t>(of_all * static_cast<double>(tree.objects())),
                                   1);
  };
  if (wanted("incremental")) {
    incrementals_ = {{"0.1 %", share(0.001), 200}, {"1 %", share(0.01), 75}, {"10 %", share(0.1), 14}};
  }
  if (wanted("idle")) incrementals_.push_back({"idle"});
  node_.scan(ScanNode::Mode::as_needed);  // whatever the steps, each but the first scan has one before it
}

void ScanRounds::add_walkers(bool first, bool full) {
  if (first) {
    walkers_.push_back({"first scan", [this] {
                          node_.forget_scans();
                          return node_.scan(ScanNode::Mode::as_needed).cost;
                        }});
  }
  if (full) walkers_.push_back({"full scan", [this] { return node_.scan(ScanNode::Mode::full).cost; }});
  const auto add = [this](const std::vector<std::string>& command) {
    walkers_.push_back({command.front(), [command] { return cost_of(command); }});
  };
  const std::string drive = tree_.drive();
  add({"bfs", drive, "-printf", "%p %s\\n"});
  add({"du", "-s", drive});
  add({"find", drive, "-printf", "%p %s\\n"});
  walkers_.push_back(
      {"visit", [this] { return Cost{.seconds = visit_seconds(tree_, tree_.buckets(), Depth::all_below)}; }});
}

const Walker* ScanRounds::walker(std::string_view name) const {
  const auto found =
      std::find_if(walkers_.begin(), walkers_.end(), [&](const Walker& each) { return each.name == name; });
  return found == walkers_.end() ? nullptr : &*found;
}

void ScanRounds::acquire_all(bool counts) {
  for (Walker& each : walkers_) each.last = measured(each.walk);
  for (Walker& each : walkers_) {
    if (!counts) break;
    each.seconds.add(each.last.seconds);
    add_known(each.processor_seconds, each.last.processor_seconds);
    add_known(each.memory_mib, each.last.memory_mib);
    each.disk_reads.add(each.last.disk_reads);
    each.to_bfs.add(each.last.seconds / walker("bfs")->last.seconds);
  }
  for (Incremental& each : incrementals_) scan_changed(each, counts);
}

Cost ScanRounds::measured(const std::function<Cost()>& walk) const {
  if (cold_) drop_caches();
  const std::uint64_t before = disk_reads(tree_.drive());
  Cost cost = walk();
  cost.disk_reads = static_cast<double>(disk_reads(tree_.drive()) - before);
  return cost;
}

void ScanRounds::scan_changed(Incremental& each, bool counts) {
  const auto paths = tree_.pick(each.changed, random_);
  tree_.change(paths);
  if (!paths.empty()) node_.mark(paths);
  ScanRun run;
  const Cost cost = measured([&] {
    run = node_.scan(ScanNode::Mode::as_needed);
    return run.cost;
  });
  if (run.changed != paths.size()) {
    throw std::runtime_error(
        fmt::format("{} directories were changed, and a scan told of {}", paths.size(), run.changed));
  }
  double visited_in = 0;
  if (!paths.empty()) {
    visited_in =
        measured([&] { return Cost{.seconds = visit_seconds(tree_, paths, Depth::only_these)}; }).seconds;
  }
  if (!counts) return;
  each.walked.add(static_cast<double>(run.walked));
  each.seconds.add(cost.seconds);
  each.memory_mib.add(cost.memory_mib);
  each.disk_reads.add(cost.disk_reads);
  const Walker* bfs = walker("bfs");
  if (bfs == nullptr) return;
  each.speed.add(bfs->last.seconds / cost.seconds);
  if (visited_in > 0) each.speed_limit.add(bfs->last.seconds / visited_in);
}

struct Settings {
  std::uint64_t objects = 200'000;
  std::size_t files = ScanTree::files_max;
  bool cold = false;
  std::string folder;
  bool keep = false;
  int rounds = 3;
  std::set<std::string> steps;
  bool is_short = false;
};

std::string median(const Figures& figures, int digits) {
  return figures.empty() ? "-" : fmt::format("{:.{}f}", figures.median(), digits);
}

std::string range(const Figures& figures, int digits) {
  return fmt::format("({:.{}f} .. {:.{}f})", figures.min(), digits, figures.max(), digits);
}

void print_walkers(const ScanRounds& rounds) {
  if (rounds.walkers().empty()) return;
  fmt::print("\n{:<12}{:>9}   {:<18}{:>11}{:>8}{:>9}{:>8}\n", "everything", "seconds", "(min .. max)",
             "processor", "MiB", "reads", "/bfs");
  for (const Walker& each : rounds.walkers()) {
    fmt::print("{:<12}{:>9}   {:<18}{:>11}{:>8}{:>9}{:>8}\n", each.name, median(each.seconds, 2),
               range(each.seconds, 2), median(each.processor_seconds, 2), median(each.memory_mib, 1),
               median(each.disk_reads, 0), median(each.to_bfs, 2));
  }
  fmt::print("bfs and find -printf '%p %s\\n', du -s; visit: lists and looks, two threads, keeps nothing\n");
}

void print_incrementals(const ScanRounds& rounds) {
  if (rounds.incrementals().empty()) return;
  fmt::print("\n{:<8}{:>9}{:>9}{:>10}   {:<20}{:>8}{:>9}{:>8}{:>9}\n", "changed", "objects", "read",
             "seconds", "(min .. max)", "MiB", "reads", "speed", "at most");
  for (const Incremental& each : rounds.incrementals()) {
    fmt::print("{:<8}{:>9}{:>9}{:>10}   {:<20}{:>8}{:>9}{:>8}{:>9}\n", each.name, each.changed,
               median(each.walked, 0), median(each.seconds, 4), range(each.seconds, 4),
               median(each.memory_mib, 1), median(each.disk_reads, 0), median(each.speed, 1),
               median(each.speed_limit, 1));
  }
  fmt::print("speed: times as fast as bfs; at most: visiting the changed directories and no more\n");
}

// Of full and incremental scans.
double most_memory(const ScanRounds& rounds) {
  double most = 0;
  for (const char* name : {"first scan", "full scan"}) {
    if (const auto* scan = rounds.walker(name)) most = std::max(most, scan->memory_mib.max());
  }
  for (const auto& each : rounds.incrementals()) most = std::max(most, each.memory_mib.max());
  return most;
}

// Those of 200,000 objects.
void print_targets(const ScanRounds& rounds, const DatabaseFigures& database) {
  bench::Targets targets;
  if (const auto* full = rounds.walker("full scan")) {
    targets.at_most("full scan: time, of bfs's", full->to_bfs.median(), 0.5);
  }
  for (const auto& each : rounds.incrementals()) {
    if (each.changed == 0) {
      targets.at_most("idle scan: directories read", each.walked.max(), 0);
      if (!each.seconds.empty()) targets.at_most("idle scan: ms", each.seconds.median() * 1000, 6);
    } else if (!each.speed.empty()) {
      targets.at_least(fmt::format("{} changed: times as fast as bfs", each.name), each.speed.median(),
                       each.speed_target);
    }
  }
  targets.at_most("memory, MiB (even of 10 M directories)", most_memory(rounds), 128);
  targets.at_most("scan.db: bytes a directory, with its name", database.bytes_each(), 75);
}

ordered_json median_json(const Figures& figures) {
  return figures.empty() ? ordered_json(nullptr) : ordered_json(figures.median());
}

ordered_json to_json(const ScanRounds& rounds, const DatabaseFigures& database) {
  ordered_json json{{"directories", database.directories}, {"database_bytes", database.bytes}};
  json["name_bytes"] = database.name_bytes;
  for (const auto& each : rounds.walkers()) {
    json["everything"].push_back({{"name", each.name},
                                  {"seconds", median_json(each.seconds)},
                                  {"processor_seconds", median_json(each.processor_seconds)},
                                  {"memory_mib", median_json(each.memory_mib)},
                                  {"disk_reads", median_json(each.disk_reads)},
                                  {"to_bfs", median_json(each.to_bfs)}});
  }
  for (const auto& each : rounds.incrementals()) {
    json["incremental"].push_back({{"name", each.name},
                                   {"changed", each.changed},
                                   {"walked", median_json(each.walked)},
                                   {"seconds", median_json(each.seconds)},
                                   {"memory_mib", median_json(each.memory_mib)},
                                   {"disk_reads", median_json(each.disk_reads)},
                                   {"speed", median_json(each.speed)},
                                   {"speed_limit", median_json(each.speed_limit)}});
  }
  return json;
}

void run(const Settings& settings) {
  bench::use_disk();  // for this process's own files
  const fs::path folder = settings.folder.empty() ? fs::temp_directory_path() / "scan-bench"
                                                  : fs::absolute(settings.folder).lexically_normal();
  fs::create_directories(folder);
  const std::string disk = bench::disk_of(folder);
  fmt::print("Whole scans and other walks: median of {} runs of each by turns, {}.\n", settings.rounds,
             settings.cold ? "with cold caches" : "warm");
  std::fflush(stdout);
  const ScanTree tree(folder, settings.objects, settings.files, settings.keep);
  const ScanNode node(folder / "node", tree.drive());
  ScanRounds rounds(settings.steps, tree, node, settings.cold);
  for (int round = 0; round <= settings.rounds; ++round) rounds.acquire_all(round > 0);
  const auto database = node.database();
  fmt::print("{} objects of {} files, {} directories in all; {}, {} processors\n", tree.objects(),
             tree.files(), database.directories, disk, std::thread::hardware_concurrency());
  print_walkers(rounds);
  print_incrementals(rounds);
  fmt::print("\nscan.db: {:.1f} MiB; bytes a directory: {:.1f}, without its name {:.1f}\n",
             static_cast<double>(database.bytes) / (1 << 20U), database.bytes_each(),
             database.bytes_each_beyond_names());
  fmt::print("MiB: the most at any time; of no program less is seen than this one's own {:.1f}\n",
             own_memory_mib());
  if (!settings.is_short) {
    if (!settings.cold) print_targets(rounds, database);
    const auto file = bench::results_file("scan_bench");
    std::ofstream(file) << to_json(rounds, database).dump(2) << '\n';
    fmt::print("The figures for machines are in {}\n", file.native());
  }
  if (!settings.keep) fmt::print("Removing the tree; --keep leaves it for the next time\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App program("Times whole scans beside other walks of the same tree");
  program.add_option("--dirs", settings.objects, "Objects, a directory of some files each")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  program.add_option("--files", settings.files, "Files of each object")
      ->check(CLI::Range(std::size_t{1}, ScanTree::files_max))
      ->capture_default_str();
  program.add_flag("--cold", settings.cold, "Drops the caches of file systems before each; needs root");
  program.add_option("--dir", settings.folder,
                     "An empty folder for the tree, or one where it was kept; else a temporary one");
  program.add_flag("--keep", settings.keep, "Keeps the tree, for later runs with the same --dirs");
  program.add_option("--rounds", settings.rounds, "Runs of each that count")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  program
      .add_option("--only", settings.steps, "Some steps; speeds are told where first or full is among them")
      ->check(CLI::IsMember({"first", "full", "incremental", "idle"}))
      ->delimiter(',');
  program.add_flag("--short", settings.is_short, "A small tree, one run of each: figures that say nothing");
  return bench::run_bench(program, argc, argv, [&] {
    if (settings.is_short) {
      settings.objects = 500;
      settings.rounds = 1;
    }
    run(settings);
  });
}
