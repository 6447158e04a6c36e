// Random changes, all of them marked or excluded, under audits of short periods, while clocks are set back
// and ahead, drives are reordered and scans fail: no change is called missed. One that is not marked is.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "scanner/errors.h"
#include "tests/scanner/scanned_node.h"
#include "tests/support/random.h"
#include "tests/support/sanitizer.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr int rounds = support::is_sanitized ? 40 : 120;

using tracker::MarkKind;

struct AuditSetup {
  const char* name;
  tracker::LevelSchedule levels;
  bool birth;
  bool resumes;
};

void PrintTo(const AuditSetup& setup, std::ostream* out) { *out << setup.name; }

class RandomAuditTest : public ScannedNode, public ::testing::WithParamInterface<AuditSetup> {
 protected:
  RandomAuditTest() : ScannedNode({"one", "two", "three"}, {.levels = GetParam().levels}) {
    reader.without_birth = !GetParam().birth;
    resumes = GetParam().resumes;
    options.rules = tracker::NamespaceRules({{"*.tmp"}, false});
    options.audit_period = std::chrono::hours(10);
    clock.set_wall(base::SystemClock().wall_now());
    for (number_ = 0; number_ < options.drives.size(); ++number_) {
      for (int count = 0; count < 10; ++count) create_directory();
    }
  }

  std::vector<std::string> directories() const {
    std::vector<std::string> found;
    const auto root = drive(number_);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (entry.is_directory()) found.push_back(entry.path().lexically_relative(root).native());
    }
    return found;
  }

  std::filesystem::path real(const std::string& path) const { return on_drive(path, number_); }
  std::string fresh_name() { return "n" + std::to_string(++fresh_); }

  std::string some_directory() {
    const auto all = directories();
    return all.empty() || random_.one_in(10) ? std::string() : random_.pick(all);
  }

  void mark_either_way(const std::string& path) {
    mark(path, random_.one_in(2) ? MarkKind::file : MarkKind::dir);
  }

  void create_directory() {
    std::string path = some_directory();
    for (std::uint64_t depth = random_.between(1, 3); depth > 0; --depth)
      path = tracker::join_path(path, fresh_name());
    write_file(real(path) / "file", random_.below(1000));
    mark(path);
  }

  void change_file() {
    const std::string path = tracker::join_path(some_directory(), "file");
    write_file(real(path), random_.below(1000));
    mark_either_way(path);
  }

  void remove_tree() {
    const std::string path = some_directory();
    if (path.empty()) return;
    std::filesystem::remove_all(real(path));
    mark_either_way(path);
  }

  void rename_tree() {
    const std::string from = some_directory();
    const std::string below = some_directory();
    if (from.empty() || below == from || below.starts_with(from + "/")) return;
    const std::string to = tracker::join_path(below, fresh_name());
    std::filesystem::rename(real(from), real(to));
    mark(from);
    mark(to);
  }

  // The one that takes the other's place keeps what it has below it, with names that the other had, too.
  void replace_tree() {
    const std::string from = some_directory();
    const std::string to = some_directory();
    if (from.empty() || to.empty() || from == to || from.starts_with(to + "/") ||
        to.starts_with(from + "/")) {
      return;
    }
    std::filesystem::remove_all(real(to));
    std::filesystem::rename(real(from), real(to));
    mark(from);
    mark(to, MarkKind::tree);
  }

  void make_excluded() {
    const auto path = real(tracker::join_path(some_directory(), fresh_name() + ".tmp"));
    write_file(path, 10);
    if (random_.one_in(2)) std::filesystem::remove(path);
  }

  void remove_excluded() {
    for (number_ = 0; number_ < options.drives.size(); ++number_) {
      auto all = directories();
      all.emplace_back();
      for (const std::string& path : all) {
        for (const auto& entry : std::filesystem::directory_iterator(real(path))) {
          if (entry.path().extension() == ".tmp") std::filesystem::remove(entry.path());
        }
      }
    }
  }

  void change_something() {
    number_ = random_.below(options.drives.size());
    switch (random_.below(8)) {
      case 0:
      case 1:
        return create_directory();
      case 2:
      case 3:
        return change_file();
      case 4:
        return remove_tree();
      case 5:
        return rename_tree();
      case 6:
        return replace_tree();
      default:
        return make_excluded();
    }
  }

  void make_fault() {
    number_ = random_.below(options.drives.size());
    const std::string path = some_directory();
    switch (random_.below(4)) {
      case 0:
        reader.list_errors[path] = EIO;
        break;
      case 1:
        reader.file_errors[path] = EIO;
        break;
      case 2:
        reader.drive_errors[drive(number_)] = EIO;
        break;
      default:
        reader.open_errors[path] = EACCES;
        break;
    }
  }

  // Time passes, at times none; the clock may be set meanwhile, also while the scan runs.
  void let_time_pass() {
    clock.advance(std::chrono::minutes(random_.below(200)));
    if (random_.one_in(5)) step_clock();
    reader.before_read = nullptr;
    if (!random_.one_in(5)) return;
    std::uint64_t left = random_.below(30);
    reader.before_read = [this, left](std::string_view) mutable {
      if (left-- == 0) step_clock();
    };
  }

  void step_clock() {
    const auto by = std::chrono::minutes(random_.below(60'000));
    clock.set_wall(random_.one_in(2) ? clock.wall_now() + by : clock.wall_now() - by);
  }

  void kill_one() {
    std::uint64_t left = random_.below(40);
    reader.before_read = [&, left](std::string_view) mutable {
      clock.advance(std::chrono::seconds(1));
      if (left-- == 0) stop.request_stop();
    };
    const auto report = try_scan();
    if (report) {
      EXPECT_EQ(report->audit.missed, 0U);
    } else {
      EXPECT_EQ(report.error().code, Errc::interrupted);
    }
    reader.before_read = nullptr;
    stop = {};
  }

  void expect_none_missed(const ScanReport& report) {
    EXPECT_THAT(report.audit.missed_paths, ::testing::IsEmpty());
    EXPECT_EQ(report.record.figures.missed, 0U);
    EXPECT_LE(*report.audit.oldest_total, clock.wall_now());
  }

  void round() {
    for (std::uint64_t count = random_.below(10); count > 0; --count) change_something();
    if (random_.one_in(5)) make_fault();
    if (random_.one_in(4)) std::swap(options.drives[random_.below(3)], options.drives[random_.below(3)]);
    partial = random_.one_in(6);
    let_time_pass();
    if (random_.one_in(6)) return kill_one();
    ScanReport report = scan();
    expect_none_missed(report);
    if (has_resumed) {
      report = scan();
      expect_none_missed(report);
    }
    reader.repair();
    if (report.record.errors > 0) return;
    remove_excluded();
    expect_exact(Newest::unknown);
  }

  // The audit still finds what has no mark.
  void expect_unmarked_change_is_missed() {
    reader.repair();
    reader.before_read = nullptr;
    partial = false;
    clock.set_wall(base::SystemClock().wall_now());
    number_ = 0;
    create_directory();  // the rounds may have left none
    static_cast<void>(scan());
    // A round without changes: what else the audit finds would lead the walk to this one before it.
    for (int scans = 0; scans < 4; ++scans) {
      clock.advance(2 * options.audit_period);
      expect_none_missed(scan());
    }
    const std::string path = random_.pick(directories());
    write_file(real(path) / "unmarked", 10);
    std::vector<std::string> missed;
    for (int scans = 0; scans < 4; ++scans) {  // some only end a round
      clock.advance(2 * options.audit_period);
      for (const std::string& each : scan().audit.missed_paths) missed.push_back(each);
    }
    EXPECT_THAT(missed, ::testing::ElementsAre(path));
    remove_excluded();
    expect_exact(Newest::unknown);
  }

  support::Random random_;
  std::size_t number_ = 0;
  std::uint64_t fresh_ = 0;
};

TEST_P(RandomAuditTest, RandomMarkedChanges_AreNeverMissed) {
  SCOPED_TRACE(random_.trace());
  for (int count = 0; count < rounds; ++count) {
    SCOPED_TRACE("round " + std::to_string(count));
    round();
    if (HasFailure()) return;
  }
  expect_unmarked_change_is_missed();
}

INSTANTIATE_TEST_SUITE_P(
    Audits, RandomAuditTest,
    ::testing::Values(AuditSetup{"exact", tracker::LevelSchedule(10'000, 1e-6), true, false},
                      AuditSetup{"tiny", tracker::LevelSchedule(20, 0.25), true, false},
                      AuditSetup{"without_birth", tracker::LevelSchedule(10'000, 1e-6), false, false},
                      AuditSetup{"resumed", tracker::LevelSchedule(10'000, 1e-6), true, true}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace spoor::scanner
