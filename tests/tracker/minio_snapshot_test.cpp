#include "tracker/storage/minio_snapshot.h"

#include <gtest/gtest.h>

#include <limits>
#include <tuple>
#include <vector>

#include "tests/support/largest_allocation.h"
#include "tests/tracker/minio_samples.h"
#include "tests/tracker/samples.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

void expect_corrupt(std::string_view bytes) {
  support::reset_largest_allocation();
  const auto snapshot = decode_minio_snapshot(bytes);
  EXPECT_LT(support::largest_allocation_bytes(), 64U * 1024) << "allocated by a length it was told";
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().code, Errc::snapshot_corrupt) << snapshot.error().message;
}

// The sample up to its current filter, for another one to follow.
std::string header() { return minio_header(1'677'169'754, 20); }

TEST(MinioSnapshotTest, WholeFile_IsDecodedWithItsHistoryInOrder) {
  const auto snapshot = decode_minio_snapshot(minio_file(1'677'169'754, 20, {7, 19, 3}) + "trailing");
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->saved_at, base::WallTime(std::chrono::seconds(1'677'169'754)));
  EXPECT_EQ(snapshot->current, CycleId{20});
  std::vector<std::uint64_t> ids;
  for (const MinioCycle& cycle : snapshot->cycles) {
    ids.push_back(cycle.id.value);
    EXPECT_TRUE(cycle.filter.may_contain(hash_path(minio_path_of(cycle.id.value))));
  }
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{3, 7, 19, 20}));
}

TEST(MinioSnapshotTest, OtherVersion_IsUnknown) {
  std::string bytes = minio_file(1, 20, {});
  for (const char version : {'\0', '\1', '\6', '\10', '\xff'}) {
    bytes[0] = version;
    const auto snapshot = decode_minio_snapshot(bytes);
    ASSERT_FALSE(snapshot);
    EXPECT_EQ(snapshot.error().code, Errc::snapshot_unknown);
  }
}

// ancestor 2
TEST(MinioSnapshotTest, TruncatedFile_IsCorrupt) {
  const std::string bytes = minio_file(1'677'169'754, 20, {18, 19});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    expect_corrupt(std::string_view(bytes).substr(0, size));
  }
}

// ancestor 4: m = 0 divides by zero, k = 0 answers yes to everything, and lengths are believed.
TEST(MinioSnapshotTest, ImpossibleFilter_IsRefusedBeforeAllocation) {
  const std::tuple<std::uint64_t, std::uint64_t, std::uint64_t> cases[] = {
      {0, 4, 0},
      {64, 0, 64},
      {0, 0, 0},
      {64, 4, 128},
      {100'000'000, 4, 100'000'000},
      {BloomShape::bits_max, 4, BloomShape::bits_max},
      {most, 4, most}};
  for (const auto& [bits, hashes, length] : cases) {
    std::string bytes = header();
    for (const std::uint64_t number : {bits, hashes, length}) put_big(bytes, number);
    bytes.append(64, '\0');
    expect_corrupt(bytes);
  }
}

// ancestor 4: a history count of 2^60 panics.
TEST(MinioSnapshotTest, HistoryCountBeyondFile_IsRefusedBeforeAllocation) {
  for (const std::uint64_t count : {std::uint64_t{3}, std::uint64_t{1} << 60U, most}) {
    std::string bytes = minio_file(1, 20, {});
    bytes.resize(bytes.size() - 8);
    put_little(bytes, count);
    expect_corrupt(bytes);
  }
}

TEST(MinioSnapshotTest, SaveTimeOutOfRange_IsCorrupt) {
  expect_corrupt(minio_file(most, 20, {}));
  expect_corrupt(minio_file(std::uint64_t{1} << 40U, 20, {}));
}

TEST(MinioKeyTest, DirectoryObjectSuffix_IsRemovedAtTheEndOnly) {
  EXPECT_EQ(minio_key("bucket/a__XLDIR__"), "bucket/a");
  EXPECT_EQ(minio_key("bucket/a__XLDIR__/x"), "bucket/a__XLDIR__/x");
  EXPECT_EQ(minio_key("bucket/a"), "bucket/a");
  EXPECT_EQ(minio_key("bucket/a__xldir__"), "bucket/a__xldir__");
}

}  // namespace
}  // namespace spoor::tracker
