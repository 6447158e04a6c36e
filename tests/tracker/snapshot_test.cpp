#include "tracker/storage/snapshot.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/checksum.h"
#include "tests/support/largest_allocation.h"
#include "tests/tracker/samples.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

constexpr std::size_t checksum_bytes = 8;

// The bytes with a checksum that fits what stands before it: what only malice or a bug writes.
std::string sealed(std::string content) {
  base::ByteWriter checksum;
  checksum.u64(base::checksum(content));
  return content + checksum.bytes();
}

std::string content_of(const std::string& snapshot) {
  return snapshot.substr(0, snapshot.size() - checksum_bytes);
}

void expect_refused(std::string_view bytes, Errc code = Errc::snapshot_corrupt) {
  support::reset_largest_allocation();
  const auto snapshot = decode_snapshot(bytes);
  EXPECT_LT(support::largest_allocation_bytes(), 64U * 1024) << "allocated by a length it was told";
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().code, code) << snapshot.error().message;
}

TEST(SnapshotTest, EncodedSnapshot_IsDecoded) {
  const Snapshot saved = snapshot_of(varied_state(), 42);
  const auto loaded = decode_snapshot(encode_snapshot(saved));
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->owner, saved.owner);
  EXPECT_EQ(loaded->generation, 42U);
  EXPECT_EQ(loaded->saved_at, saved.saved_at);
  EXPECT_EQ(loaded->state.instance, saved.state.instance);
  EXPECT_EQ(loaded->state.complete_since_birth, saved.state.complete_since_birth);
  EXPECT_EQ(loaded->state.oldest_kept, saved.state.oldest_kept);
  EXPECT_EQ(loaded->state.current, saved.state.current);
  EXPECT_EQ(loaded->state.current_opened_at, saved.state.current_opened_at);
  EXPECT_TRUE(encode_snapshot(*loaded) == encode_snapshot(saved)) << "the marks differ";
  EXPECT_EQ(encode_snapshot(saved).front(), '\x08') << "the version";
  for (const char* path : {"bucket/now", "foreign", "bucket/tree/x"})
    EXPECT_TRUE(contains(*loaded->state.current_marks, path)) << path;
  ASSERT_EQ(loaded->state.history.size(), 2U);
  EXPECT_EQ(loaded->state.history[0].last, CycleId{3});
  EXPECT_TRUE(contains(*loaded->state.history[0].marks, "bucket/three"));
  EXPECT_TRUE(contains(*loaded->state.history[1].marks, "any"));
  const TrackerState born = Tracker::born(instance_of(1), fakes::ManualClock());
  EXPECT_TRUE(bytes_of(decode_snapshot(bytes_of(born)).value().state) == bytes_of(born));
}

// A string that grows takes up to three times its size.
TEST(SnapshotTest, LargeSnapshot_IsEncodedInOneAllocation) {
  TrackerState state = varied_state();
  MarkSet dense;
  for (const std::uint64_t bits : {std::uint64_t{1} << 23U, std::uint64_t{1} << 24U}) {
    const auto shape = BloomShape::checked(bits, 4).value();
    dense.add_filter(BloomFilter(shape, std::vector<std::uint64_t>(shape.word_count(), 0x5555555555555555U)));
  }
  state.current_marks = std::make_shared<const MarkSet>(std::move(dense));
  const Snapshot snapshot = snapshot_of(std::move(state));
  support::reset_largest_allocation();
  const std::string bytes = encode_snapshot(snapshot);
  EXPECT_GT(bytes.size(), std::size_t{3} << 20U);
  EXPECT_LT(support::largest_allocation_bytes(), bytes.size() + bytes.size() / 8);
}

// A tracker may reload what it wrote, whatever it holds.
TEST(SnapshotTest, BytesMax_GrowsWithTheLimitsOfTheTracker) {
  const Tracker::Options defaults;
  const std::uint64_t members = TreeMarks::members_max * TreeMarks::member_bytes_max;
  const std::uint64_t least = defaults.memory_bytes_max + 17 * (TreeMarks::bytes_max + members);
  EXPECT_GT(snapshot_bytes_max_of(defaults), least);
  EXPECT_LT(snapshot_bytes_max_of(defaults), least + (std::uint64_t{64} << 20U));
  Tracker::Options larger;
  larger.memory_bytes_max = std::uint64_t{8} << 30U;
  larger.history_max = 1024;
  EXPECT_GT(snapshot_bytes_max_of(larger), larger.memory_bytes_max + 1025 * TreeMarks::bytes_max);
}

// ancestor 2 and 3: flipped bits go unnoticed, and a short file is taken for nothing there.
TEST(SnapshotTest, FlippedByteTruncationAndTrailingBytes_AreDetected) {
  const std::string whole = encode_snapshot(snapshot_of(varied_state()));
  const std::string content = content_of(whole);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    SCOPED_TRACE(at);
    for (int flip = 1; flip < 256; ++flip)
      expect_refused(flipped(whole, at, flip), at == 0 ? Errc::snapshot_unknown : Errc::snapshot_corrupt);
    expect_refused(whole.substr(0, at));
    if (at > 0 && at < content.size()) expect_refused(sealed(content.substr(0, at)));
  }
  expect_refused(whole + '\0');
  expect_refused(sealed(content + '\0'));
  expect_refused("\x09", Errc::snapshot_unknown);
}

TEST(SnapshotTest, ImpossibleState_IsRefused) {
  const std::function<void(TrackerState&)> changes[] = {
      [](auto& state) { state.current = {0}; },
      [](auto& state) { state.oldest_kept = {0}; },
      [](auto& state) { state.oldest_kept = next(state.current); },
      [](auto& state) { state.current = {CycleId::value_max + 1}; },
      [](auto& state) { state.position = journal_position_max + 1; },
      [](auto& state) { state.instance = {}; },
      [](auto& state) { std::swap(state.history[0], state.history[1]); },
      [](auto& state) { state.history[1].last = state.history[0].last; },
      [](auto& state) { state.history[1].last = state.current; },
      [](auto& state) { state.oldest_kept = next(state.history[0].last); },
  };
  for (const auto& change : changes) {
    TrackerState state = varied_state();
    change(state);
    expect_refused(bytes_of(state));
  }
}

TEST(SnapshotTest, CycleCountBeyondInput_IsRefused) {
  TrackerState state = varied_state();
  state.history.clear();
  std::string content = content_of(encode_snapshot(snapshot_of(state)));
  content.replace(content.size() - 4, 4, "\xff\xff\xff\xff");
  expect_refused(sealed(content));
}

}  // namespace
}  // namespace spoor::tracker
