// Records every acknowledged mark and checks each commit of a scan against them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/scanner.h"

namespace spoor::simulation {

// For the scanner of one node. The promise (docs/promises.md, docs/cluster.md):
// - a scan finds a change whose mark was acknowledged before the scan began, if the scan is complete, or if
//   the node that acknowledged responded;
// - a scan walks everything only if knowledge was really lost, or never existed.
class Oracle {
 public:
  // `memory`: of `through`, by then.
  void acknowledge(std::size_t directory, std::uint64_t version, const std::string& through,
                   const Memory& memory, std::uint64_t moment) {
    promised_.push_back({directory, version, through, memory, moment});
  }

  // A node retires. `is_known`: it knows what this scanner has read.
  void note_retirement(const std::string& name, bool is_known) {
    ++retirements_[name];
    if (!is_known) ++may_walk_for_[name];
  }

  // The node is new; `other` is not.
  void begin(const Oracle& other) {
    retirements_ = other.retirements_;
    forget_scans();
  }

  // To be called after the scan's commit. Returns the violation, if any.
  std::optional<std::string> check(const Scan& scan, const Database& database);

  // scan.db was lost, or the node has new disks.
  void forget_scans() {
    walks_.clear();
    returns_.clear();
    may_walk_for_ = retirements_;
    walked_for_.clear();
    book_.clear();
    unheard_.clear();
  }

  // The directories of the node were lost.
  void forget_everything() {
    forget_scans();
    promised_.clear();
  }

  bool has_promises() const { return !promised_.empty(); }
  std::uint64_t full_scans() const { return full_scans_; }
  std::uint64_t scans() const { return scans_; }
  std::uint64_t partial_scans() const { return partial_scans_; }

 private:
  struct Promise {
    std::size_t directory = 0;
    std::uint64_t version = 0;
    std::string through;
    Memory memory;
    std::uint64_t moment = 0;
  };

  std::optional<std::string> check_promises(const Scan& scan, const Database& database);
  std::optional<std::string> check_gaps(const Scan& scan) const;
  bool is_due(const std::string& gap, const Scan& scan) const;
  void count_returns(const tracker::PeerBook& book);
  void remember(const Scan& scan);

  std::vector<Promise> promised_;
  // Scans that walked everything because a node had lost its memory, by name.
  std::map<std::string, std::uint64_t> walks_;
  // Retirements, those for which the scanner may have to walk everything, and those for which it has.
  std::map<std::string, std::uint64_t> retirements_;
  std::map<std::string, std::uint64_t> may_walk_for_;
  std::map<std::string, std::uint64_t> walked_for_;
  // Records of instances that were gone, with a larger run: each of them may have returned and gone again.
  std::map<std::string, std::uint64_t> returns_;
  tracker::PeerBook book_;         // of the last scan
  std::set<std::string> unheard_;  // URLs that did not respond at least once
  std::uint64_t scans_ = 0;
  std::uint64_t full_scans_ = 0;
  std::uint64_t partial_scans_ = 0;
};

}  // namespace spoor::simulation
