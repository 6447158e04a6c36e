#include "scanner/scan.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "scanner/errors.h"

namespace spoor::scanner {
namespace {

constexpr const char* rules_key = "rules";
// One spelling for each: "/mnt/a/" and "/mnt/./a" are "/mnt/a".
base::Result<std::vector<Drive>> checked_drives(const std::vector<Drive>& given) {
  std::vector<Drive> drives;
  std::set<std::filesystem::path> seen;
  for (const Drive& drive : given) {
    std::filesystem::path path = drive.path.lexically_normal();
    if (!path.has_filename() && path.has_parent_path()) path = path.parent_path();
    const char* wrong = !path.is_absolute()         ? "is no absolute path"
                        : !seen.insert(path).second ? "is given twice"
                                                    : nullptr;
    if (wrong != nullptr) {
      return base::Error(
          std::make_error_code(std::errc::invalid_argument),
          fmt::format("the drive {} {}; correct the list of drives", drive.path.native(), wrong));
    }
    drives.push_back({std::move(path), drive.refused, drive.identity});
  }
  return drives;
}

class Scan {
 public:
  Scan(const ScanOptions& options, const ScanInput& input, const ScanEnvironment& environment,
       ScanTransaction& transaction)
      : options_(options), input_(input), environment_(environment), transaction_(transaction) {}

  base::Result<ScanReport> run(const std::vector<Drive>& drives) {
    const base::SteadyTime started = environment_.clock.steady_now();
    report_.record.started_at = input_.started_at;
    if (auto described = describe(); !described) return described.error();
    if (auto walked = walk(drives); !walked) return walked.error();
    report_.record.finished_at = environment_.clock.wall_now();
    if (auto committed = commit(); !committed) return committed.error();
    report_.duration = environment_.clock.steady_now() - started;
    return std::move(report_);
  }

 private:
  base::Result<> describe() {
    auto reason = reason_for_everything();
    if (!reason) return reason.error();
    ScanRecord& record = report_.record;
    record.id = transaction_.scan_id();
    record.cycle = input_.cycle;
    record.partial = input_.partial;
    record.reason = std::move(*reason);
    record.walked_everything = !record.reason.empty();
    return {};
  }

  // Empty where the marks decide.
  base::Result<std::string> reason_for_everything() {
    if (options_.full) return std::string("a full scan was asked for");
    if (transaction_.is_first()) return std::string("it is the first scan");
    const auto rules = transaction_.setting(rules_key);
    if (!rules) return rules.error();
    if (*rules != options_.rules.fingerprint())
      return std::string("the rules on what is ignored have changed");
    if (!input_.everything.empty()) return input_.everything;
    if (input_.marks.tree_marks().covers("")) return std::string("anything may have changed");
    return std::string();
  }

  base::Result<> walk(const std::vector<Drive>& drives) {
    const ScanPlan plan(input_.marks, report_.record.walked_everything);
    Pace pace(options_.max_dirs_per_second, environment_.clock, environment_.waiter);
    WalkContext context{environment_.reader,        plan, options_.rules,
                        transaction_.directories(), pace, environment_.stop};
    context.scan_id = transaction_.scan_id();
    context.progress = environment_.progress;
    context.progress_every = std::max<std::uint64_t>(options_.progress_every, 1);
    context.errors.kept_max = options_.errors_kept_max;
    if (auto walked = walk_drives(context, drives); !walked) return walked;
    report_.record.figures = context.figures;
    report_.record.errors = context.errors.count;
    report_.errors = std::move(context.errors.kept);
    return {};
  }

  base::Result<> walk_drives(WalkContext& context, const std::vector<Drive>& drives) {
    auto stored = transaction_.drives();
    if (!stored) return stored.error();
    std::map<std::string, StoredDrive> known;
    for (StoredDrive& drive : *stored) known[drive.path] = drive;
    for (const Drive& drive : drives) {
      auto entry = known.extract(drive.path.native());
      auto its = entry.empty() ? transaction_.add_drive(drive.path.native())
                               : base::Result<StoredDrive>(entry.mapped());
      if (!its) return its.error();
      if (auto walked = walk_one(context, drive, its->id); !walked) return walked;
    }
    for (const auto& [path, drive] : known) {
      if (auto forgotten = forget(context, drive); !forgotten) return forgotten;
    }
    return {};
  }

  base::Result<> walk_one(WalkContext& context, const Drive& drive, std::int64_t id) {
    if (auto told = tell_apart(context, drive, id); !told) return told;
    auto failed = walk_drive(context, drive, id, options_.full);
    if (!failed) return failed.error();
    if (*failed) report_.failed_drives.push_back(std::move(**failed));
    auto root = context.store.find(DirectoryStore::parent_of_root(id), "");
    if (!root) return root.error();
    if (*root) {
      report_.record.files += (*root)->subtree.files;
      report_.record.bytes += (*root)->subtree.bytes;
    }
    return {};
  }

  // Forgets what is stored where another drive stands at the path now.
  base::Result<> tell_apart(WalkContext& context, const Drive& drive, std::int64_t id) {
    if (!drive.refused.empty() || drive.identity.empty()) return {};
    const auto before = transaction_.drive_identity(id);
    if (!before) return before.error();
    if (*before == drive.identity) return {};
    if (*before) {
      const auto erased = erase_all(context, id);
      if (!erased) return erased.error();
      context.figures.dirs_deleted += *erased;
    }
    return transaction_.set_drive_identity(id, drive.identity);
  }

  base::Result<std::uint64_t> erase_all(WalkContext& context, std::int64_t id) {
    const std::int64_t parent = DirectoryStore::parent_of_root(id);
    auto root = context.store.find(parent, "");
    if (!root) return root.error();
    if (!*root) return std::uint64_t{0};
    return context.store.erase(parent, **root, context.stop);
  }

  // Its directories are not gone: nobody looks at them any more.
  base::Result<> forget(WalkContext& context, const StoredDrive& drive) {
    if (auto erased = erase_all(context, drive.id); !erased) return erased.error();
    return transaction_.forget_drive(drive);
  }

  base::Result<> commit() {
    // What was asked to stop has not happened, even if it was nearly done.
    if (environment_.stop.stop_requested()) return interrupted_error();
    if (auto kept = transaction_.set_cursors(input_.next_cursors); !kept) return kept;
    if (auto kept = transaction_.set_start_level(input_.start_level); !kept) return kept;
    if (auto kept = transaction_.set_roll_position(input_.roll_position); !kept) return kept;
    if (auto kept = transaction_.set_setting(rules_key, options_.rules.fingerprint()); !kept) return kept;
    return transaction_.commit(report_.record);
  }

  const ScanOptions& options_;
  const ScanInput& input_;
  const ScanEnvironment& environment_;
  ScanTransaction& transaction_;
  ScanReport report_;
};

}  // namespace

base::Result<ScanReport> run_scan(UsageDatabase& database, const ScanOptions& options, const ScanInput& input,
                                  const ScanEnvironment& environment) {
  const auto drives = checked_drives(options.drives);
  if (!drives) return drives.error();
  auto transaction = database.begin_scan();
  if (!transaction) return transaction.error();
  return Scan(options, input, environment, **transaction).run(*drives);
}

}  // namespace spoor::scanner
