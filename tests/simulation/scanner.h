// The scanner of a node in a simulation: what cli/scan/scan_command.cpp and the walker do, with the real
// gathering and the real plan, on a tree and a database in memory.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "peer/gather/gather.h"
#include "scanner/walk/scan_plan.h"
#include "tests/simulation/node.h"
#include "tests/simulation/tree.h"
#include "tracker/filter/level_schedule.h"
#include "tracker/filter/mark_cursor.h"

namespace spoor::simulation {

// scan.db: changes with a commit only.
struct Database {
  tracker::PeerBook peers;
  std::optional<base::WallTime> scanned_at;
  std::size_t start_level = 0;
  std::array<std::optional<std::uint64_t>, Tree::count> seen;  // the version of each directory
};

// One scan, from its first request to its commit.
class Scan {
 public:
  struct Input {
    std::uint64_t number = 0;
    std::uint64_t started_at = 0;  // in actions
    std::vector<base::Endpoint> listed;
    std::set<std::string> names;  // of the members listed
    std::chrono::milliseconds forget_after{0};
    base::WallTime wall_time = {};
    std::string own_url;
    std::string own_name;
    std::string hostile;  // the name of the hostile peer, if there is one
    std::chrono::seconds min_cycle_age{60};
  };

  Scan(Input input, const Database& database);

  const Input& input() const { return input_; }

  // --- gathering ---

  std::size_t round() const { return round_; }
  const std::vector<peer::HttpRequest>& requests() const { return requests_; }
  bool is_outstanding(std::size_t round, std::size_t index) const {
    return round == round_ && index < outstanding_.size() && outstanding_[index];
  }
  bool gathers() const { return !gathered_; }

  // Returns whether there are new requests() to be sent.
  bool take(std::size_t index, const base::Result<peer::HttpResponse>& response);

  // Records, for the oracle, the memory of the tracker behind the response that was taken for a name.
  void note_answer(const std::string& name, const Memory& memory) { answered_[name] = memory; }

  const std::map<std::string, Memory>& answered() const { return answered_; }

  // --- walking; after gathering ---

  const peer::Gathered& gathered() const { return *gathered_; }

  // No peer responded, and there is no other reason to walk.
  bool is_pointless() const { return !gathered_->any_answered() && gathered_->gaps.empty(); }

  // Walks the next part of the tree. Returns false when everything is walked.
  bool walk_on(const Tree& tree, const Database& database);

  void commit(Database& database) const;

 private:
  void begin_round();
  void walk_below(const Tree& tree, const Database& database, const scanner::ScanPlan& plan,
                  scanner::PlanCursor at, std::size_t directory, std::optional<scanner::Reason> above);
  std::optional<scanner::Reason> read(const Tree& tree, const Database& database,
                                      const scanner::ScanPlan& plan, const scanner::PlanCursor& at,
                                      std::size_t directory, std::optional<scanner::Reason> above);

  const Input input_;
  peer::Gathering gathering_;
  std::size_t start_level_ = 0;
  std::size_t round_ = 0;
  std::vector<peer::HttpRequest> requests_;
  std::vector<bool> outstanding_;
  std::size_t outstanding_count_ = 0;
  std::map<std::string, Memory> answered_;
  std::optional<peer::Gathered> gathered_;

  std::size_t walked_parts_ = 0;
  std::optional<scanner::Reason> root_reason_;
  std::array<std::optional<std::uint64_t>, Tree::count> found_;
};

}  // namespace spoor::simulation
