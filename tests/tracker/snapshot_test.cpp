#include "tracker/storage/snapshot.h"

#include <gtest/gtest.h>

#include "base/byte_codec.h"
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

// A state whose snapshot is refused for this change of the sample.
template <class Change>
void expect_refused_state(Change change) {
  TrackerState state = varied_state();
  change(state);
  expect_refused(encode_snapshot(snapshot_of(std::move(state))));
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
}

TEST(SnapshotTest, MarksOfAllShapesAndTrees_AreFoundInTheirCycles) {
  const TrackerState state = decode_snapshot(encode_snapshot(snapshot_of(varied_state()))).value().state;
  EXPECT_TRUE(contains(*state.current_marks, "bucket/now"));
  EXPECT_TRUE(contains(*state.current_marks, "foreign"));
  EXPECT_TRUE(contains(*state.current_marks, "bucket/tree/x"));
  ASSERT_EQ(state.history.size(), 2U);
  EXPECT_EQ(state.history[0].last, CycleId{3});
  EXPECT_TRUE(contains(*state.history[0].marks, "bucket/three"));
  EXPECT_TRUE(contains(*state.history[1].marks, "any"));
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

TEST(SnapshotTest, NewTrackerState_IsDecoded) {
  const fakes::ManualClock clock;
  const TrackerState born = Tracker::born(instance_of(1), clock);
  const auto loaded = decode_snapshot(encode_snapshot(snapshot_of(born)));
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->state.complete_since_birth);
  EXPECT_TRUE(bytes_of(loaded->state) == bytes_of(born));
}

TEST(SnapshotTest, FirstByte_IsFormatVersion) {
  EXPECT_EQ(encode_snapshot(snapshot_of(varied_state())).front(), '\x08');
}

// ancestor 3: flipped bits go unnoticed.
TEST(SnapshotTest, FlippedByte_IsDetected) {
  const std::string whole = encode_snapshot(snapshot_of(varied_state()));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int flip = 1; flip < 256; ++flip) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(flip));
      const auto snapshot = decode_snapshot(bytes);
      ASSERT_FALSE(snapshot) << "byte " << at << " xor " << flip;
      ASSERT_EQ(snapshot.error().code, at == 0 ? Errc::snapshot_unknown : Errc::snapshot_corrupt);
    }
  }
}

// ancestor 2: a short file is taken for nothing there.
TEST(SnapshotTest, Truncation_IsDetected) {
  const std::string whole = encode_snapshot(snapshot_of(varied_state()));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    expect_refused(std::string_view(whole).substr(0, size));
  }
}

TEST(SnapshotTest, TrailingBytes_AreDetected) {
  const std::string whole = encode_snapshot(snapshot_of(varied_state()));
  expect_refused(whole + '\0');
  expect_refused(sealed(content_of(whole) + '\0'));
}

TEST(SnapshotTest, TruncationWithValidChecksum_IsRefused) {
  const std::string content = content_of(encode_snapshot(snapshot_of(varied_state())));
  for (std::size_t size = 1; size < content.size(); ++size) {
    SCOPED_TRACE(size);
    expect_refused(sealed(content.substr(0, size)));
  }
}

TEST(SnapshotTest, OtherVersion_IsUnknownNotCorrupt) {
  std::string bytes = encode_snapshot(snapshot_of(varied_state()));
  bytes[0] = '\x09';
  expect_refused(bytes, Errc::snapshot_unknown);
  expect_refused("\x09", Errc::snapshot_unknown);
}

TEST(SnapshotTest, InvalidCycleNumbersOrInstance_AreRefused) {
  expect_refused_state([](TrackerState& state) { state.current = {0}; });
  expect_refused_state([](TrackerState& state) { state.oldest_kept = {0}; });
  expect_refused_state([](TrackerState& state) { state.oldest_kept = next(state.current); });
  expect_refused_state([](TrackerState& state) { state.current = {CycleId::value_max + 1}; });
  expect_refused_state([](TrackerState& state) { state.instance = {}; });
}

TEST(SnapshotTest, HistoryOutOfOrder_IsRefused) {
  expect_refused_state([](TrackerState& state) { std::swap(state.history[0], state.history[1]); });
  expect_refused_state([](TrackerState& state) { state.history[1].last = state.history[0].last; });
  expect_refused_state([](TrackerState& state) { state.history[1].last = state.current; });
  expect_refused_state([](TrackerState& state) { state.oldest_kept = next(state.history[0].last); });
}

TEST(SnapshotTest, CycleCountBeyondInput_IsRefused) {
  TrackerState state = varied_state();
  state.history.clear();
  std::string content = content_of(encode_snapshot(snapshot_of(state)));
  content.replace(content.size() - 4, 4, "\xff\xff\xff\xff");
  expect_refused(sealed(content));
}

TEST(SnapshotTest, MutationsWithValidChecksum_NeverCrashOrOverallocate) {
  SPOOR_RANDOM(random);
  const std::string content = content_of(encode_snapshot(snapshot_of(varied_state())));
  int decoded = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = content;
    for (std::uint64_t n = random.between(1, 3); n > 0; --n) {
      // Whole fields as well as single bytes: lengths just beyond and far beyond the input.
      const std::size_t at = 1 + random.below(bytes.size() - 1);
      const std::size_t width = std::min<std::size_t>(bytes.size() - at, random.one_in(3) ? 8 : 1);
      bytes.replace(
          at, width,
          random.one_in(2) ? random.bytes(width) : std::string(width, random.one_in(2) ? '\xff' : '\0'));
    }
    bytes = sealed(std::move(bytes));
    support::reset_largest_allocation();
    const auto snapshot = decode_snapshot(bytes);
    ASSERT_LT(support::largest_allocation_bytes(), 64U * 1024);
    if (!snapshot) continue;
    // What is taken for a state can be worked with and saved.
    ++decoded;
    ASSERT_TRUE(decode_snapshot(encode_snapshot(*snapshot)));
  }
  EXPECT_GT(decoded, 0) << "the mutations are too rough to test anything";
}

}  // namespace
}  // namespace spoor::tracker
