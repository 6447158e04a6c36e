#include "scanner/scan_audit.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace spoor::scanner {
namespace {

constexpr const char* state_key = "audit";
constexpr const char* position_key = "audit_position";  // the drive, and where there is one, NUL and the path

}  // namespace

base::Result<> ScanAudit::begin_anew() {
  state_ = AuditState::begun(context_.started_at);
  position_ = {};
  if (period_.count() > 0) report_.oldest_total = state_.oldest();
  return keep();
}

base::Result<std::set<std::string>> ScanAudit::run(const std::vector<AuditedDrive>& drives) {
  std::set<std::string> differing;
  if (period_.count() == 0) return differing;
  if (auto restored = restore(); !restored) return restored.error();
  const auto all = total(drives);
  if (!all) return all.error();
  std::uint64_t left = state_.due(*all, context_.started_at, period_);
  if (left > 0) {
    auto drive = std::ranges::find(drives, std::filesystem::path(position_.drive), &AuditedDrive::path);
    // A drive that is gone from the settings: the round goes on with the first, and some are read twice.
    if (drive == drives.end()) {
      drive = drives.begin();
      position_.path.reset();
    }
    std::uint64_t visited = 0;
    for (; drive != drives.end() && left > 0; ++drive) {
      auto outcome = Audit(context_).run(*drive, position_.path, left);
      if (!outcome) return outcome.error();
      position_.drive = drive->path.native();
      if (outcome->last_path) position_.path = outcome->last_path;
      left -= outcome->visited;
      visited += outcome->visited;
      const bool is_at_end = outcome->is_at_end;
      take(std::move(*outcome), differing);
      if (!is_at_end) break;  // enough for this scan, or out of time
      position_.path.reset();
    }
    const bool is_round_over = drive == drives.end();
    if (is_round_over) position_ = {};
    const bool has_moved = visited > 0 || is_round_over;
    if (has_moved) state_.visited(visited, *all, context_.started_at, is_round_over);
  }
  report_.oldest_total = state_.oldest();
  if (auto kept = keep(); !kept) return kept.error();
  return differing;
}

void ScanAudit::take(Audit::Outcome outcome, std::set<std::string>& differing) {
  report_.audited += outcome.audited;
  report_.missed += outcome.missed;
  std::ranges::move(outcome.missed_paths, std::back_inserter(report_.missed_paths));
  differing.merge(outcome.differing);
}

base::Result<std::uint64_t> ScanAudit::total(const std::vector<AuditedDrive>& drives) {
  std::uint64_t all = 0;
  for (const AuditedDrive& drive : drives) {
    const auto root = transaction_.directories().find(DirectoryStore::parent_of_root(drive.id), "");
    if (!root) return root.error();
    if (*root) all += 1 + (*root)->directories;
  }
  return all;
}

base::Result<> ScanAudit::restore() {
  const auto state = transaction_.setting(state_key);
  if (!state) return state.error();
  const auto position = transaction_.setting(position_key);
  if (!position) return position.error();
  const auto parsed = AuditState::parse(state->value_or(""));
  state_ = parsed.value_or(AuditState::begun(context_.started_at));
  const bool is_next = state_.begin_next_round(context_.started_at, period_);
  position_ = {};
  if (!parsed || is_next || !*position) return {};
  const std::size_t end = (*position)->find('\0');
  position_.drive = (*position)->substr(0, end);
  if (end != std::string::npos) position_.path = (*position)->substr(end + 1);
  return {};
}

base::Result<> ScanAudit::keep() {
  if (auto kept = transaction_.set_setting(state_key, state_.to_text()); !kept) return kept;
  std::string position = position_.drive;
  if (position_.path) position += '\0' + *position_.path;
  return transaction_.set_setting(position_key, position);
}

}  // namespace spoor::scanner
