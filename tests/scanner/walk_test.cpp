// What a walk makes of changes on the drive.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "scanner/errors.h"
#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

using tracker::MarkKind;

class WalkTest : public ScannedNode {};

TEST_F(WalkTest, FirstScan_ReadsEverything) {
  make_file("a/b/1", 10);
  make_file("a/2", 20);
  make_directory("c");
  const ScanReport report = scan();
  EXPECT_TRUE(report.record.walked_everything);
  EXPECT_EQ(report.record.reason, "it is the first scan");
  EXPECT_EQ(report.record.id, 1U);
  EXPECT_EQ(report.record.figures.dirs_walked, 4U);
  EXPECT_EQ(report.record.figures.dirs_new, 4U);
  EXPECT_EQ(report.record.figures.dirs_changed, 0U);
  EXPECT_EQ(report.record.files, 2U);
  EXPECT_EQ(report.record.bytes, 30U);
  expect_exact();
}

TEST_F(WalkTest, NoMarks_ReadsNothing) {
  make_file("a/b/1");
  scan();
  const ScanReport report = scan_counting_reads();
  EXPECT_FALSE(report.record.walked_everything);
  EXPECT_EQ(report.record.reason, "");
  EXPECT_EQ(report.record.id, 2U);
  EXPECT_TRUE(reader.read_paths.empty());
  EXPECT_EQ(report.record.figures.dirs_walked, 0U);
  EXPECT_EQ(report.record.figures.dirs_skipped, 3U);
  EXPECT_EQ(report.record.files, 1U);
}

TEST_F(WalkTest, FileMark_ReadsOnlyPathToIt) {
  for (const char* path : {"a/b/1", "a/c/1", "d/e/1"}) make_file(path);
  scan();
  make_file("a/b/2");
  mark("a/b/2", MarkKind::file);
  const ScanReport report = scan_counting_reads();
  EXPECT_EQ(reader.read_paths, (std::multiset<std::string>{"", "a", "a/b"}));
  EXPECT_EQ(report.record.figures.dirs_walked, 3U);
  EXPECT_EQ(report.record.figures.dirs_skipped, 3U);  // a/c, d, d/e
  EXPECT_EQ(report.record.figures.dirs_changed, 1U) << "the directories above read the same as before";
  EXPECT_EQ(files(""), 4U);
  expect_exact();
}

TEST_F(WalkTest, UnmarkedChange_IsSeenOnlyByFullScan) {
  make_file("a/1");
  scan();
  make_file("a/2");
  scan();
  EXPECT_EQ(files("a"), 1U);
  const ScanReport report = scan_everything();
  EXPECT_TRUE(report.record.walked_everything);
  EXPECT_EQ(report.record.figures.dirs_changed, 1U);
  expect_exact();
}

TEST_F(WalkTest, NewSubtree_IsReadIfOnlyItsTopIsMarked) {
  make_file("a/1");
  scan();
  make_file("a/new/b/c/1");
  mark("a/new");
  const ScanReport report = scan();
  EXPECT_EQ(report.record.figures.dirs_new, 3U);
  EXPECT_EQ(report.record.figures.dirs_changed, 1U);
  expect_exact();
}

TEST_F(WalkTest, DeletedSubtree_IsRemovedWithAllBelow) {
  for (const char* path : {"a/b/c/d/1", "a/b/e/1", "a/f/1"}) make_file(path);
  scan();
  remove("a/b");
  mark("a/b");
  const ScanReport report = scan();
  EXPECT_EQ(report.record.figures.dirs_deleted, 4U);
  EXPECT_FALSE(usage("a/b"));
  expect_exact();
}

TEST_F(WalkTest, SwappedDirectories_AreDetectedByTheirNamesOrTheirParentMarked) {
  const std::vector<std::vector<std::string>> marked{{"a/x", "a/y"}, {"a"}};
  for (const auto& paths : marked) {
    options.full = true;
    remove("a");
    make_file("a/x/deep/1", 100);
    make_file("a/x/deep/2", 100);
    make_file("a/y/deep/1", 5);
    make_file("a/y/other/1", 7);
    scan();
    options.full = false;
    rename("a/x", "a/aside");
    rename("a/y", "a/x");
    rename("a/aside", "a/y");
    for (const std::string& path : paths) mark(path);
    const ScanReport report = scan();
    EXPECT_EQ(report.record.figures.dirs_deleted, 5U);
    EXPECT_EQ(report.record.figures.dirs_new, 5U);
    expect_exact();
  }
}

// A tree that has the inode numbers of the one that was at its name before.
class ReusedInodesTest : public WalkTest {
 protected:
  ReusedInodesTest() {
    reader.reuses_inodes = true;
    make_file("a/x/deep/1", 100);
    make_file("a/y/deep/1", 100);
  }

  // Marked as what it is: a name that now stands for something else.
  void replace_x() {
    const std::int64_t before = reader.open_drive(on_drive("a/x"))->ctime_ns;
    remove("a/x");
    make_file("moved/deep/1", 5);
    rename("moved", "a/x");
    while (reader.open_drive(on_drive("a/x"))->ctime_ns == before) {
      rename("a/x", "moved");
      rename("moved", "a/x");
    }
    mark("a/x");
  }
};

TEST_F(ReusedInodesTest, IdentityProofChanged_IsAnotherDirectory) {
  reader.identity = identity_of_birth(1);
  scan();
  replace_x();
  reader.identity = identity_of_generation(2);
  const ScanReport report = scan();
  EXPECT_GE(report.record.figures.dirs_new, 2U);
  expect_exact();
}

TEST_F(ReusedInodesTest, NoProofAndCtimeChanged_AllBelowMarkedNameIsRead) {
  reader.without_birth = true;
  scan();
  replace_x();
  scan_counting_reads();
  EXPECT_TRUE(was_read("a/x/deep"));
  expect_exact();
}

TEST_F(ReusedInodesTest, NoProof_OnlyDifferencesAreCountedAsChanges) {
  reader.without_birth = true;
  scan();
  make_file("a/x/2");  // the ctime of a/x is another one
  mark("a/x/2", MarkKind::file);
  const ScanReport report = scan();
  EXPECT_EQ(report.record.figures.dirs_changed, 1U);
  EXPECT_EQ(report.record.figures.dirs_new, 0U);
  scan_counting_reads();
  EXPECT_TRUE(reader.read_paths.empty());
}

TEST_F(ReusedInodesTest, NoIdentity_AllBelowMarkedNameIsRead) {
  reader.identity = no_identity;
  scan();
  write_file(on_drive("a/x/deep/1"), 7);
  mark("a/x");
  scan();
  expect_exact();
}

TEST_F(WalkTest, NoBirthTimes_InodesIdentifyDirectories) {
  reader.without_birth = true;
  make_file("a/x/1");
  make_file("a/y/1");
  scan();
  make_file("a/x/2");
  mark("a/x");
  scan_counting_reads();
  EXPECT_FALSE(was_read("a/y"));
  expect_exact();
}

TEST_F(WalkTest, DirectoryRemovedBeforeOpen_IsGone) {
  make_file("a/b/c/1");
  make_file("a/d/1");
  scan();
  mark("a/b/c");
  // Removed once it was listed, before it is opened.
  progress = [&](const Progress& now) {
    if (now.path == on_drive("a/b")) remove("a/b/c");
  };
  options.progress_every = 1;
  const ScanReport report = scan();
  EXPECT_EQ(report.record.errors, 0U);
  EXPECT_FALSE(usage("a/b/c"));
  expect_exact(Newest::unknown);
}

TEST_F(WalkTest, EntryNoLongerDirectory_IsGone) {
  for (const int number : {ENOENT, ENOTDIR, ELOOP}) {
    make_file("a/b/c/1");
    options.full = true;
    scan();
    reader.open_errors["a/b"] = number;
    const ScanReport report = scan();
    EXPECT_EQ(report.record.errors, 0U);
    EXPECT_EQ(report.record.figures.dirs_deleted, 2U);
    EXPECT_FALSE(usage("a/b"));
    reader.repair();
  }
}

TEST_F(WalkTest, DirectoryRemovedDuringRead_IsGone) {
  make_file("a/b/1");
  scan();
  mark("a/b");
  reader.before_read = [&](std::string_view path) {
    if (path == "a/b") remove("a/b");
  };
  const ScanReport report = scan();
  EXPECT_EQ(report.record.errors, 0U);
  EXPECT_EQ(report.record.figures.dirs_deleted, 1U);
  expect_exact(Newest::unknown);
}

TEST_F(WalkTest, ManySubdirectories_ChangesAreExact) {
  for (int number = 0; number < 3000; ++number) make_directory("flat/" + std::to_string(number));
  scan();
  expect_exact();
  for (int number = 0; number < 3000; number += 3) remove("flat/" + std::to_string(number));
  for (int number = 3000; number < 4000; ++number) make_directory("flat/" + std::to_string(number));
  mark("flat");
  const ScanReport report = scan();
  EXPECT_EQ(report.record.figures.dirs_deleted, 1000U);
  EXPECT_EQ(report.record.figures.dirs_new, 1000U);
  expect_exact();
}

TEST_F(WalkTest, NamesWithArbitraryBytes_AreWalked) {
  for (const char* name : {"new\nline", "\xc3\x28", "sp ace", "'quoted\"", "%s"}) {
    make_file(std::string("a/") + name + "/" + name);
  }
  make_file(std::string(255, 'n') + "/1");
  scan();
  expect_exact();
  make_file("a/\xc3\x28/2");
  mark("a/\xc3\x28");
  scan();
  expect_exact();
}

// Sparse files of 2^63 - 1 bytes need no space.
class HugeSumsTest : public WalkTest {
 protected:
  static constexpr std::uint64_t half = std::uint64_t{1} << 63U;

  HugeSumsTest() {
    for (const char* name : {"a/x", "a/y", "a/z", "b"}) make_directory(name);
    for (const char* name : {"a/x", "a/y", "a/z"}) reader.own_bytes[name] = half;
    reader.own_bytes["b"] = 7;
  }

  std::uint64_t bytes(const std::string& path) { return usage(path)->total.bytes; }
};

TEST_F(HugeSumsTest, SumOverflow_SaturatesAtMaximum) {
  EXPECT_EQ(scan().record.bytes, sum_max);
  EXPECT_EQ(bytes(""), sum_max);
  EXPECT_EQ(bytes("a"), sum_max);
  EXPECT_EQ(bytes("a/x"), half);
}

TEST_F(HugeSumsTest, SumShrinksAfterOverflow_IsExact) {
  scan();
  for (const char* name : {"a/x", "a/y"}) {
    reader.own_bytes[name] = 100;
    mark(name);
    scan();
  }
  EXPECT_EQ(bytes("a"), half + 200);
  EXPECT_EQ(bytes(""), half + 207);
}

// One subdirectory grows while the old figures of the next are still to be taken out.
TEST_F(HugeSumsTest, TemporaryOverflow_SumIsExact) {
  reader.own_bytes = {{"a/x", 5}, {"a/y", half}, {"a/z", half - 10}, {"b", 7}};
  scan();
  reader.own_bytes = {{"a/x", half}, {"a/y", 5}, {"a/z", half - 10}, {"b", 7}};
  mark("a/x");
  mark("a/y");
  scan();
  EXPECT_EQ(bytes("a"), sum_max - 4);
}

TEST_F(HugeSumsTest, SumOfRest_SaturatesAtMaximum) {
  scan();
  UsageOptions all_in_the_rest;
  all_in_the_rest.children_max = 0;
  const auto found = query_usage(*database, "a", all_in_the_rest);
  EXPECT_EQ((*found)->total.rest.bytes, sum_max);
}

TEST_F(WalkTest, NewestMtime_PropagatesToTheRoot) {
  make_file("a/b/1");
  make_file("c/1");
  const timespec future[2] = {{4'000'000'000, 0}, {4'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, on_drive("a/b/1").c_str(), future, 0), 0);
  scan();
  EXPECT_EQ(usage("")->total.mtime_ns, 4'000'000'000'000'000'000);
  EXPECT_LT(usage("c")->total.mtime_ns, 4'000'000'000'000'000'000);
}

TEST_F(WalkTest, FourThousandLevels_AreWalkedAndRemoved) {
  DeepTree tree(drive());
  for (int level = 0; level < 4000; ++level) tree.descend({"d"});
  tree.make_file("file");
  const ScanReport report = scan();
  EXPECT_EQ(report.record.errors, 0U) << report.errors.at(0).message;
  EXPECT_EQ(report.record.figures.dirs_new, 4001U);
  EXPECT_EQ(usage("")->total.dirs, 4000U);
  EXPECT_EQ(usage("")->total.files, 1U);
  std::uint64_t deepest = 0;
  for_each_entry(usage("", 5000)->total, [&](const UsageEntry& entry) { deepest = entry.depth; });
  EXPECT_EQ(deepest, 4000U);

  mark("d", MarkKind::tree);
  EXPECT_EQ(scan().record.figures.dirs_walked, 4001U);

  std::filesystem::rename(on_drive("d"), temp / "aside");
  mark("d");
  EXPECT_EQ(scan().record.figures.dirs_deleted, 4000U);
  EXPECT_EQ(row_count(), 1);
}

}  // namespace
}  // namespace spoor::scanner
