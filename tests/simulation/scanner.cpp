#include "tests/simulation/scanner.h"

#include <algorithm>

namespace spoor::simulation {
namespace {

using scanner::Reason;

peer::GatherOptions gather_options(const Scan::Input& input, const Database& database) {
  peer::GatherOptions options;
  options.cluster = "c";
  options.own_url = input.own_url;
  options.own_name = input.own_name;
  options.min_cycle_age = input.min_cycle_age;
  options.start_level = database.start_level;
  options.members.endpoints = input.listed;
  options.forget_after = input.forget_after;
  if (database.scanned_at && input.wall_time > *database.scanned_at)
    options.since_last_scan =
        std::chrono::floor<std::chrono::milliseconds>(input.wall_time - *database.scanned_at);
  return options;
}

}  // namespace

Scan::Scan(Input input, const Database& database)
    : input_(std::move(input)),
      gathering_(database.peers, gather_options(input_, database)),
      start_level_(database.start_level) {
  begin_round();
}

void Scan::begin_round() {
  requests_ = gathering_.next_round();
  ++round_;
  outstanding_.assign(requests_.size(), true);
  outstanding_count_ = requests_.size();
  if (!requests_.empty()) return;
  gathered_ = gathering_.finish();
  gathered_->marks.unpack();
  // As cli/scan/scan_command.cpp does.
  const tracker::LevelSchedule levels(100, 0.1);
  if (gathered_->any_answered())
    start_level_ = std::min<std::size_t>(levels.start_level_for(gathered_->items), 6);
}

bool Scan::take(std::size_t index, const base::Result<peer::HttpResponse>& response) {
  outstanding_[index] = false;
  gathering_.take(index, response);
  if (--outstanding_count_ > 0) return false;
  begin_round();
  return !requests_.empty();
}

bool Scan::walk_on(const Tree& tree, const Database& database) {
  if (walked_parts_ > Tree::fan_out) return false;
  const scanner::ScanPlan plan(gathered_->marks, false);
  if (walked_parts_ == 0) {
    root_reason_ = read(tree, database, plan, plan.root("drive"), Tree::root, {});
  } else if (root_reason_) {
    walk_below(tree, database, plan, plan.root("drive"), Tree::first_child(Tree::root) + walked_parts_ - 1,
               root_reason_);
  }
  ++walked_parts_;
  return true;
}

void Scan::walk_below(const Tree& tree, const Database& database, const scanner::ScanPlan& plan,
                      scanner::PlanCursor at, std::size_t directory, std::optional<Reason> above) {
  at.descend(Tree::name(directory));
  const auto reason = read(tree, database, plan, at, directory, above);
  if (!reason || !Tree::has_children(directory)) return;
  for (std::size_t child = 0; child < Tree::fan_out; ++child) {
    walk_below(tree, database, plan, at, Tree::first_child(directory) + child, reason);
  }
}

// Returns std::nullopt if the directory and everything below it is skipped.
std::optional<Reason> Scan::read(const Tree& tree, const Database& database, const scanner::ScanPlan& plan,
                                 const scanner::PlanCursor& at, std::size_t directory,
                                 std::optional<Reason> above) {
  std::optional<scanner::ScanPlan::Known> known;
  if (database.seen[directory]) known.emplace().inode = directory;
  const Reason reason = plan.reason(at, directory, known, above);
  if (reason == Reason::clean) return std::nullopt;
  found_[directory] = tree.version(directory);
  return reason;
}

void Scan::commit(Database& database) const {
  database.peers = gathered_->book;
  database.scanned_at = input_.wall_time;
  database.start_level = start_level_;
  for (std::size_t at = 0; at < Tree::count; ++at) {
    if (found_[at]) database.seen[at] = found_[at];
  }
}

}  // namespace spoor::simulation
