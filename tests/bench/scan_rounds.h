// Scans and other walks of one tree, by turns.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/figures.h"
#include "tests/bench/scan_node.h"
#include "tests/bench/scan_tree.h"

namespace spoor::bench {

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

}  // namespace spoor::bench
