// What scans read, and what crosses the network, in clusters of 4 to 1,000 nodes whose timers are spread over
// a period: beside the directories that changed. Real trackers and gathering, on a clock that is set; of many
// nodes, a part gathers, and the scans of the others only open their cycles.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "peer/gather/gather.h"
#include "peer/gather/handover.h"
#include "tests/bench/bench_support.h"
#include "tests/fakes/fake_cluster.h"
#include "tests/fakes/manual_clock.h"
#include "tracker/cycles/member_marks.h"
#include "tracker/cycles/tracker.h"

namespace spoor::bench {
namespace {

using fakes::FakeCluster;
using std::chrono::minutes;

constexpr std::size_t directories = 2'000;  // of each node, below `buckets`
constexpr std::size_t buckets = 20;
constexpr std::size_t changes = 20;  // of each node in a period, about
constexpr std::chrono::seconds min_cycle_age{60};

std::string bucket_of(std::size_t directory) { return fmt::format("bucket{:02}", directory % buckets); }
std::string path_of(const std::string& node, std::size_t directory) {
  return fmt::format("{}/{}-{}", bucket_of(directory), node, directory);
}

struct Figures {
  std::uint64_t scans = 0;
  std::uint64_t full = 0;
  std::uint64_t partial = 0;
  std::uint64_t changed = 0;  // directories, with those on the way to them
  std::uint64_t read = 0;
  std::uint64_t bytes = 0;

  double ratio() const {
    return static_cast<double>(read) / static_cast<double>(std::max(changed, std::uint64_t{1}));
  }
};

class Cluster {
 public:
  Cluster(std::size_t nodes, std::size_t gathering, std::chrono::milliseconds period)
      : gathering_(gathering), period_(period) {
    for (std::size_t i = 0; i < nodes; ++i) join();
    for (const std::string& node : nodes_) scan(node);
    figures_ = {};
  }

  // Each node scans once, at its own time; `away` does not.
  void pass(const std::string& away = {}) {
    const std::vector<std::string> scanning = nodes_;
    for (const std::string& node : scanning) {
      clock_.advance(period_ / static_cast<std::int64_t>(scanning.size()));
      for (std::size_t i = 0; i < changes; ++i) change();
      if (std::ranges::find(nodes_, node) != nodes_.end() && node != away) scan(node);
    }
  }

  // It is known to one other node.
  void join() {
    const std::string name = fmt::format("n{}", joined_++);
    FakeCluster::Node& node = cluster_.add(name);
    node.tracker = std::make_unique<tracker::Tracker>(
        tracker::Tracker::Options(), clock_, tracker::Tracker::born(tracker::InstanceId::random(), clock_));
    if (!nodes_.empty()) cluster_.record(any(), cluster_.id(name));
    nodes_.push_back(name);
  }

  // As `spoor members retire` does.
  void retire(const std::string& name) {
    std::erase(nodes_, name);
    const tracker::PeerId id = cluster_.id(name);
    tracker::CycleId from = cluster_[name].tracker->status().current;
    for (const auto& [node, scanner] : scanners_) {
      if (node != name && scanner.has_scanned) from = std::min(from, *peer::unread_from(scanner.book, id));
    }
    auto marks = peer::marks_to_hand_over(*cluster_[name].tracker, from).packed();
    marks.add_tree(tracker::retired_mark(id, {tracker::last_run_of(1), from}).path);
    cluster_[any()].tracker->adopt(std::make_shared<const tracker::MarkSet>(std::move(marks)), {});
    cluster_.remove(name);
    scanners_.erase(name);
  }

  Figures take() { return std::exchange(figures_, {}); }
  const std::string& first() const { return nodes_.front(); }
  std::string last() const { return nodes_.back(); }

  // One scan of a node that was away.
  Figures catch_up(const std::string& node) {
    figures_ = {};
    scan(node);
    return take();
  }

 private:
  struct Scanner {
    tracker::PeerBook book;
    std::size_t start_level = 0;
    bool has_scanned = false;
    std::set<std::size_t> changed;  // since its last scan
  };

  const std::string& any() { return nodes_[random_() % nodes_.size()]; }

  void change() {
    const std::string node = any();
    const std::size_t directory = random_() % directories;
    if (const auto scanner = scanners_.find(node); scanner != scanners_.end())
      scanner->second.changed.insert(directory);
    const tracker::Mark mark{path_of(node, directory) + "/object", tracker::MarkKind::file};
    cluster_[any()].tracker->mark({&mark, 1});
  }

  void scan(const std::string& node) {
    if (!scanners_.contains(node)) {
      if (scanners_.size() >= gathering_) return open_cycle();
      scanners_.try_emplace(node);
    }
    Scanner& scanner = scanners_.at(node);
    Counting counting(cluster_, figures_.bytes);
    peer::GatherOptions options;
    options.members.endpoints = FakeCluster::endpoints(nodes_);
    options.cluster = "c";
    options.own_name = node;
    options.own_url = FakeCluster::endpoint(node).to_string();
    options.min_cycle_age = min_cycle_age;
    options.has_scanned = scanner.has_scanned;
    options.since_last_scan = period_;
    options.start_level = scanner.start_level;
    const auto gathered = peer::gather(counting, scanner.book, options);
    walk(node, scanner, gathered);
    scanner.book = gathered.book;
    scanner.start_level = tracker::Tracker::Options().levels.start_level_for(gathered.items);
    scanner.has_scanned = true;
    for (const std::string& each : nodes_) cluster_[each].asked.clear();
  }

  void walk(const std::string& node, Scanner& scanner, const peer::Gathered& gathered) {
    const auto may_differ = [&](const std::string& path) {
      return gathered.marks.may_contain(path, tracker::hash_path(path));
    };
    ++figures_.scans;
    const bool is_full = !gathered.gaps.empty() || !scanner.has_scanned;
    if (is_full) ++figures_.full;
    if (!gathered.complete()) ++figures_.partial;
    std::set<std::string> way;
    for (const std::size_t directory : scanner.changed) way.insert(bucket_of(directory));
    if (!scanner.changed.empty()) figures_.changed += 1 + way.size() + scanner.changed.size();
    if (is_full || may_differ("")) figures_.read += 1;
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
      if (is_full || may_differ(bucket_of(bucket))) figures_.read += 1;
    }
    for (std::size_t directory = 0; directory < directories; ++directory) {
      const bool is_read =
          is_full || (may_differ(bucket_of(directory)) && may_differ(path_of(node, directory)));
      if (is_read) figures_.read += 1;
      if (!is_read && scanner.changed.contains(directory)) throw std::runtime_error("a change is missed");
    }
    scanner.changed.clear();
  }

  // What a scan does to the trackers.
  void open_cycle() {
    tracker::CycleId current;
    std::chrono::milliseconds age{};
    for (const std::string& node : nodes_) {
      const auto head =
          cluster_[node].tracker->cycle({.current = {}, .oldest = {}, .instance = {}, .marks_wanted = false});
      if (head.current < current) continue;
      age = head.current == current ? std::max(age, head.current_age) : head.current_age;
      current = head.current;
    }
    if (age >= min_cycle_age) current = next(current);
    for (const std::string& node : nodes_) cluster_[node].tracker->advance(current);
  }

  class Counting final : public peer::Transport {
   public:
    Counting(peer::Transport& inner, std::uint64_t& bytes) : inner_(inner), bytes_(bytes) {}

    void exchange(std::span<const peer::HttpRequest> requests, const OnResponse& on_response) override {
      for (const peer::HttpRequest& request : requests) bytes_ += request.body.size();
      inner_.exchange(requests, [&](std::size_t index, base::Result<peer::HttpResponse> response) {
        if (response) bytes_ += response->body.size();
        on_response(index, std::move(response));
      });
    }

   private:
    peer::Transport& inner_;
    std::uint64_t& bytes_;
  };

  const std::size_t gathering_;
  const std::chrono::milliseconds period_;
  fakes::ManualClock clock_;
  FakeCluster cluster_{clock_};
  std::mt19937_64 random_{1};
  std::size_t joined_ = 0;
  std::vector<std::string> nodes_;
  std::map<std::string, Scanner> scanners_;
  Figures figures_;
};

struct Timer {
  const char* name;
  std::chrono::milliseconds period;
};

void print(std::size_t nodes, const Timer& timer, const std::string& what, const Figures& figures) {
  fmt::print("{:>6} {:>7}  {:<28} {:>6} {:>5} {:>8} {:>9} {:>9} {:>6.2f} {:>10.1f}\n", nodes, timer.name,
             what, figures.scans, figures.full, figures.partial, figures.changed, figures.read,
             figures.ratio(),
             static_cast<double>(figures.bytes) / 1024 /
                 static_cast<double>(std::max(figures.scans, std::uint64_t{1})));
  std::fflush(stdout);
}

struct Sizes {
  std::size_t nodes = 0;
  std::size_t gathering = 0;  // of them
  int periods = 0;            // of each row
  std::vector<int> away;      // periods
};

// The largest of all rows.
struct Wanted {
  double steady = 0;  // directories read for each that changed
  double away = 0;    // of a node that was away
  std::uint64_t full = 0;
};

Wanted measure(const Sizes& sizes, const Timer& timer) {
  Cluster cluster(sizes.nodes, sizes.gathering, timer.period);
  cluster.pass();
  static_cast<void>(cluster.take());
  for (int period = 0; period < sizes.periods; ++period) cluster.pass();
  const Figures steady = cluster.take();
  print(sizes.nodes, timer, "all scan", steady);
  Wanted wanted;
  wanted.steady = steady.ratio();
  for (const int away : sizes.away) {
    const std::string node = cluster.first();
    for (int period = 0; period < away; ++period) cluster.pass(node);
    static_cast<void>(cluster.take());
    const Figures caught_up = cluster.catch_up(node);
    print(sizes.nodes, timer, fmt::format("one was away for {}", away), caught_up);
    wanted.away = std::max(wanted.away, caught_up.ratio());
  }
  for (int period = 0; period < sizes.periods; ++period) {
    cluster.join();
    cluster.pass();
    cluster.retire(cluster.last());
    cluster.pass();
  }
  const Figures churn = cluster.take();
  print(sizes.nodes, timer, "one joins, one retires", churn);
  wanted.full = steady.full + churn.full;
  return wanted;
}

}  // namespace
}  // namespace spoor::bench

int main(int argc, char** argv) {
  CLI::App app("Directories read and bytes sent by the scans of a cluster");
  bool is_short = false;
  app.add_flag("--short", is_short, "A small one: figures that say nothing");
  CLI11_PARSE(app, argc, argv);
  using spoor::bench::Sizes;
  const std::vector<Sizes> all = is_short ? std::vector<Sizes>{{3, 3, 1, {1}}}
                                          : std::vector<Sizes>{{4, 4, 10, {1, 10, 100}},
                                                               {16, 16, 10, {1, 10, 100}},
                                                               {64, 16, 5, {1, 10, 100}},
                                                               {1'000, 10, 2, {1, 10}}};
  fmt::print("{:>6} {:>7}  {:<28} {:>6} {:>5} {:>8} {:>9} {:>9} {:>6} {:>10}\n", "nodes", "timers", "",
             "scans", "full", "partial", "changed", "read", "ratio", "KiB/scan");
  spoor::bench::Wanted most;
  for (const Sizes& sizes : all) {
    using namespace std::chrono_literals;
    for (const spoor::bench::Timer& timer :
         {spoor::bench::Timer{"15 min", 15min}, {"1 h", 1h}, {"24 h", 24h}}) {
      const auto found = spoor::bench::measure(sizes, timer);
      most.steady = std::max(most.steady, found.steady);
      most.away = std::max(most.away, found.away);
      most.full += found.full;
    }
  }
  spoor::bench::Targets targets;
  targets.at_most("directories read for each that changed", most.steady, 1.3);
  targets.at_most("the same after an absence", most.away, 2);
  targets.at_most("full walks of nodes that scanned before", static_cast<double>(most.full), 0);
  return 0;
}
