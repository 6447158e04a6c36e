#include "scanner/scan.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/directory_overlap.h"
#include "scanner/change_feed.h"
#include "scanner/errors.h"

namespace spoor::scanner {
namespace {

constexpr const char* rules_key = "rules";
constexpr const char* links_since_key = "links_since";
// Marks come first: what of the audit is due, but was not read in this time, is left for the next scan.
constexpr std::chrono::minutes audit_time_max{10};
constexpr std::chrono::seconds audit_long{1};

// A drive that overlaps with another one is left alone: else the files of both would be counted twice. Of two
// that are the same directory, the one stays that is known to be a drive.
void refuse_overlapping(std::vector<Drive>& drives) {
  std::vector<std::size_t> order(drives.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto is_known = [&](std::size_t at) {
    return drives[at].refused.empty() && !drives[at].identity.empty();
  };
  std::ranges::sort(order, {}, [&](std::size_t at) { return std::pair(!is_known(at), at); });
  std::vector<std::filesystem::path> paths;
  paths.reserve(order.size());
  for (const std::size_t at : order) paths.push_back(drives[at].path);
  for (const base::DirectoryOverlap& overlap : base::find_overlaps(paths)) {
    Drive& drive = drives[order[overlap.directory]];
    if (!drive.refused.empty()) continue;
    drive.refused = base::overlap_text(overlap, paths);
    drive.overlaps = true;
  }
}

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
  refuse_overlapping(drives);
  return drives;
}

class Scan {
 public:
  Scan(const ScanOptions& options, const ScanInput& input, const ScanEnvironment& environment,
       ScanTransaction& transaction)
      : options_(options), input_(input), environment_(environment), transaction_(transaction) {}

  // Drives that turned out to be others than those that were walked, and why: with any, run() fails, and is
  // to be done again without them.
  const std::map<std::filesystem::path, std::string>& replaced() const { return replaced_; }

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
    const auto has_begun = transaction_.keep_files(options_.file_feed);
    if (!has_begun) return has_begun.error();
    file_feed_has_begun_ = *has_begun;
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
    if (transaction_.is_first()) {
      auto rebuilt = transaction_.rebuilt_because();
      if (!rebuilt || !rebuilt->empty()) return rebuilt;
    }
    if (options_.full) return std::string("a full scan was asked for");
    if (transaction_.is_first()) return std::string("it is the first scan");
    if (file_feed_has_begun_) return std::string("scan.file_feed was switched on");
    const auto links_since = transaction_.setting(links_since_key);
    if (!links_since) return links_since.error();
    if (!*links_since)
      return std::string("files with several names are counted once from now on, and are not known yet");
    const auto rules = transaction_.setting(rules_key);
    if (!rules) return rules.error();
    if (*rules != options_.rules.fingerprint())
      return std::string("the rules on what is ignored have changed");
    if (!input_.everything.empty()) return input_.everything;
    if (input_.marks.tree_marks().covers("")) return std::string("anything may have changed");
    return std::string();
  }

  // One of the drives, and its id in the database.
  struct KnownDrive {
    Drive drive;
    std::int64_t id = 0;
  };

  base::Result<> walk(const std::vector<Drive>& drives) {
    auto known = tell_drives(drives);
    if (!known) return known.error();
    Pace pace(options_.max_dirs_per_second, environment_.clock, environment_.waiter);
    auto differing = audit(*known, pace);
    if (!differing) return differing.error();
    tracker::MarkSet with_differing;
    if (!differing->empty()) {
      with_differing = input_.marks;
      with_differing.merge(differing->marks());
    }
    const tracker::MarkSet& marks = differing->empty() ? input_.marks : with_differing;
    const ScanPlan plan(marks, report_.record.walked_everything);
    if (auto walked = walk_drives(*known, plan, pace); !walked) return walked;
    return keep_audit();
  }

  base::Result<std::vector<KnownDrive>> tell_drives(const std::vector<Drive>& drives) {
    auto stored = transaction_.drives();
    if (!stored) return stored.error();
    std::map<std::string, StoredDrive> before;
    for (StoredDrive& drive : *stored) before[drive.path] = drive;
    std::vector<KnownDrive> known;
    for (Drive drive : drives) {
      auto entry = before.extract(drive.path.native());
      auto its = entry.empty() ? add(drive) : base::Result<StoredDrive>(entry.mapped());
      if (!its) return its.error();
      if (auto told = tell_apart(drive, its->id); !told) return told.error();
      known.push_back({std::move(drive), its->id});
    }
    for (const auto& [path, drive] : before) {
      if (auto forgotten = forget(drive); !forgotten) return forgotten.error();
    }
    return known;
  }

  base::Result<DifferingPaths> audit(const std::vector<KnownDrive>& drives, Pace& pace) {
    // What it reads no log keeps. A scan that is killed meanwhile is gone on with, then without it, so that
    // its marks are walked in any case.
    UnfinishedScan* const unfinished = environment_.unfinished;
    const bool goes_on = unfinished != nullptr && unfinished->goes_on();
    const base::SteadyTime now = environment_.clock.steady_now();
    audit_context_.emplace(AuditContext{.reader = environment_.reader,
                                        .marks = input_.marks,
                                        .rules = options_.rules,
                                        .store = transaction_.directories(),
                                        .links = transaction_.links(),
                                        .pace = pace,
                                        .stop = environment_.stop,
                                        .started_at = input_.started_at,
                                        .partial = input_.partial,
                                        .clock = environment_.clock,
                                        .until = goes_on ? now : now + audit_time_max,
                                        .long_from = now + audit_long,
                                        .lasts = [unfinished] {
                                          if (unfinished != nullptr) static_cast<void>(unfinished->keep());
                                        }});
    audit_.emplace(transaction_, *audit_context_, options_.audit_period);
    std::vector<AuditedDrive> audited;
    audited.reserve(drives.size());
    for (const auto& [drive, id] : drives) audited.push_back({id, drive.path, !drive.refused.empty()});
    if (auto restored = audit_->restore(audited); !restored) return restored.error();
    if (report_.record.walked_everything) return DifferingPaths();
    return audit_->run();
  }

  base::Result<> keep_audit() {
    const auto has_failed = [&](const std::filesystem::path& drive) {
      return std::ranges::find(report_.failed_drives, drive, &FailedDrive::path) !=
             report_.failed_drives.end();
    };
    auto kept = audit_->keep(report_.record.walked_everything, has_failed);
    report_.audit = audit_->report();
    report_.record.figures.audited = report_.audit.audited;
    report_.record.figures.missed = report_.audit.missed;
    return kept;
  }

  base::Result<> walk_drives(const std::vector<KnownDrive>& drives, const ScanPlan& plan, Pace& pace) {
    WalkContext context{
        environment_.reader,  plan, options_.rules,   transaction_.directories(), transaction_.changes(),
        transaction_.links(), pace, environment_.stop};
    context.scan_id = transaction_.scan_id();
    context.progress = environment_.progress;
    context.progress_every = std::max<std::uint64_t>(options_.progress_every, 1);
    context.errors.kept_max = options_.errors_kept_max;
    context.readers = readers_of_each(drives.size());
    context.has_other_drives = drives.size() > 1;
    context.open_directories_max = options_.open_directories_max / std::max<std::size_t>(drives.size(), 1);
    context.files = transaction_.files();
    context.figures.dirs_deleted = forgotten_;
    std::deque<DriveWalk> walks;
    for (const auto& [drive, id] : drives) {
      walks.emplace_back(context, drive, id, options_.full, environment_.unfinished, environment_.clock);
    }
    auto walked = walk_all(walks);
    if (walked) walked = check_again(drives, walks);
    for (DriveWalk& walk : walks) {
      if (!walked) walk.flush_log();
      if (walk.failed()) report_.failed_drives.push_back(*walk.failed());
      if (const auto failure = walk.log_failure()) report_.log = log_error(*failure);
    }
    if (!walked) return walked;
    report_.record.figures = context.figures;
    report_.dirs_replayed = context.dirs_replayed;
    report_.record.errors = context.errors.count;
    report_.errors = std::move(context.errors.kept);
    if (auto settled = transaction_.links().settle(environment_.stop); !settled) return settled;
    return sum_up(drives);
  }

  // The scan's own thread reads, too, as long as there is but one drive.
  std::size_t readers_of_each(std::size_t drives) const {
    if (options_.threads <= 1) return 0;
    return drives <= 1 ? options_.threads - 1 : std::max<std::size_t>(options_.threads / drives, 1);
  }

  // Whichever drive has something ready is dealt with: a slow one holds up nobody.
  static base::Result<> walk_all(std::deque<DriveWalk>& walks) {
    std::vector<DriveWalk*> open;
    for (DriveWalk& walk : walks) {
      if (auto begun = walk.begin(); !begun) return begun;
      if (!walk.is_over()) open.push_back(&walk);
    }
    while (!open.empty()) {
      bool has_stepped = false;
      for (DriveWalk* const walk : open) {
        const bool is_last = open.size() == 1;
        if (!is_last && walk->would_wait()) continue;
        has_stepped = true;
        if (auto stepped = walk->step(is_last); !stepped) return stepped;
      }
      if (!has_stepped) {
        if (auto stepped = open.front()->step(true); !stepped) return stepped;
      }
      std::erase_if(open, [](const DriveWalk* walk) { return walk->is_over(); });
    }
    return {};
  }

  // What was read of a drive that is another one by now must not take the place of its totals.
  base::Result<> check_again(const std::vector<KnownDrive>& drives, const std::deque<DriveWalk>& walks) {
    for (std::size_t number = 0; number < walks.size(); ++number) {
      if (auto why = walks[number].why_another()) replaced_[drives[number].drive.path] = std::move(*why);
    }
    if (replaced_.empty()) return {};
    return base::Error(std::make_error_code(std::errc::no_such_device), replaced_.begin()->second);
  }

  base::Error log_error(const base::Error& why) const {
    return {
        why.code,
        fmt::format("a scan that is killed begins anew, as what it reads can't be kept: {}; mend that, or "
                    "remove {} while no scan runs: the next one makes it anew",
                    why.message, environment_.unfinished->directory().native())};
  }

  base::Result<> sum_up(const std::vector<KnownDrive>& drives) {
    for (const auto& [drive, id] : drives) {
      auto root = transaction_.directories().find(DirectoryStore::parent_of_root(id), "");
      if (!root) return root.error();
      if (!*root) continue;
      const auto links = transaction_.links().correction(id, "");
      if (!links) return links.error();
      report_.record.files = saturating_add(report_.record.files, (*root)->subtree.files);
      report_.record.bytes =
          saturating_add(report_.record.bytes, subtract_links((*root)->subtree.bytes, links->bytes));
    }
    return {};
  }

  base::Result<StoredDrive> add(const Drive& drive) {
    if (auto reset = transaction_.changes().reset(); !reset) return reset.error();
    return transaction_.add_drive(drive.path.native());
  }

  // What is stored of a drive that overlaps with another one counts files of that one again.
  base::Result<> forget_overlapping(std::int64_t id) {
    const auto root = transaction_.directories().find(DirectoryStore::parent_of_root(id), "");
    if (!root) return root.error();
    if (!*root || (*root)->read_scan == 0) return {};  // nothing was ever read of it
    if (auto reset = transaction_.changes().reset(); !reset) return reset;
    const auto erased = erase_all(id);
    if (!erased) return erased.error();
    forgotten_ += *erased;
    return {};
  }

  // Forgets what is stored where another drive stands at the path now.
  base::Result<> tell_apart(Drive& drive, std::int64_t id) {
    if (drive.overlaps) return forget_overlapping(id);
    if (!drive.refused.empty()) return {};
    const auto before = transaction_.drive_identity(id);
    if (!before) return before.error();
    // What the daemon does not know the last scan may.
    if (drive.identity.empty()) drive.identity = before->value_or("");
    if (drive.identity.empty() || *before == drive.identity) return {};
    if (*before) {
      if (auto reset = transaction_.changes().reset(); !reset) return reset;
      const auto erased = erase_all(id);
      if (!erased) return erased.error();
      forgotten_ += *erased;
    }
    return transaction_.set_drive_identity(id, drive.identity);
  }

  base::Result<std::uint64_t> erase_all(std::int64_t id) {
    if (auto erased = transaction_.links().erase_drive(id); !erased) return erased.error();
    const std::int64_t parent = DirectoryStore::parent_of_root(id);
    auto root = transaction_.directories().find(parent, "");
    if (!root) return root.error();
    if (!*root) return std::uint64_t{0};
    return transaction_.directories().erase(parent, **root, environment_.stop);
  }

  // Its directories are not gone: nobody looks at them any more.
  base::Result<> forget(const StoredDrive& drive) {
    if (auto reset = transaction_.changes().reset(); !reset) return reset;
    if (auto erased = erase_all(drive.id); !erased) return erased.error();
    return transaction_.forget_drive(drive);
  }

  base::Result<> commit() {
    // What was asked to stop has not happened, even if it was nearly done.
    if (environment_.stop.stop_requested()) return interrupted_error();
    if (auto kept = transaction_.set_cursors(input_.next_cursors); !kept) return kept;
    if (auto kept = transaction_.set_start_level(input_.start_level); !kept) return kept;
    if (auto kept = transaction_.set_roll_position(input_.roll_position); !kept) return kept;
    if (auto kept = transaction_.set_setting(rules_key, options_.rules.fingerprint()); !kept) return kept;
    if (auto kept = keep_links_since(); !kept) return kept;
    if (auto kept = transaction_.changes().finish(options_.oldest_unread, options_.changes_kept_max); !kept)
      return kept;
    return transaction_.commit(report_.record);
  }

  base::Result<> keep_links_since() {
    const auto known = transaction_.setting(links_since_key);
    if (!known) return known.error();
    if (*known) return {};
    return transaction_.set_setting(links_since_key, std::to_string(transaction_.scan_id()));
  }

  const ScanOptions& options_;
  const ScanInput& input_;
  const ScanEnvironment& environment_;
  ScanTransaction& transaction_;
  bool file_feed_has_begun_ = false;
  std::uint64_t forgotten_ = 0;  // directories of drives that others took the place of
  std::optional<AuditContext> audit_context_;
  std::optional<ScanAudit> audit_;
  std::map<std::filesystem::path, std::string> replaced_;
  ScanReport report_;
};

}  // namespace

base::Result<ScanReport> run_scan(UsageDatabase& database, const ScanOptions& options, const ScanInput& input,
                                  const ScanEnvironment& environment) {
  auto drives = checked_drives(options.drives);
  if (!drives) return drives.error();
  for (;;) {
    auto transaction = database.begin_scan();
    if (!transaction) return transaction.error();
    if (environment.unfinished != nullptr) {
      const auto setting = setting_of_scan(database, options);
      if (!setting) return setting.error();
      environment.unfinished->begin(*setting, input, options.full);
    }
    Scan scan(options, input, environment, **transaction);
    auto report = scan.run(*drives);
    if (report && environment.unfinished != nullptr) environment.unfinished->remove();
    if (scan.replaced().empty()) return report;
    // Once more without them, of which there are ever fewer; what was logged is not read again.
    for (Drive& drive : *drives) {
      const auto why = scan.replaced().find(drive.path);
      if (why != scan.replaced().end()) drive.refused = why->second;
    }
  }
}

base::Result<ScanSetting> setting_of_scan(UsageDatabase& database, const ScanOptions& options) {
  const auto drives = checked_drives(options.drives);
  if (!drives) return drives.error();
  const auto id = feed_id(database);
  if (!id) return id.error();
  const auto last = latest_scan(database);
  if (!last) return last.error();
  ScanSetting setting{.database = *id,
                      .scan = *last + 1,
                      .rules = options.rules.fingerprint(),
                      .drives = {},
                      .file_feed = options.file_feed};
  for (const Drive& drive : *drives) setting.drives.push_back(drive.path.native());
  return setting;
}

}  // namespace spoor::scanner
