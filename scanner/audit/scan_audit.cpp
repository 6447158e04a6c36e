#include "scanner/audit/scan_audit.h"

#include <algorithm>
#include <utility>

namespace spoor::scanner {
namespace {

// Marks come first: what is due for the audit and was not read in this time is left for the next scan.
constexpr std::chrono::minutes time_max{10};

}  // namespace

base::Result<DifferingPaths> ScanAudit::run(const std::vector<KnownDrive>& drives, bool walks_everything) {
  for (const KnownDrive& drive : drives) {
    auto restored = restore(drive);
    if (!restored) return restored.error();
    if (restored->state.advance_to(context_.input.started_at, context_.options.audit_period)) {
      restored->position.reset();
    }
    drives_.push_back(std::move(*restored));
  }
  const bool is_off = walks_everything || context_.options.audit_period.count() == 0;
  return is_off ? DifferingPaths() : run_on_all();
}

// The state, and if there is one, NUL and the position.
base::Result<ScanAudit::OnDrive> ScanAudit::restore(const KnownDrive& drive) {
  OnDrive on{drive, AuditState::begun(context_.input.started_at), std::nullopt};
  const auto own = context_.transaction.setting(audit_key(drive.id));
  if (!own) return own.error();
  if (!*own) return on;
  const std::size_t end = (*own)->find('\0');
  const auto state = AuditState::parse((*own)->substr(0, end));
  if (!state) return on;
  on.state = *state;
  if (end != std::string::npos) on.position = (*own)->substr(end + 1);
  return on;
}

// A scan that is killed meanwhile is resumed without an audit, so that its marks are walked in any case.
base::Result<DifferingPaths> ScanAudit::run_on_all() {
  const base::SteadyTime now = context_.environment.clock.steady_now();
  Audit audit(context_, now, context_.is_resumed ? now : now + time_max);
  // If the time is too short for all drives, the one that waited longest comes first.
  std::vector<OnDrive*> in_order;
  for (OnDrive& on : drives_) {
    if (on.drive.drive.refused.empty()) in_order.push_back(&on);
  }
  std::ranges::sort(in_order, {}, [](const OnDrive* on) { return std::pair(on->state.oldest(), on); });
  DifferingPaths differing;
  for (OnDrive* const on : in_order) {
    if (auto done = run_on(*on, audit, differing); !done) return done.error();
  }
  return differing;
}

base::Result<> ScanAudit::run_on(OnDrive& on, Audit& audit, DifferingPaths& differing) {
  const auto all = total(on.drive);
  if (!all) return all.error();
  const std::uint64_t due = on.state.due(*all, context_.options.audit_period);
  if (due == 0) return {};
  auto outcome = audit.run(on.drive, on.position, due);
  if (!outcome) return outcome.error();
  on.is_walked_in_full = outcome->is_left_to_walk;
  // The walk reads them, even where it knows their listings.
  if (outcome->last_path) context_.audited.push_back({on.drive.id, on.position, *outcome->last_path});
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
  for (std::string& path : outcome.missed_paths) {
    const bool is_new = std::ranges::find(report_.missed_paths, path) == report_.missed_paths.end();
    if (is_new) report_.missed_paths.push_back(std::move(path));
    if (!is_new) --report_.missed;
  }
  differing.merge(std::move(outcome.differing));
}

base::Result<std::uint64_t> ScanAudit::total(const KnownDrive& drive) {
  const auto root = context_.transaction.directories().find(DirectoryStore::parent_of_root(drive.id), "");
  if (!root) return root.error();
  return *root ? 1 + (*root)->directories : std::uint64_t{0};
}

base::Result<> ScanAudit::keep(bool walked_everything, const std::vector<ScanError>& failed) {
  std::optional<base::WallTime> oldest;
  for (OnDrive& on : drives_) {
    const bool was_walked = walked_everything || on.is_walked_in_full;
    if (was_walked &&
        std::ranges::find(failed, on.drive.drive.path.native(), &ScanError::path) == failed.end()) {
      on.state = AuditState::begun(context_.input.started_at);
      on.position.reset();
    }
    std::string text = on.state.to_text();
    if (on.position) text += '\0' + *on.position;
    if (auto kept = context_.transaction.set_setting(audit_key(on.drive.id), text); !kept) return kept;
    oldest = std::min(oldest.value_or(on.state.oldest()), on.state.oldest());
  }
  // The clock may have been set back while the scan ran.
  const bool is_on = context_.options.audit_period.count() > 0;
  if (is_on && oldest) report_.oldest_total = std::min(*oldest, context_.environment.clock.wall_now());
  return {};
}

}  // namespace spoor::scanner
