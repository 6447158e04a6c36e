#include "scanner/scan_audit.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace spoor::scanner {
namespace {

// Of versions that had one round for all drives: its state; and the drive it had come to, and where there was
// one, NUL and the path.
constexpr const char* shared_state_key = "audit";
constexpr const char* shared_position_key = "audit_position";

}  // namespace

base::Result<> ScanAudit::restore(const std::vector<AuditedDrive>& drives) {
  for (const AuditedDrive& drive : drives) {
    auto restored = restore_drive(drive);
    if (!restored) return restored.error();
    if (restored->state.advance_to(context_.started_at, period_)) restored->position.reset();
    drives_.push_back(std::move(*restored));
  }
  return {};
}

// The state, and where there is one, NUL and the position.
base::Result<ScanAudit::OnDrive> ScanAudit::restore_drive(const AuditedDrive& drive) {
  OnDrive on{drive, AuditState::begun(context_.started_at), std::nullopt};
  const auto own = transaction_.drive_audit(drive.id);
  if (!own) return own.error();
  if (*own) {
    const std::size_t end = (*own)->find('\0');
    const auto state = AuditState::parse((*own)->substr(0, end));
    if (!state) return on;
    on.state = *state;
    if (end != std::string::npos) on.position = (*own)->substr(end + 1);
    return on;
  }
  const auto text = transaction_.setting(shared_state_key);
  if (!text) return text.error();
  const auto position = transaction_.setting(shared_position_key);
  if (!position) return position.error();
  const auto shared = AuditState::parse(text->value_or(""));
  if (!shared) return on;
  on.state = shared->of_one_drive();
  const std::string its = drive.path.native() + '\0';
  if (*position && (*position)->starts_with(its)) on.position = (*position)->substr(its.size());
  return on;
}

base::Result<DifferingPaths> ScanAudit::run() {
  DifferingPaths differing;
  if (period_.count() == 0) return differing;
  // Where the time is not enough for all drives, the one that waited longest comes first.
  std::vector<OnDrive*> in_turn;
  for (OnDrive& on : drives_) {
    if (!on.drive.is_refused) in_turn.push_back(&on);
  }
  std::ranges::sort(in_turn, {}, [](const OnDrive* on) { return std::pair(on->state.oldest(), on); });
  for (OnDrive* const on : in_turn) {
    if (auto done = run_on(*on, differing); !done) return done.error();
  }
  return differing;
}

base::Result<> ScanAudit::run_on(OnDrive& on, DifferingPaths& differing) {
  const auto all = total(on.drive);
  if (!all) return all.error();
  const std::uint64_t due = on.state.due(*all, period_);
  if (due == 0) return {};
  auto outcome = Audit(context_).run(on.drive, on.position, due);
  if (!outcome) return outcome.error();
  on.is_walked_in_full = outcome->is_left_to_walk;
  if (outcome->last_path) on.position = outcome->last_path;
  if (outcome->is_at_end) on.position.reset();
  const bool has_moved = outcome->visited > 0 || outcome->is_at_end;
  if (has_moved) on.state.visited(outcome->visited, *all, outcome->is_at_end);
  take(std::move(*outcome), differing);
  return {};
}

void ScanAudit::take(Audit::Outcome outcome, DifferingPaths& differing) {
  report_.audited += outcome.audited;
  report_.missed += outcome.missed;
  std::ranges::move(outcome.missed_paths, std::back_inserter(report_.missed_paths));
  differing.merge(std::move(outcome.differing));
}

base::Result<std::uint64_t> ScanAudit::total(const AuditedDrive& drive) {
  const auto root = transaction_.directories().find(DirectoryStore::parent_of_root(drive.id), "");
  if (!root) return root.error();
  return *root ? 1 + (*root)->directories : std::uint64_t{0};
}

base::Result<> ScanAudit::keep(bool walked_everything,
                               const std::function<bool(const std::filesystem::path& drive)>& has_failed) {
  std::optional<base::WallTime> oldest;
  for (OnDrive& on : drives_) {
    if ((walked_everything || on.is_walked_in_full) && !has_failed(on.drive.path)) {
      on.state = AuditState::begun(context_.started_at);
      on.position.reset();
    }
    std::string text = on.state.to_text();
    if (on.position) text += '\0' + *on.position;
    if (auto kept = transaction_.set_drive_audit(on.drive.id, text); !kept) return kept;
    oldest = std::min(oldest.value_or(on.state.oldest()), on.state.oldest());
  }
  // The clock may have been set back while the scan ran.
  if (period_.count() > 0 && oldest) report_.oldest_total = std::min(*oldest, context_.clock.wall_now());
  for (const char* const key : {shared_state_key, shared_position_key}) {
    if (auto removed = transaction_.remove_setting(key); !removed) return removed;
  }
  return {};
}

}  // namespace spoor::scanner
