#include "base/directory_overlap.h"

#include <gtest/gtest.h>

#include "tests/support/temp_directory.h"

namespace spoor::base {
namespace {

namespace fs = std::filesystem;

class DirectoryOverlapTest : public ::testing::Test {
 protected:
  DirectoryOverlapTest() {
    for (const char* name : {"one/below/deep", "two", "one-more"}) fs::create_directories(temp_ / name);
  }

  fs::path link(const std::string& name, const std::string& to) const {
    fs::create_directory_symlink(temp_ / to, temp_ / name);
    return temp_ / name;
  }

  support::TempDirectory temp_;
};

TEST_F(DirectoryOverlapTest, SeparateDirectories_DoNotOverlap) {
  EXPECT_TRUE(find_overlaps(
                  {temp_ / "one", temp_ / "two", temp_ / "one-more", link("link", "one") / ".." / "nothing"})
                  .empty());
}

TEST_F(DirectoryOverlapTest, SymlinkToAnother_IsTheSameDirectory) {
  const std::vector<fs::path> drives{temp_ / "two", temp_ / "one", link("link", "one")};
  const auto found = find_overlaps(drives);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].directory, 2U);
  EXPECT_EQ(found[0].other, 1U);
  EXPECT_TRUE(found[0].is_same);
  EXPECT_NE(overlap_text(found[0], drives).find("is the same directory as"), std::string::npos);
}

TEST_F(DirectoryOverlapTest, SymlinkBelowAnother_IsInsideInAnyOrder) {
  const fs::path inner = link("link", "one/below") / "deep";
  for (const std::size_t at : {0U, 1U}) {
    std::vector<fs::path> drives{temp_ / "one", temp_ / "two"};
    drives.insert(drives.begin() + static_cast<std::ptrdiff_t>(at), inner);
    const auto found = find_overlaps(drives);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(drives[found[0].directory], inner);
    EXPECT_EQ(drives[found[0].other], temp_ / "one");
    EXPECT_FALSE(found[0].is_same);
    EXPECT_NE(overlap_text(found[0], drives).find("is inside"), std::string::npos);
  }
}

TEST_F(DirectoryOverlapTest, FileSystemMountedBelowAnother_DoesNotOverlap) {
  EXPECT_TRUE(find_overlaps({"/", "/proc"}).empty());
}

TEST_F(DirectoryOverlapTest, MissingDirectory_DoesNotOverlap) {
  EXPECT_TRUE(find_overlaps({temp_ / "one", link("dangling", "nowhere"), temp_ / "missing"}).empty());
}

}  // namespace
}  // namespace spoor::base
