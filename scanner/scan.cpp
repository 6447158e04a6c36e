#include "scanner/scan.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "base/data_dir.h"
#include "base/number.h"
#include "scanner/errors.h"
#include "scanner/feed/change_feed.h"
#include "scanner/walk/drive_walk.h"
#include "scanner/walk/unfinished_scan.h"

namespace spoor::scanner {
namespace {

constexpr const char* rules_key = "rules";
// When the last complete scan began, and how far the time of day was ahead of the steady clock then, both in
// nanoseconds.
constexpr const char* clock_key = "clock";
constexpr std::chrono::minutes settled_for{1};
constexpr std::size_t input_bytes_max = std::size_t{512} << 20U;  // SQLite's limit of a row is 10^9

std::int64_t ahead_of_steady_ns(const base::Clock& clock) {
  return clock.wall_now().time_since_epoch().count() - clock.steady_now().time_since_epoch().count();
}

class Scan {
 public:
  // `is_resumed`: what the unfinished scan committed is of the same input and options.
  Scan(const ScanOptions& options, const ScanInput& input, const ScanEnvironment& environment,
       ScanTransaction& transaction, bool is_resumed)
      : transaction_(transaction), context_{options, input, environment, transaction}, audit_(context_) {
    context_.is_resumed = is_resumed;
    context_.commit_so_far = [this] { commit_so_far(); };
    if (!options.history.keep) return;
    transaction_.links().on_change([this](std::string_view path) { context_.touched.add(path); });
  }

  base::Result<ScanReport> run() {
    try {
      const base::SteadyTime started = context_.environment.clock.steady_now();
      begin();
      make_plan();
      walk();
      sum_up();
      commit();
      report_.duration = context_.environment.clock.steady_now() - started;
      return std::move(report_);
    } catch (const base::Failure& failure) {
      return failure.error;
    } catch (const SqliteError& exception) {
      return database_error("record a scan", transaction_.file(), exception);
    }
  }

  // Whether another attempt at the same scan resumes this one.
  bool has_committed() const { return has_committed_; }

  // Drives that turned out to be others than those that were walked, and why: then run() fails, and another
  // scan is to be run without them.
  const std::map<std::filesystem::path, std::string>& replaced() const { return replaced_; }

 private:
  void begin() {
    const bool file_feed_begins = transaction_.keep_files(context_.options.file_feed);
    const bool owners_begin = transaction_.keep_owners(context_.options.owners_depth);
    begin_after_unfinished();
    ScanRecord& record = report_.record;
    record.id = transaction_.scan_id();
    record.started_at = context_.input.started_at;
    record.cycle = context_.input.cycle;
    record.partial = context_.input.partial;
    record.reason = reason_for_everything(file_feed_begins, owners_begin);
    record.walked_everything = !record.reason.empty();
    if (record.walked_everything) transaction_.expect_many_changes();
    drives_ = match_drives(context_);
    find_settled();
  }

  // The last scan may have committed some, and not have ended.
  void begin_after_unfinished() {
    const auto text = transaction_.setting(unfinished_key);
    if (!text) {
      context_.is_resumed = false;
      return;
    }
    auto found = UnfinishedScan::decode(*text);
    if (!found)
      found = UnfinishedScan{.reason = "how far an unfinished scan came is not known", .resets_feed = true};
    unfinished_reason_ = std::move(found->reason);
    if (found->resets_feed) transaction_.changes().reset();
    context_.touched.add_all();
    audit_.found_before({.audited = context_.is_resumed ? found->figures.audited : 0,
                         .missed = found->figures.missed,
                         .missed_paths = std::move(found->missed_paths),
                         .oldest_total = {}});
    if (context_.is_resumed) {
      context_.figures = found->figures;
      context_.places = std::move(found->places);
      report_.dirs_replayed = context_.figures.dirs_walked;
    }
    transaction_.changes().resume();
  }

  // The last complete scan knew all changes that were marked before it began. So what changed since got times
  // after that, unless the clock was set back: then no times are trusted. A change of the clock shows against
  // the steady one, which begins anew with each start of the machine.
  void find_settled() {
    using std::chrono::nanoseconds;
    const std::string known = setting(clock_key);
    const std::size_t space = known.find(' ');
    if (space == std::string::npos) return;
    const auto began_ns = base::parse_number<std::int64_t>(known.substr(0, space));
    const auto ahead_ns = base::parse_number<std::int64_t>(known.substr(space + 1));
    if (!began_ns || !ahead_ns) return;
    const std::int64_t elapsed_ns =
        context_.environment.clock.wall_now().time_since_epoch().count() - *began_ns;
    // By how much a clock that is kept right may run fast or slow: less than the times are to be older.
    const std::int64_t drift_max_ns =
        std::min(elapsed_ns / 1000 + nanoseconds(std::chrono::milliseconds(10)).count(),
                 nanoseconds(settled_for).count() / 2);
    if (std::abs(clock_ahead_ns_ - *ahead_ns) > drift_max_ns) return;
    context_.settled_before_ns = *began_ns - nanoseconds(settled_for).count();
  }

  // "" if it is not stored.
  std::string setting(std::string_view key) { return transaction_.setting(key).value_or(""); }

  // Empty if the marks decide what is walked.
  std::string reason_for_everything(bool file_feed_begins, bool owners_begin) {
    const ScanOptions& options = context_.options;
    if (context_.is_resumed) return unfinished_reason_;
    if (transaction_.is_first()) {
      if (std::string rebuilt = setting(rebuilt_key); !rebuilt.empty()) return rebuilt;
    }
    if (options.full) return "a full scan was asked for";
    // Some of what the unfinished scan committed holds only together with the rest.
    if (!unfinished_reason_.empty()) return unfinished_reason_;
    if (transaction_.is_first()) return "it is the first scan";
    if (file_feed_begins) return "scan.file_feed was switched on";
    if (owners_begin) return "the owners of files are summed up from now on, and are not known yet";
    if (transaction_.setting(rules_key) != options.rules.fingerprint())
      return "the rules on what is ignored have changed";
    // What was marked on other nodes, or under another name, and was not read yet, may not be read any more.
    if (setting(own_marks_key) != options.own_marks_of) return "scan.daemons or node.name has changed";
    if (!context_.input.everything.empty()) return context_.input.everything;
    if (context_.input.marks.tree_marks().covers("")) return "anything may have changed";
    return "";
  }

  // What the audit finds to differ is walked as if it were marked.
  void make_plan() {
    const bool everything = report_.record.walked_everything;
    const DifferingPaths differing = audit_.run(drives_, everything);
    if (!differing.empty()) {
      with_audit_ = context_.input.marks;
      with_audit_.merge(differing.marks());
      marks_ = &with_audit_;
      has_kept_input_ = false;
    }
    context_.plan.emplace(*marks_, everything);
  }

  void walk() {
    for (const KnownDrive& drive : drives_) walks_.emplace_back(context_, drive);
    walk_side_by_side(walks_, [this] {
      const base::SteadyTime now = context_.environment.clock.steady_now();
      if (now - committed_at_ >= context_.options.commit_every) commit_so_far();
    });
    check_again(true);
    for (const DriveWalk& walk : walks_) {
      if (walk.failed()) report_.failed_drives.push_back(*walk.failed());
    }
  }

  void commit_so_far() {
    check_again(false);
    if (!keep_input()) {
      committed_at_ = base::SteadyTime::max();  // all is committed at the end
      return;
    }
    UnfinishedScan unfinished{.reason = report_.record.reason,
                              .resets_feed = transaction_.changes().is_reset()};
    for (DriveWalk& walk : walks_) walk.keep_so_far(unfinished.places);
    transaction_.links().apply_corrections(context_.environment.stop, LinkStore::At::commit);
    unfinished.figures = context_.figures;
    unfinished.figures.audited = audit_.report().audited;
    unfinished.figures.missed = audit_.report().missed;
    unfinished.missed_paths = audit_.report().missed_paths;
    transaction_.set_setting(unfinished_key, unfinished.encode());
    has_committed_ = transaction_.commit_so_far() || has_committed_;
    committed_at_ = context_.environment.clock.steady_now();
  }

  // That of a resumed scan is there. Returns whether it is now: one that is too large for a row is not kept.
  bool keep_input() {
    if (has_kept_input_ || context_.is_resumed) return true;
    const std::string bytes = encode_unfinished_input(context_.options, context_.input, *marks_);
    if (bytes.size() > input_bytes_max) return false;
    transaction_.set_setting(unfinished_input_key, bytes);
    has_kept_input_ = true;
    return true;
  }

  // What was read of a drive that is another one by now must not take the place of its totals.
  void check_again(bool is_at_end) {
    for (const DriveWalk& walk : walks_) {
      if (!is_at_end && walk.is_kept()) continue;
      if (auto why = walk.why_another()) replaced_[walk.drive().path] = std::move(*why);
    }
    if (replaced_.empty()) return;
    throw base::Failure(
        base::Error(std::make_error_code(std::errc::no_such_device), replaced_.begin()->second));
  }

  void sum_up() {
    report_.record.figures = context_.figures;
    report_.record.errors = context_.error_count;
    report_.errors = std::move(context_.errors);
    report_.mount_count = context_.mount_count;
    report_.mounts = std::move(context_.mounts);
    report_.drive_gaps = std::move(context_.drive_gaps);
    transaction_.links().apply_corrections(context_.environment.stop);
    for (const KnownDrive& known : drives_) {
      const std::int64_t parent = DirectoryStore::parent_of_root(known.id);
      const auto root = transaction_.directories().find(parent, "");
      if (!root) continue;
      const LinkCorrection links = transaction_.links().correction(known.id, "");
      const Totals& totals = root->subtree;
      report_.record.files = saturating_add(report_.record.files, totals.files);
      report_.record.bytes = saturating_add(report_.record.bytes, subtract_links(totals.bytes, links.bytes));
    }
    audit_.keep(report_.record.walked_everything, report_.failed_drives);
    report_.audit = audit_.report();
    report_.record.figures.audited = report_.audit.audited;
    report_.record.figures.missed = report_.audit.missed;
    const base::WallTime at = report_.record.started_at;
    ScanHistory history(transaction_, context_.options.history, context_.touched, context_.environment.stop);
    report_.history = history.record(at);
    report_.limits = check_limits(transaction_, context_.options.limits, at);
  }

  void commit() {
    report_.record.finished_at = context_.environment.clock.wall_now();
    // A scan that was stopped is not committed, even if it was nearly done.
    context_.throw_if_stopped();
    const ScanInput& input = context_.input;
    const ScanOptions& options = context_.options;
    transaction_.set_peers(input.book);
    transaction_.set_setting(start_level_key, std::to_string(input.start_level));
    transaction_.set_setting(rules_key, options.rules.fingerprint());
    transaction_.set_setting(own_marks_key, options.own_marks_of);
    // The clock when a killed scan began is not known.
    if (!input.partial && !context_.is_resumed) {
      const auto began_ns = input.started_at.time_since_epoch().count();
      transaction_.set_setting(clock_key, fmt::format("{} {}", began_ns, clock_ahead_ns_));
    }
    keep_stamps();
    transaction_.changes().finish(options.oldest_unread, options.changes_kept_max);
    transaction_.remove_setting(unfinished_key);
    transaction_.remove_setting(unfinished_input_key);
    transaction_.commit(report_.record);
  }

  // At the end: a copy of the drive that has the stamp has all that this scan saw. A drive that does not take
  // it keeps that of the last scan.
  void keep_stamps() {
    if (!context_.environment.stamp_drive) return;
    const std::string stamp = tracker::InstanceId::random().to_string();
    for (const DriveWalk& walk : walks_) {
      if (walk.failed()) continue;
      const std::string key = stamp_key(walk.id());
      if (context_.environment.stamp_drive(walk.drive().path, stamp, setting(key)))
        transaction_.set_setting(key, stamp);
    }
  }

  ScanTransaction& transaction_;
  WalkContext context_;
  std::vector<KnownDrive> drives_;
  Audit audit_;
  const tracker::MarkSet* marks_ = &context_.input.marks;  // that are walked
  tracker::MarkSet with_audit_;  // the same and what the audit found, if that is anything
  std::string unfinished_reason_;
  std::deque<DriveWalk> walks_;
  base::SteadyTime committed_at_ = context_.environment.clock.steady_now();
  bool has_committed_ = false;
  bool has_kept_input_ = false;
  std::map<std::filesystem::path, std::string> replaced_;
  ScanReport report_;
  // When it began.
  const std::int64_t clock_ahead_ns_ = ahead_of_steady_ns(context_.environment.clock);
};

// The input that the unfinished scan had; `options` have been checked.
base::Result<std::optional<ScanInput>> stored_input(UsageDatabase& database, const ScanOptions& options) {
  const auto stored = database.setting(unfinished_input_key);
  if (!stored) return stored.error();
  return *stored ? decode_unfinished_input(**stored, options) : std::nullopt;
}

// Sets `refused` of drives that turned out to be others than those that were walked: another attempt is to be
// made without them.
base::Result<ScanReport> attempt(UsageDatabase& database, ScanOptions& options, const ScanInput& input,
                                 const ScanEnvironment& environment, bool& is_resumed, bool& is_over) {
  auto transaction = database.begin_scan();
  if (!transaction) return transaction.error();
  Scan scan(options, input, environment, **transaction, is_resumed);
  auto report = scan.run();
  is_resumed = is_resumed || scan.has_committed();
  is_over = scan.replaced().empty();
  for (Drive& drive : options.drives) {
    const auto why = scan.replaced().find(drive.path);
    if (why != scan.replaced().end()) drive.refused = why->second;
  }
  return report;
}

}  // namespace

base::Result<base::FileLock> lock_scan(const std::filesystem::path& data_dir) {
  const std::filesystem::path file = data_dir / base::data_dir::scan_lock;
  auto lock = base::FileLock::try_acquire(file);
  if (!lock) return base::wrap("cannot start a scan", lock.error());
  if (!lock->has_value()) {
    return base::Error(
        Errc::scan_running,
        fmt::format("another scan of this node is running: it holds {}; wait until it ends", file.native()));
  }
  return std::move(**lock);
}

base::Result<std::optional<ScanInput>> find_unfinished(UsageDatabase& database, ScanOptions options) {
  if (options.full) return std::optional<ScanInput>();
  if (auto checked = check_drives(options.drives); !checked) return checked.error();
  return stored_input(database, options);
}

base::Result<ScanReport> run_scan(UsageDatabase& database, ScanOptions options, const ScanInput& input,
                                  const ScanEnvironment& environment) {
  if (auto checked = check_drives(options.drives); !checked) return checked.error();
  const ScanInput* used = &input;
  std::optional<ScanInput> kept;  // with what the audit found
  for (bool is_resumed = input.is_resumed;;) {
    bool is_over = true;
    auto report = attempt(database, options, *used, environment, is_resumed, is_over);
    if (!report) database.empty_log();
    if (is_over) return report;
    auto stored = is_resumed ? stored_input(database, options) : std::optional<ScanInput>();
    if (!stored) return stored.error();
    if (*stored) used = &kept.emplace(**std::move(stored));
  }
}

}  // namespace spoor::scanner
