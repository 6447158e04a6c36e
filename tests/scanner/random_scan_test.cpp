// Random changes, exactly marked or excluded; filters far too small, killed scans, faults, clocks that are
// set, audits of short periods: whenever a scan reports that nothing was left, every directory has the totals
// that an independent walk finds. No audit calls a change missed that is marked; one that is not marked is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "scanner/errors.h"
#include "tests/scanner/feed_copies.h"
#include "tests/scanner/scanned_node.h"
#include "tests/support/random.h"
#include "tests/support/sanitizer.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr int rounds = support::is_sanitized ? 60 : 150;

using tracker::LevelSchedule;
using tracker::MarkKind;

struct Setup {
  const char* name = "";
  tracker::Tracker::Options tracker = {.levels = LevelSchedule(10'000, 1e-6)};
  std::vector<std::string> drives = {"one", "two"};
  bool birth = true;
  std::size_t threads = 1;
  bool resumes = false;
  std::size_t open_directories_max = 1024;
  bool file_feed = false;
  bool reuses_inodes = false;  // what stands at a path has the inode number of what stood there before
  std::optional<std::uint32_t> owners_depth = {};
  bool audits = false;
};

void PrintTo(const Setup& setup, std::ostream* out) { *out << setup.name; }

class RandomScanTest : public ScannedNode, public ::testing::WithParamInterface<Setup> {
 protected:
  RandomScanTest() : ScannedNode(GetParam().drives, GetParam().tracker) {
    reader.without_birth = !GetParam().birth;
    trust_times();
    options.threads = GetParam().threads;
    options.open_directories_max = GetParam().open_directories_max;
    resumes = GetParam().resumes;
    options.file_feed = GetParam().file_feed;
    reader.reuses_inodes = GetParam().reuses_inodes;
    options.owners_depth = GetParam().owners_depth;
    for (std::size_t number = 0; number < options.drives.size(); ++number) {
      give_identity(number, static_cast<char>('1' + number));
    }
    if (!GetParam().audits) return;
    options.rules = tracker::NamespaceRules({{"*.tmp"}, false});
    options.audit_period = std::chrono::hours(10);
    clock.set_wall(base::SystemClock().wall_now());
  }

  void change_something() {
    number_ = random_.below(options.drives.size());
    if (GetParam().audits && random_.one_in(8)) return make_excluded();
    switch (random_.below(14)) {
      case 0:
      case 1:
      case 2:
        return create_file();
      case 3:
      case 4:
        return append();
      case 5:
      case 6:
        return create_directory();
      case 7:
        return delete_something();
      case 8:
        return rename_to_fresh_name();
      case 9:
        return swap_directories();
      case 10:
        return replace_by_a_file();
      case 11:
        // A link that goes and an ignored name that comes elsewhere look like a change without a mark.
        return GetParam().audits ? create_file() : make_link();
      case 12:
        return give_away();
      default:
        return move_below_another();
    }
  }

  // Directories of the chosen drive, without the root where it can't be meant.
  std::vector<std::string> directories(bool with_root) const {
    std::vector<std::string> found;
    if (with_root) found.emplace_back();
    const auto root = drive(number_);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      const bool is_spoors_own = entry.path().filename() == ".spoor";
      if (entry.is_directory() && !entry.is_symlink() && !is_spoors_own)
        found.push_back(entry.path().lexically_relative(root).native());
    }
    return found;
  }

  std::string some_directory() { return random_.pick(directories(true)); }
  std::filesystem::path real(const std::string& path) const { return on_drive(path, number_); }
  std::string some_name() { return random_.letters(1, 'f'); }
  std::string fresh_name() { return "fresh-" + std::to_string(++fresh_); }

  // What was found there may be a directory to whoever marks: `dir` is always right.
  void mark_either_way(const std::string& path) {
    mark(path, random_.one_in(2) ? MarkKind::file : MarkKind::dir);
  }

  // A file with several names changes under all of them.
  void mark_all_names(const std::string& path) {
    mark_either_way(path);
    if (std::filesystem::hard_link_count(real(path)) == 1) return;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(drive(number_))) {
      if (entry.is_regular_file() && std::filesystem::equivalent(entry.path(), real(path))) {
        mark_either_way(entry.path().lexically_relative(drive(number_)).native());
      }
    }
  }

  void create_file() {
    const std::string path = tracker::join_path(some_directory(), some_name());
    if (std::filesystem::is_directory(real(path))) return;
    write_file(real(path), random_.below(10'000));
    mark_all_names(path);
  }

  void make_link() {
    const std::string directory = some_directory();
    for (const auto& entry : std::filesystem::directory_iterator(real(directory))) {
      if (!entry.is_regular_file()) continue;
      const std::string path = tracker::join_path(some_directory(), fresh_name());
      std::filesystem::create_hard_link(entry.path(), real(path));
      return mark_all_names(path);
    }
  }

  // To another user and group; without the right to do that, it stays.
  void give_away() {
    const std::string directory = some_directory();
    for (const auto& entry : std::filesystem::directory_iterator(real(directory))) {
      if (entry.is_directory()) continue;
      const auto [uid, gid] =
          std::pair(static_cast<uid_t>(random_.below(3)), static_cast<gid_t>(random_.below(2)));
      if (::lchown(entry.path().c_str(), uid, gid) != 0) return;
      return mark_all_names(tracker::join_path(directory, entry.path().filename().native()));
    }
  }

  void append() {
    const std::string directory = some_directory();
    for (const auto& entry : std::filesystem::directory_iterator(real(directory))) {
      if (!entry.is_regular_file()) continue;
      std::filesystem::resize_file(entry.path(), entry.file_size() + 1 + random_.below(5000));
      return mark_all_names(tracker::join_path(directory, entry.path().filename().native()));
    }
  }

  void create_directory() {
    std::string path = some_directory();
    for (std::uint64_t depth = random_.between(1, 4); depth > 0; --depth)
      path = tracker::join_path(path, some_name());
    std::error_code in_the_way;
    std::filesystem::create_directories(real(path), in_the_way);
    mark(path);
  }

  void delete_something() {
    const auto all = directories(false);
    if (all.empty()) return;
    const std::string path = random_.pick(all);
    std::filesystem::remove_all(real(path));
    mark(path);
  }

  // A new name is unknown to the scanner: marking both names is enough.
  void rename_to_fresh_name() {
    const auto all = directories(false);
    if (all.empty()) return;
    const std::string from = random_.pick(all);
    const std::string to = tracker::join_path(tracker::parent_path(from), fresh_name());
    std::filesystem::rename(real(from), real(to));
    mark(from);
    mark(to);
  }

  // A directory that takes a name that is known may have had it before, and have been changed under
  // another one meanwhile: whoever does that marks the tree.
  void swap_directories() {
    const auto all = directories(false);
    if (all.size() < 2) return;
    const std::string one = random_.pick(all);
    const std::string two = random_.pick(all);
    if (one == two || one.starts_with(two + "/") || two.starts_with(one + "/")) return;
    const auto aside = temp / "aside";
    std::filesystem::rename(real(one), aside);
    std::filesystem::rename(real(two), real(one));
    std::filesystem::rename(aside, real(two));
    mark(one, MarkKind::tree);
    mark(two, MarkKind::tree);
  }

  void replace_by_a_file() {
    const auto all = directories(false);
    if (all.empty()) return;
    const std::string path = random_.pick(all);
    std::filesystem::remove_all(real(path));
    write_file(real(path), random_.below(100));
    mark(path);
  }

  void move_below_another() {
    const auto all = directories(false);
    if (all.empty()) return;
    const std::string from = random_.pick(all);
    const std::string below = random_.pick(all);
    if (below == from || below.starts_with(from + "/")) return;
    const std::string to = tracker::join_path(below, fresh_name());
    std::filesystem::rename(real(from), real(to));
    mark(from);
    mark(to);
  }

  void make_excluded() {
    const auto path = real(tracker::join_path(some_directory(), fresh_name() + ".tmp"));
    write_file(path, 10);
    if (random_.one_in(2)) std::filesystem::remove(path);
  }

  void remove_excluded() {
    for (const auto& top : drive_paths()) {
      std::vector<std::filesystem::path> found;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
        if (entry.path().extension() == ".tmp") found.push_back(entry.path());
      }
      for (const auto& path : found) std::filesystem::remove(path);
    }
  }

  void make_faults() {
    for (std::uint64_t count = random_.below(4); count > 0; --count) {
      const std::string path = some_directory();
      switch (random_.below(5)) {
        case 0:
          reader.list_errors[path] = EIO;
          break;
        case 1:
          reader.file_errors[path] = EIO;
          break;
        case 2:
          reader.drive_errors[drive(number_)] = EIO;
          break;
        case 3:
          if (!path.empty()) reader.mount_points.insert(path);
          break;
        default:
          reader.open_errors[path] = random_.one_in(2) ? EACCES : EMFILE;
          break;
      }
    }
  }

  // Between two audits; the clock may be set while the next scan runs.
  void let_time_pass() {
    clock.advance(std::chrono::minutes(random_.below(200)));
    if (!random_.one_in(5)) return;
    reader.before_read = [this, left = random_.below(30)](std::string_view) mutable {
      if (left-- == 0) step_clocks();
    };
  }

  // The time of day jumps, and so does the clock that the times of files are held against: to the real one,
  // by which much has just changed, or to one by which nothing has.
  void step_clocks() {
    const auto by = std::chrono::minutes(random_.below(100'000));
    clock.set_wall(random_.one_in(2) ? clock.wall_now() + by : clock.wall_now() - by);
    if (random_.one_in(2)) reader.clock.set_wall(base::SystemClock().wall_now());
  }

  // Something else stands at the drive's path, as when it was unmounted.
  void take_away(const std::filesystem::path& path) {
    std::filesystem::rename(path, temp / "taken");
    write_file(path / "beneath" / "file", 12'345);
  }
  void bring_back(const std::filesystem::path& path) {
    std::filesystem::remove_all(path);
    std::filesystem::rename(temp / "taken", path);
  }

  // While the marks are gathered, or anywhere in the walk, be it one that goes on with another.
  void scan_while_a_drive_vanishes() {
    const auto path = drive(random_.below(options.drives.size()));
    std::uint64_t left = random_.below(20);
    if (left == 0) take_away(path);
    reader.before_read = [&](std::string_view) {
      if (left > 0 && --left == 0) take_away(path);
    };
    const ScanReport report = scan_missing_nothing();
    if (!std::filesystem::exists(temp / "taken")) return;
    bring_back(path);
    EXPECT_FALSE(report.failed_drives.empty());
    EXPECT_FALSE(usage("beneath"));
    EXPECT_FALSE(is_complete(""));
  }

  // A scan that dies somewhere: after as many directories, or at the very end.
  void scan_killed() {
    const auto report = scan_killed_after(random_.below(30));
    if (report) {
      expect_none_missed(*report);
    } else {
      EXPECT_EQ(report.error().code, Errc::interrupted);
    }
    if (random_.one_in(2)) reopen_database();
  }

  void expect_none_missed(const ScanReport& report) {
    EXPECT_THAT(report.audit.missed_paths, ::testing::IsEmpty());
    EXPECT_EQ(report.record.figures.missed, 0U);
    EXPECT_EQ(report.audit.oldest_total.has_value(), GetParam().audits);
    EXPECT_LE(report.audit.oldest_total.value_or(clock.wall_now()), clock.wall_now());
  }

  ScanReport scan_missing_nothing() {
    const ScanReport report = scan();
    reader.before_read = nullptr;
    expect_none_missed(report);
    return report;
  }

  void expect_exact_totals() {
    if (GetParam().audits) remove_excluded();
    expect_exact(GetParam().audits ? Newest::unknown : Newest::compared);
  }

  void switch_owners() {
    if (!options.owners_depth) {
      options.owners_depth = GetParam().owners_depth;
    } else if (random_.one_in(2)) {
      options.owners_depth.reset();
    } else {
      options.owners_depth = random_.below(4);
    }
  }

  void round() {
    for (std::uint64_t count = random_.below(12); count > 0; --count) change_something();
    number_ = random_.below(options.drives.size());
    if (random_.one_in(4)) make_faults();
    options.oldest_unread = oldest_unread();
    if (random_.one_in(5)) step_clocks();
    partial = GetParam().audits && random_.one_in(6);
    if (random_.one_in(8)) std::swap(options.drives.front(), options.drives.back());
    if (GetParam().owners_depth && random_.one_in(15)) switch_owners();
    if (random_.one_in(4)) return scan_killed();
    if (random_.one_in(8)) return scan_while_a_drive_vanishes();
    options.full = random_.one_in(40);
    if (GetParam().audits) let_time_pass();
    ScanReport report = scan_missing_nothing();
    if (has_resumed) report = scan_missing_nothing();
    if (GetParam().audits) remove_excluded();  // else the copies below hold them
    const bool hidden = !reader.mount_points.empty();
    if (report.record.errors == 0 && !hidden) expect_exact_totals();
    if (report.record.errors > 0) {
      EXPECT_FALSE(is_complete(""));
    }
    const bool is_whole = report.record.errors == 0 && !hidden;
    // Whoever copies everything while something could not be read has what the database does not know.
    if (random_.one_in(2) && (is_whole || copies_.from_scratch > 0)) follow(copies_, is_whole);
    if (options.file_feed && random_.one_in(2) && (is_whole || file_copy_.from_scratch > 0)) {
      follow(file_copy_, is_whole);
    }
    if (random_.one_in(2) && (is_whole || one_drive_.directories.from_scratch > 0))
      follow_one_drive(is_whole);
    reader.repair();
  }

  // Of the copies that have begun.
  std::optional<std::uint64_t> oldest_unread() const {
    std::optional<std::uint64_t> oldest;
    for (const auto each : {copies_.oldest_unread(), file_copy_.oldest_unread(),
                            one_drive_.directories.oldest_unread(), one_drive_.files.oldest_unread()}) {
      if (each && (!oldest || *each < *oldest)) oldest = each;
    }
    return oldest;
  }

  template <typename Copy>
  void follow(Copy& copy, bool is_whole) {
    copy.follow(*database, drive_paths());
    if (is_whole) copy.expect_same(drive_paths());
  }

  void follow_one_drive(bool is_whole) {
    const auto drive = drive_paths().back();
    one_drive_.directories.follow(*database, {drive}, drive.native());
    if (is_whole) one_drive_.directories.expect_same({drive});
    if (!options.file_feed) return;
    one_drive_.files.follow(*database, {drive}, drive.native());
    if (is_whole) one_drive_.files.expect_same({drive});
  }

  // After a scan without faults; it is not one that goes on with another.
  void expect_all_exact() {
    EXPECT_EQ(scan_missing_nothing().record.errors, 0U);
    expect_exact_totals();
    EXPECT_TRUE(is_complete(""));
    follow(copies_, true);
    if (options.file_feed) follow(file_copy_, true);
    follow_one_drive(true);
  }

  // The audit still finds what has no mark.
  void expect_unmarked_change_is_missed() {
    clock.set_wall(base::SystemClock().wall_now());
    // Rounds without changes: what else the audit finds would lead the walk to this one before it.
    for (int scans = 0; scans < 4; ++scans) {
      clock.advance(2 * options.audit_period);
      static_cast<void>(scan_missing_nothing());
    }
    number_ = 0;
    const std::string path = random_.pick(directories(true));
    write_file(real(path) / "unmarked", 10);
    std::vector<std::string> missed;
    for (int scans = 0; scans < 4; ++scans) {  // some only end a round
      clock.advance(2 * options.audit_period);
      for (const std::string& each : scan().audit.missed_paths) missed.push_back(each);
    }
    EXPECT_THAT(missed, ::testing::ElementsAre(path));
    expect_exact_totals();
  }

  support::Random random_;
  FeedCopies copies_;
  FileCopy file_copy_;
  struct {
    FeedCopies directories;
    FileCopy files;
  } one_drive_;  // of all there are
  std::size_t number_ = 0;
  std::uint64_t fresh_ = 0;
};

TEST_P(RandomScanTest, RandomChanges_TotalsMatchIndependentWalk) {
  SCOPED_TRACE(random_.trace());
  for (int count = 0; count < rounds; ++count) {
    SCOPED_TRACE("round " + std::to_string(count));
    round();
    if (HasFailure()) return;
  }
  // Whatever was left is paid in one scan without faults.
  reader.repair();
  options.full = partial = false;
  static_cast<void>(scan());
  expect_all_exact();
  // However the rounds went, the copies have begun now: the feed alone tells them of one more change.
  write_file(drive_paths().back() / "last" / "file", 1);
  mark("last");
  expect_all_exact();
  EXPECT_EQ(copies_.from_scratch, 1);
  EXPECT_GT(copies_.entries, 0);
  EXPECT_EQ(one_drive_.directories.from_scratch, 1);
  EXPECT_GT(one_drive_.directories.entries, 0);
  if (GetParam().audits) expect_unmarked_change_is_missed();
  EXPECT_EQ(file_copy_.from_scratch, options.file_feed ? 1 : 0);
  EXPECT_EQ(file_copy_.files_told > 0, options.file_feed);
}

tracker::Tracker::Options levels(std::uint64_t items, double fp_rate) {
  return {.levels = LevelSchedule(items, fp_rate)};
}

INSTANTIATE_TEST_SUITE_P(
    Filters, RandomScanTest,
    ::testing::Values(
        Setup{.name = "exact", .tracker = levels(100'000, 1e-6), .drives = {"one"}},
        Setup{.name = "two_drives", .owners_depth = 2}, Setup{.name = "tiny", .tracker = levels(20, 0.25)},
        Setup{.name = "saturated",
              .tracker = {.levels = LevelSchedule(8, 0.6), .memory_bytes_max = 1},
              .drives = {"one"}},
        Setup{.name = "without_birth", .birth = false},
        Setup{.name = "threads", .threads = 4, .owners_depth = 2}, Setup{.name = "resumed", .resumes = true},
        Setup{.name = "few_descriptors",
              .tracker = levels(20, 0.25),
              .drives = {"one"},
              .threads = 3,
              .resumes = true,
              .open_directories_max = 4,
              .owners_depth = 1},
        Setup{.name = "files", .drives = {"one"}, .file_feed = true},
        Setup{.name = "files_of_two_drives",
              .tracker = levels(20, 0.25),
              .birth = false,
              .threads = 4,
              .resumes = true,
              .file_feed = true,
              .owners_depth = 3},
        Setup{.name = "reused_inodes",
              .birth = false,
              .threads = 4,
              .file_feed = true,
              .reuses_inodes = true,
              .owners_depth = 0},
        Setup{.name = "audits", .drives = {"one", "two", "three"}, .audits = true},
        Setup{.name = "audits_tiny",
              .tracker = levels(20, 0.25),
              .drives = {"one", "two", "three"},
              .audits = true},
        Setup{.name = "audits_without_birth",
              .drives = {"one", "two", "three"},
              .birth = false,
              .audits = true},
        Setup{.name = "audits_resumed", .drives = {"one", "two", "three"}, .resumes = true, .audits = true}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace spoor::scanner
