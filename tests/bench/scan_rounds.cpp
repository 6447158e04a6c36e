#include "tests/bench/scan_rounds.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "tests/bench/disk.h"
#include "tests/bench/tree_visit.h"

namespace spoor::bench {
namespace {

using Mode = ScanNode::Mode;

double visit_seconds(const ScanTree& tree, const std::vector<std::string>& paths, Depth depth) {
  const auto started = std::chrono::steady_clock::now();
  visit(tree.drive(), paths, depth);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

void add_known(Figures& figures, double figure) {
  if (figure > 0) figures.add(figure);
}

}  // namespace

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
  node_.scan(Mode::as_needed);  // whatever the steps, each but the first scan has one before it
}

void ScanRounds::add_walkers(bool first, bool full) {
  if (first) {
    walkers_.push_back({"first scan", [this] {
                          node_.forget_scans();
                          return node_.scan(Mode::as_needed).cost;
                        }});
  }
  if (full) walkers_.push_back({"full scan", [this] { return node_.scan(Mode::full).cost; }});
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
    run = node_.scan(Mode::as_needed);
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

}  // namespace spoor::bench
