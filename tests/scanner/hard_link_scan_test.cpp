// Files with several names: each counts once in every total, as in du.

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <memory>
#include <set>

#include "scanner/errors.h"
#include "tests/scanner/scanned_node.h"
#include "tests/support/random.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

using tracker::MarkKind;

class HardLinkScanTest : public ScannedNode {
 protected:
  explicit HardLinkScanTest(std::vector<std::string> drives = {"drive"}) : ScannedNode(std::move(drives)) {}

  void make_link(const std::string& from, const std::string& to, std::size_t number = 0) {
    std::filesystem::create_directories(on_drive(to, number).parent_path());
    std::filesystem::create_hard_link(on_drive(from, number), on_drive(to, number));
  }
  void mark_file(const std::string& path) { mark(path, MarkKind::file); }

  std::uint64_t bytes(const std::string& path) {
    const auto found = usage(path);
    EXPECT_TRUE(found) << path;
    return found ? found->total.bytes : 0;
  }

  // The sum of what a program prints, a number a line.
  static std::uint64_t sum_of(const std::string& command) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(::popen(command.c_str(), "r"), ::pclose);
    std::array<char, 64> line{};
    std::uint64_t sum = 0;
    while (out && std::fgets(line.data(), line.size(), out.get()) != nullptr) {
      sum += std::strtoull(line.data(), nullptr, 10);
    }
    return sum;
  }
};

TEST_F(HardLinkScanTest, LinksInSeveralDirectories_CountOnceInEachTotal) {
  make_file("a/x/one", 1000);
  make_link("a/x/one", "a/x/again");
  make_link("a/x/one", "a/y/two");
  make_link("a/x/one", "b/three");
  make_file("b/other", 5);
  const ScanReport report = scan();
  EXPECT_EQ(report.record.files, 5U) << "names";
  EXPECT_EQ(report.record.bytes, 1005U);
  EXPECT_EQ(bytes("a/x"), 1000U);
  EXPECT_EQ(bytes("a/y"), 1000U);
  EXPECT_EQ(bytes("a"), 1000U);
  EXPECT_EQ(bytes("b"), 1005U);
  EXPECT_EQ(bytes(""), 1005U);
  expect_exact();
}

TEST_F(HardLinkScanTest, LinkRemoved_OthersStillCountOnce) {
  make_file("a/one", 1000);
  make_link("a/one", "b/two");
  make_link("a/one", "c/three");
  scan();
  remove("a/one");
  mark_file("a/one");
  EXPECT_EQ(scan().record.bytes, 1000U);
  EXPECT_EQ(bytes("a"), 0U);
  expect_exact();
  remove("b");
  mark("b");
  EXPECT_EQ(scan().record.bytes, 1000U);
  expect_exact();
  remove("c");
  mark("c");
  EXPECT_EQ(scan().record.bytes, 0U);
  expect_exact();
}

TEST_F(HardLinkScanTest, LinkAddedToKnownFile_OnlyItsDirectoryIsRead) {
  make_file("a/one", 1000);
  make_link("a/one", "b/two");
  scan();
  make_link("a/one", "c/three");
  mark("c");
  EXPECT_EQ(scan_counting_reads().record.bytes, 1000U);
  EXPECT_FALSE(was_read("a"));
  expect_exact();
}

TEST_F(HardLinkScanTest, FirstLinkAdded_NeedsBothDirectoriesMarked) {
  make_file("a/one", 1000);
  scan();
  make_link("a/one", "b/two");
  mark("b");
  scan();
  EXPECT_EQ(bytes(""), 2000U) << "a is not read: that its file has a further name is not known";
  mark_file("a/one");
  scan();
  expect_exact();
}

TEST_F(HardLinkScanTest, FileResizedThroughOneLink_AllTotalsFollow) {
  make_file("a/x/one", 1000);
  make_link("a/x/one", "a/y/two");
  make_link("a/x/one", "b/three");
  scan();
  std::filesystem::resize_file(on_drive("a/y/two"), 50'000);
  mark_file("a/y/two");
  EXPECT_EQ(scan_counting_reads().record.bytes, 50'000U);
  EXPECT_FALSE(was_read("b"));
  EXPECT_EQ(bytes("b"), 50'000U);
  expect_exact(Newest::unknown);
  std::filesystem::resize_file(on_drive("b/three"), 10);
  mark_file("b/three");
  EXPECT_EQ(scan().record.bytes, 10U);
  expect_exact(Newest::unknown);
}

TEST_F(HardLinkScanTest, DirectoriesMovedAndReplaced_TotalsFollow) {
  make_file("a/x/one", 1000);
  make_link("a/x/one", "b/two");
  make_link("a/x/one", "b/c/three");
  scan();
  rename("b/c", "a/c");
  mark("b/c");
  mark("a/c");
  scan();
  expect_exact();
  rename("a", "aside");
  rename("b", "a");
  rename("aside", "b");
  mark("a", MarkKind::tree);
  mark("b", MarkKind::tree);
  mark("aside", MarkKind::tree);
  scan();
  expect_exact();
  remove("a");
  make_file("a", 3);
  mark("a");
  scan();
  expect_exact();
}

TEST_F(HardLinkScanTest, LinkOutsideTheDrive_CountsAsOrdinaryFile) {
  make_file("a/one", 1000);
  std::filesystem::create_hard_link(on_drive("a/one"), temp / "elsewhere");
  scan();
  EXPECT_EQ(bytes(""), 1000U);
  expect_exact();
}

TEST_F(HardLinkScanTest, UnreadableDirectory_KeepsItsLinksAndTotals) {
  make_file("a/one", 1000);
  make_link("a/one", "b/two");
  scan();
  for (auto* const errors : {&reader.open_errors, &reader.list_errors, &reader.file_errors}) {
    reader.repair();
    (*errors)["b"] = EIO;
    mark("b");
    mark("a");
    EXPECT_EQ(scan().record.errors, 1U);
    EXPECT_EQ(bytes(""), 1000U);
    EXPECT_EQ(bytes("b"), 1000U);
  }
  reader.repair();
  reader.drive_errors[drive()] = EIO;
  EXPECT_EQ(scan().record.errors, 1U);
  EXPECT_EQ(bytes(""), 1000U);
  reader.repair();
  reader.mount_points.insert("b");
  EXPECT_EQ(scan().record.errors, 0U);
  EXPECT_EQ(bytes("b"), 0U) << "nothing beneath a mount point counts";
  EXPECT_EQ(bytes(""), 1000U);
  reader.repair();
  scan();
  expect_exact();
}

TEST_F(HardLinkScanTest, StoppedAndResumedScan_HasExactTotals) {
  resumes = true;
  for (const char top : std::string("abcd")) {
    for (const char below : std::string("xyz")) {
      const std::string path = std::string(1, top) + "/" + below;
      make_file(path + "/own", 10);
      if (path == "a/x") {
        make_file("a/x/one", 1000);
      } else {
        make_link("a/x/one", path + "/one");
      }
    }
  }
  options.full = true;
  for (const std::string last : {"a/y", "b/z", "c"}) {
    ASSERT_TRUE(stop_at(last));
    options.full = false;
  }
  const ScanReport report = scan_counting_reads();
  EXPECT_TRUE(has_resumed);
  EXPECT_FALSE(was_read("a/x")) << "what was walked is not read again";
  EXPECT_EQ(report.record.bytes, 1000U + 12 * 10);
  expect_exact();
}

// What was walked before it was stopped is older than what is walked later, whichever comes first in the
// walk.
TEST_F(HardLinkScanTest, FileGrowsWhileScanIsStopped_ScanAfterResumeHasNewSize) {
  resumes = true;
  make_file("one", 1000);
  make_link("one", "a/two");
  make_directory("b");
  scan();
  mark("", MarkKind::tree);
  ASSERT_TRUE(stop_at("b"));
  std::filesystem::resize_file(on_drive("one"), 5000);
  mark_file("one");
  EXPECT_GT(scan().dirs_replayed, 0U) << "a, with the old size";
  scan();
  EXPECT_EQ(bytes(""), 5000U);
  EXPECT_EQ(bytes("a"), 5000U);
}

TEST_F(HardLinkScanTest, LinkChangedElsewhere_AuditReportsNoMissedChange) {
  using namespace std::chrono_literals;
  options.audit_period = 10h;
  clock.set_wall(base::SystemClock().wall_now() + 1h);  // what is changed now was changed long ago
  make_file("a/one", 1000);
  make_link("a/one", "b/two");
  make_link("a/one", "c/three");
  scan();
  const auto audit_all = [this] {
    std::set<std::string> missed;
    for (int hour = 0; hour < 11; ++hour) {
      clock.advance(1h);
      const ScanReport report = scan();
      missed.insert(report.audit.missed_paths.begin(), report.audit.missed_paths.end());
    }
    return missed;
  };
  make_link("a/one", "d/four");
  mark("d");
  remove("c/three");
  mark_file("c/three");
  EXPECT_THAT(audit_all(), ::testing::IsEmpty());
  make_file("a/one", 2000);
  make_file("b/unmarked", 1);
  EXPECT_THAT(audit_all(), ::testing::IsSupersetOf({"a", "b"}));
  expect_exact();
}

TEST_F(HardLinkScanTest, Totals_MatchDuAndFind) {
  for (const char* path : {"a/x", "a/y/z", "b"}) {
    for (int number = 0; number < 20; ++number) {
      make_file(std::string(path) + "/" + std::to_string(number), 7000U * static_cast<unsigned>(number));
    }
  }
  for (int number = 0; number < 20; number += 3) {
    const std::string name = std::to_string(number);
    make_link("a/x/" + name, "a/y/linked-" + name);
    make_link("a/x/" + name, "a/x/linked-" + name);
    make_link("b/" + name, "a/from-b-" + name);
  }
  scan();
  for (const std::string path : {"", "a", "a/x", "a/y", "a/y/z", "b"}) {
    const std::string place = "'" + on_drive(path).native() + "'";
    const auto found = usage(path);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->total.bytes,
              sum_of("find " + place + " -type f -printf '%i %s\\n' | sort -u | cut -d' ' -f2"));
    EXPECT_EQ(found->total.allocated,
              sum_of("du -s -B1 " + place) - 512 * sum_of("find " + place + " -type d -printf '%b\\n'"));
  }
}

class TwoDrivesHardLinkTest : public HardLinkScanTest {
 protected:
  TwoDrivesHardLinkTest() : HardLinkScanTest({"one", "two"}) {}
};

// The two may be file systems with the same inode numbers.
TEST_F(TwoDrivesHardLinkTest, LinksOnTwoDrives_CountOnEachDrive) {
  make_file("a/one", 1000);
  make_link("a/one", "b/two");
  std::filesystem::create_directories(on_drive("a", 1));
  std::filesystem::create_hard_link(on_drive("a/one"), on_drive("a/one", 1));
  scan();
  EXPECT_EQ(bytes(""), 2000U);
  expect_exact();
  options.drives.pop_back();
  scan();
  EXPECT_EQ(bytes(""), 1000U);
  expect_exact();
}

// Only the directories whose entries change are marked, and that of the name through which a file is changed.
class RandomHardLinkTest : public HardLinkScanTest, public ::testing::WithParamInterface<bool> {
 protected:
  RandomHardLinkTest() : HardLinkScanTest({"one", "two"}) { resumes = GetParam(); }

  std::vector<std::string> entries(bool directories) const {
    std::vector<std::string> found;
    if (directories) found.emplace_back();
    const auto root = drive(number_);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (entry.is_directory() == directories)
        found.push_back(entry.path().lexically_relative(root).native());
    }
    return found;
  }
  std::filesystem::path real(const std::string& path) const { return on_drive(path, number_); }
  std::string fresh_name() {
    return tracker::join_path(random_.pick(entries(true)), "n" + std::to_string(++fresh_));
  }

  void change() {
    number_ = random_.below(2);
    const auto files = entries(false);
    const auto all = entries(true);
    const std::uint64_t kind = random_.below(10);
    if (files.empty() || kind < 2) return create();
    const std::string file = random_.pick(files);
    if (kind < 5) return link(file);
    // A size that was changed through a name which is gone by the next scan is not found.
    if (kind < 8) return may_remove_ ? unlink(file) : resize(file);
    const std::string directory = random_.pick(all);
    if (directory.empty()) return;
    if (kind < 9) return move(directory);
    if (!may_remove_ || !random_.one_in(3)) return;
    std::filesystem::remove_all(real(directory));
    mark(directory);
  }

  void create() {
    std::string path = fresh_name();
    if (random_.one_in(2)) path += "/n" + std::to_string(++fresh_);
    write_file(real(path), random_.below(20'000));
    mark(path);
  }
  // A file that gets its first further name changes under the name it has.
  void link(const std::string& file) {
    if (std::filesystem::hard_link_count(real(file)) == 1) mark_file(file);
    const std::string to = fresh_name();
    std::filesystem::create_hard_link(real(file), real(to));
    mark_file(to);
  }
  void resize(const std::string& file) {
    std::filesystem::resize_file(real(file), random_.below(20'000));
    mark_file(file);
  }
  void unlink(const std::string& file) {
    std::filesystem::remove(real(file));
    mark_file(file);
  }
  void move(const std::string& directory) {
    const std::string to = fresh_name();
    if (to.starts_with(directory + "/")) return;
    std::filesystem::rename(real(directory), real(to));
    mark(directory);
    mark(to);
  }

  void round() {
    for (std::uint64_t count = random_.below(10); count > 0; --count) change();
    if (random_.one_in(4)) {
      const auto report = scan_killed_after(random_.below(10));
      EXPECT_TRUE(report || report.error().code == Errc::interrupted);
      return;
    }
    options.full = random_.one_in(30);
    options.threads = random_.one_in(2) ? 1 : 3;
    scan();
    if (has_resumed) scan();
    expect_exact(Newest::unknown);
    may_remove_ = random_.one_in(2);
  }

  support::Random random_;
  bool may_remove_ = true;
  std::size_t number_ = 0;
  int fresh_ = 0;
};

TEST_P(RandomHardLinkTest, RandomChanges_TotalsMatchDu) {
  SCOPED_TRACE(random_.trace());
  for (int count = 0; count < 150; ++count) {
    SCOPED_TRACE("round " + std::to_string(count));
    round();
    if (HasFailure()) return;
  }
  for (number_ = 0; number_ < 2; ++number_) {
    for (const std::string& file : entries(false)) unlink(file);
  }
  scan();
  scan();
  for (const char* const table : {"links", "link_directories", "link_changes", "link_corrections"}) {
    EXPECT_EQ(database->handle().number(std::string("SELECT count(*) FROM ") + table), 0) << table;
  }
}

INSTANTIATE_TEST_SUITE_P(Killed, RandomHardLinkTest, ::testing::Values(false, true));

}  // namespace
}  // namespace spoor::scanner
