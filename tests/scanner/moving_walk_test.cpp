// Walks of trees too deep to keep open, and of trees that are moved while they are walked.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

using tracker::MarkKind;

class FewDescriptors {
 public:
  FewDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit few = before_;
    few.rlim_cur = 256;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { static_cast<void>(::setrlimit(RLIMIT_NOFILE, &before_)); }

 private:
  rlimit before_{};
};

// How many threads read, and whether directories call themselves other than listings do.
struct CombCase {
  std::size_t threads;
  bool inodes_unlike_listed;
};

class CombTest : public ScannedNode, public ::testing::WithParamInterface<CombCase> {
 protected:
  static constexpr std::uint64_t levels = 1000;

  CombTest() {
    options.threads = GetParam().threads;
    options.open_directories_max = 64;
    reader.inodes_unlike_listed = GetParam().inodes_unlike_listed;
    DeepTree tree(drive());
    for (std::uint64_t level = 0; level < levels; ++level) {
      tree.descend({"a", "z", "m"});
      tree.make_file("file");
    }
  }

  void expect_all(const ScanReport& report) {
    EXPECT_EQ(report.record.errors, 0U) << report.errors.at(0).path << ": " << report.errors.at(0).message;
    EXPECT_EQ(report.record.figures.dirs_walked, 3 * levels + 1);
    EXPECT_EQ(reader.read_paths.size(), 3 * levels + 1);
    EXPECT_EQ(usage("")->total.dirs, 3 * levels);
    EXPECT_EQ(usage("")->total.files, levels);
    EXPECT_EQ(row_count(), static_cast<std::int64_t>(3 * levels + 1));
  }
};

TEST_P(CombTest, ThousandLevels_NeedFewDescriptors) {
  const FewDescriptors few;
  expect_all(scan_counting_reads());
  mark("", MarkKind::tree);
  expect_all(scan_counting_reads());
}

INSTANTIATE_TEST_SUITE_P(Walks, CombTest,
                         ::testing::Values(CombCase{1, false}, CombCase{5, false}, CombCase{5, true}));

TEST(WalkOfManyDrivesTest, ManyDrives_ShareTheDescriptors) {
  constexpr std::size_t drives = 12;
  struct Node : ScannedNode {
    Node() : ScannedNode(names()) {}
    void TestBody() override {}
    static std::vector<std::string> names() {
      std::vector<std::string> names;
      for (std::size_t number = 0; number < drives; ++number) names.push_back(fmt::format("{}", number));
      return names;
    }
  };
  Node node;
  for (std::size_t number = 0; number < drives; ++number) {
    for (int dir = 0; dir < 64; ++dir) {
      std::filesystem::create_directories(node.on_drive(fmt::format("{}/top{}/below", number, dir), number));
    }
  }
  node.options.threads = 2 * drives;
  node.options.open_directories_max = 96;
  const FewDescriptors few;
  const ScanReport report = node.scan();
  EXPECT_EQ(report.record.errors, 0U) << report.errors.at(0).path << ": " << report.errors.at(0).message;
  EXPECT_EQ(report.record.figures.dirs_walked, drives * (2 + 2 * 64));
}

// Directories above the one that is read are not open, and are looked for anew.
class MovingWalkTest : public ScannedNode {
 protected:
  MovingWalkTest() {
    options.open_directories_max = 4;
    for (const char* path : {"p/q/1/1", "p/q/2/x/1", "p/q/3/1", "p/q/3/y/1", "p/r/1"}) make_file(path);
    for (const char* path : {"elsewhere/q/3/1", "elsewhere/q/3/2", "elsewhere/q/4/1"}) {
      write_file(temp / path, 1000);
    }
  }

  void TearDown() override { reader.before_read = nullptr; }

  // While all of p is walked, halfway.
  ScanReport scan_and_meanwhile(const std::function<void()>& happens) {
    scan();
    make_file("p/q/3/y/2");
    make_file("p/q/1/2");
    mark("p", MarkKind::tree);
    reader.before_read = [&](std::string_view path) {
      if (path == "p/q/2/x") happens();
    };
    const ScanReport report = scan_counting_reads();
    reader.before_read = nullptr;
    return report;
  }

  void expect_the_next_scan_knows_all() {
    EXPECT_EQ(scan().record.errors, 0U);
    expect_exact();
    EXPECT_TRUE(is_complete(""));
  }
};

TEST_F(MovingWalkTest, NothingMoved_ClosedParentsAreReopened) {
  EXPECT_EQ(scan_and_meanwhile([] {}).record.errors, 0U);
  EXPECT_TRUE(was_read("p/q/3/y"));
  expect_exact();
}

// What was below it was taken to be gone; moved back, nobody marks any of it.
TEST_F(MovingWalkTest, UnreachableDirectories_AreIncompleteUntilNextScan) {
  const ScanReport report = scan_and_meanwhile([&] { rename("p", "aside"); });
  EXPECT_GT(report.record.errors, 0U);
  EXPECT_EQ(files("p/q/3"), 2U) << "it keeps what was known";
  EXPECT_FALSE(is_complete("p/q"));
  rename("aside", "p");
  mark("p");
  mark("aside");
  expect_the_next_scan_knows_all();
}

TEST_F(MovingWalkTest, ParentMovedAwayForGood_IsGoneInNextScan) {
  scan_and_meanwhile([&] { rename("p", "aside"); });
  mark("p");
  mark("aside");
  expect_the_next_scan_knows_all();
}

TEST_F(MovingWalkTest, ParentReplacedBySymbolicLink_IsNotFollowed) {
  const ScanReport report = scan_and_meanwhile([&] {
    rename("p", "aside");
    std::filesystem::create_directory_symlink(temp / "elsewhere", on_drive("p"));
  });
  EXPECT_FALSE(was_read("p/q/3"));
  EXPECT_FALSE(was_read("p/q/4"));
  EXPECT_LT(report.record.bytes, 1000U);
  mark("p");
  mark("aside");
  expect_the_next_scan_knows_all();
}

TEST_F(MovingWalkTest, ParentReplacedByOtherDirectory_IsNotReadInItsPlace) {
  for (const bool birth : {true, false}) {
    reader.without_birth = !birth;
    scan_everything();
    std::filesystem::create_directories(temp / "other");
    std::filesystem::copy(temp / "elsewhere", temp / "other", std::filesystem::copy_options::recursive);
    scan_and_meanwhile([&] {
      rename("p", birth ? "aside" : "aside2");
      std::filesystem::rename(temp / "other", on_drive("p"));
    });
    EXPECT_FALSE(was_read("p/q/3"));
    EXPECT_EQ(files("p/q/3"), birth ? 2U : 3U);
    mark("p");
    mark(birth ? "aside" : "aside2");
    expect_the_next_scan_knows_all();
    remove("p");
    rename(birth ? "aside" : "aside2", "p");
    mark("p");
    mark(birth ? "aside" : "aside2");
  }
}

TEST_F(MovingWalkTest, FileSystemMountedOverParent_IsNotEntered) {
  scan_and_meanwhile([&] { reader.mount_points.insert("p"); });
  EXPECT_FALSE(was_read("p/q/3"));
  EXPECT_FALSE(is_complete("p/q"));
  reader.repair();
  expect_the_next_scan_knows_all();
}

TEST_F(MovingWalkTest, SubdirectoryReplacedBySymbolicLink_IsGone) {
  const ScanReport report = scan_and_meanwhile([&] {
    remove("p/q/3");
    std::filesystem::create_directory_symlink(temp / "elsewhere", on_drive("p/q/3"));
  });
  EXPECT_EQ(report.record.errors, 0U);
  EXPECT_FALSE(was_read("p/q/3"));
  EXPECT_FALSE(usage("p/q/3"));
  mark("p/q/3");
  expect_the_next_scan_knows_all();
}

TEST_F(MovingWalkTest, OpenDirectoryMoved_IsReadCompletely) {
  options.open_directories_max = 1024;
  const ScanReport report = scan_and_meanwhile([&] { rename("p", "aside"); });
  EXPECT_EQ(report.record.errors, 0U);
  EXPECT_EQ(files("p/q/3"), 3U);
  mark("p");
  mark("aside");
  expect_the_next_scan_knows_all();
}

}  // namespace
}  // namespace spoor::scanner
