// A machine of a simulation: disks and a clock that outlive its daemon, and the daemon, made of the real
// tracker and its persistence.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "peer/http/transport.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fakes/memory_file_system.h"
#include "tests/simulation/script.h"
#include "tracker/storage/persistence.h"

namespace spoor::simulation {

// Defects that a test injects, to verify that the simulation detects them.
enum class Bug {
  none,
  cursor_before_walk,  // a scanner stores its cursors before it has walked
  split_chain,         // the prefixes of a mark may land in two cycles
  live_excluded,       // responses contain closed cycles only
  join_unrecorded,     // a tracker responds to the introduction of another one without a record of it
  acknowledges_early,  // a tracker acknowledges marks before another one has recorded it
  span_skipped,        // a span that began before the cursor is not in the response
  retires_open,        // a tracker acknowledges marks after it has handed its marks on
  records_late,        // a record of a tracker that retires counts
  adopts_too_little,   // only the marks of the current cycle are handed on
  adopts_in_memory,    // the record of a retirement is durable before the marks that were handed on
};

// What a node remembers: marks of before it lost its memory, or retired, are elsewhere, or nowhere.
struct Memory {
  std::uint64_t losses = 0;
  std::uint64_t retirements = 0;

  friend bool operator==(const Memory&, const Memory&) = default;
};

class Node {
 public:
  Node(std::uint32_t number, const Setup& setup, Bug bug);

  const std::string& name() const { return name_; }
  bool runs() const { return persistence_ != nullptr; }
  const tracker::InstanceId& instance() const { return instance_; }  // of its last run
  std::uint64_t run_number() const { return runs_; }
  fakes::ManualClock& clock() { return clock_; }

  const Memory& memory() const { return memory_; }

  // The first error in its memory; empty if there is none.
  const std::string& violation() const { return violation_; }

  // --- the machine ---

  // `choice` decides the filters and the durability of this run.
  void start(std::uint32_t choice);
  void kill();
  void lose_power(std::uint32_t fates);
  void stop();
  void wipe();
  void fill_disk() { files_->fill("/"); }
  void free_disk() { files_->heal("/"); }

  // --- the daemon; only while it runs ---

  // Returns the position up to which the journal must be durable before the marks may be acknowledged.
  tracker::JournalPosition mark(const std::vector<tracker::Mark>& marks);

  bool is_durable(tracker::JournalPosition position) const;
  // Returns whether the journal was written; otherwise nothing is acknowledged.
  bool commit();
  void save();

  struct Answer {
    peer::HttpResponse response;
    tracker::JournalPosition position = 0;  // must be durable before the response is sent
    Memory memory = {};                     // a loss justifies a gap
  };
  Answer answer(const std::string& body);

  bool is_member() const { return !tracker::is_leaving(persistence_->membership()); }
  bool has_retired() const { return persistence_->membership() == tracker::Membership::retired; }
  bool note(tracker::Membership membership) { return persistence_->note_membership(membership).has_value(); }
  tracker::CycleId current() const { return tracker().status().current; }
  void open_cycle() { tracker().advance(next(current())); }
  tracker::MarkSet marks_to_hand_over(tracker::CycleId from) const;
  // Adopts the marks of another node. Returns the position up to which the journal must be durable before
  // that node has retired.
  tracker::JournalPosition adopt(const Node& from, tracker::CycleId adopted_from, tracker::MarkSet marks);

  // The body of the request by which it introduces itself, and what it does when a member has recorded it.
  std::string greeting() const;
  // Returns whether it did.
  bool meet(const peer::HttpResponse& response);

 private:
  tracker::Persistence::Options options() const;
  void end_run();
  tracker::Tracker& tracker() const { return persistence_->tracker(); }
  void place_split_marks();
  void apply_bug(const tracker::CycleRequest& asked, tracker::CycleAnswer& answer);

  const Bug bug_;
  const std::string name_;
  const Setup setup_;
  fakes::ManualClock clock_;
  std::unique_ptr<fakes::MemoryFileSystem> files_;
  std::uint64_t boot_ = 1;
  std::uint32_t choice_ = 0;
  std::uint64_t runs_ = 0;
  base::SteadyTime started_at_;
  tracker::InstanceId instance_;
  std::unique_ptr<tracker::Persistence> persistence_;

  // Whether a loss is justified at the next start.
  tracker::Durability last_durability_ = tracker::Durability::disk;
  bool ended_cleanly_ = true;
  bool lost_power_ = false;
  bool is_wiped_ = false;
  Memory memory_;
  std::string violation_;

  // Bug::split_chain: the paths that were marked without their parents, and in which cycle.
  std::vector<std::string> split_off_;
  std::vector<std::pair<tracker::CycleId, tracker::MarkSet>> split_marks_;
};

}  // namespace spoor::simulation
