#include "tracker/storage/journal_segment.h"

#include <gtest/gtest.h>

#include "tests/tracker/samples.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

const InstanceId instance = instance_of(4);
const SegmentHeader header{{"cluster", "node"}, instance, 1000, 900};
const std::string zeros(100, '\0');  // written ahead

std::string records_of(std::initializer_list<Mark> marks) {
  std::string records;
  for (const Mark& mark : marks) append_record(records, mark);
  return records;
}

// Three frames from position 1000 on.
struct Sample {
  std::string one = records_of({dir("bucket/a")});
  std::string two = records_of({file("bucket/b/c"), tree("bucket/d")});
  std::string three = records_of({dir("bucket/e")});
  std::string bytes = encode_frame(instance, 1000, one) + encode_frame(instance, 1000 + one.size(), two) +
                      encode_frame(instance, 1000 + one.size() + two.size(), three);
  std::size_t second = encode_frame(instance, 0, one).size();
  std::size_t third = second + encode_frame(instance, 0, two).size();
};

TEST(JournalRecordTest, WrittenRecords_AreReadBack) {
  const std::vector<JournalRecord> all{dir("bucket/a"),
                                       file("b/\xff\x01"),
                                       tree(""),
                                       tree("x"),
                                       AdvanceRecord{{7}, base::WallTime(std::chrono::nanoseconds(-5))},
                                       LevelRecord{{958'506, 4}}};
  std::string records;
  for (const JournalRecord& record : all) {
    const std::size_t before = records.size();
    std::visit(
        [&](const auto& its) {
          append_record(records, its);
          EXPECT_EQ(records.size() - before, record_bytes(its));
        },
        record);
  }
  std::string_view rest = records;
  for (const JournalRecord& record : all) {
    const auto taken = take_record(rest);
    ASSERT_TRUE(taken);
    ASSERT_EQ(taken->index(), record.index());
    if (const auto* mark = std::get_if<Mark>(&record)) {
      EXPECT_EQ(std::get<Mark>(*taken).path, mark->path);
      EXPECT_EQ(std::get<Mark>(*taken).kind, mark->kind);
    } else if (const auto* level = std::get_if<LevelRecord>(&record)) {
      EXPECT_EQ(std::get<LevelRecord>(*taken), *level);
    } else {
      EXPECT_EQ(std::get<AdvanceRecord>(*taken), std::get<AdvanceRecord>(record));
    }
  }
  EXPECT_TRUE(rest.empty());
}

TEST(JournalRecordTest, InvalidRecord_IsCorruptAndNotConsumed) {
  std::string too_long = records_of({dir(std::string(255, 'x'))});
  too_long[2] = 1;  // longer than what follows
  const std::string impossible_shape("\x05\0\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0", 17);
  const std::string impossible_cycle("\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 17);
  for (const std::string& bad : {std::string(), std::string("\x05"), std::string("\x01\x03"), too_long,
                                 records_of({dir("")}), records_of({dir("a//b")}), records_of({dir("../a")}),
                                 records_of({file("a/")}), impossible_cycle, impossible_shape}) {
    std::string_view rest = bad;
    const auto record = take_record(rest);
    ASSERT_FALSE(record);
    EXPECT_EQ(record.error().code, Errc::journal_corrupt);
    EXPECT_EQ(rest, bad);
  }
}

TEST(JournalSegmentTest, SegmentHeader_IsReadBackOrRefused) {
  const auto take = [](std::string_view bytes) { return take_segment_header(bytes); };
  const std::string whole = encode_segment_header(header);
  const std::string bytes = whole + "frames";
  std::string_view rest = bytes;
  EXPECT_EQ(take_segment_header(rest).value(), header);
  EXPECT_EQ(rest, "frames");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    EXPECT_FALSE(take(flipped(whole, at))) << at;
    EXPECT_FALSE(take(whole.substr(0, at))) << at;
  }
  EXPECT_EQ(take(flipped(whole, 0, 2 ^ 3)).error().code, Errc::snapshot_unknown) << "a newer version";
  for (const SegmentHeader& bad : {SegmentHeader{{"c", "n"}, instance, 10, 11},
                                   SegmentHeader{{"c", "n"}, instance, journal_position_max + 1, 0},
                                   SegmentHeader{{"c", "n"}, {}, 0, 0}}) {
    EXPECT_FALSE(take(encode_segment_header(bad)));
  }
}

TEST(JournalSegmentTest, ConsecutiveFrames_AreReadWhole) {
  const Sample sample;
  const auto read = read_frames(header, sample.bytes);
  EXPECT_EQ(read.how, SegmentEnd::whole);
  ASSERT_EQ(read.frames.size(), 3U);
  EXPECT_EQ(read.frames[1].records, sample.two);
  EXPECT_EQ(read.frames[1].position, 1000 + sample.one.size());
  EXPECT_EQ(read.end, 1000 + sample.one.size() + sample.two.size() + sample.three.size());
  EXPECT_EQ(read_frames(header, zeros).how, SegmentEnd::whole);
  // The last byte of a frame shows only whether the write was complete.
  for (const char last : {'.', '\0', 'x'}) {
    std::string bytes = sample.bytes + zeros;
    bytes[sample.second - 1] = bytes[sample.bytes.size() - 1] = last;
    const auto with_zeros = read_frames(header, bytes);
    EXPECT_EQ(with_zeros.frames.size(), 3U);
    EXPECT_EQ(with_zeros.how, SegmentEnd::whole);
  }
  EXPECT_EQ(read_frames(header, sample.bytes.substr(0, sample.bytes.size() - 1)).frames.size(), 3U);
}

TEST(JournalSegmentTest, TruncatedLastFrame_IsATornEnd) {
  const Sample sample;
  for (std::size_t size = sample.third + 1; size + 1 < sample.bytes.size(); ++size) {
    for (const std::string& ahead : {std::string(), zeros}) {
      const auto read = read_frames(header, sample.bytes.substr(0, size) + ahead);
      EXPECT_EQ(read.frames.size(), 2U);
      EXPECT_EQ(read.how, SegmentEnd::torn) << size;
    }
  }
}

// A sector of an unfinished write can be there without those before it.
TEST(JournalSegmentTest, LastFrameWithoutItsFirstBytes_IsABrokenEnd) {
  const Sample sample;
  for (std::size_t missing = 1; sample.third + missing < sample.bytes.size(); ++missing) {
    std::string bytes = sample.bytes + zeros;
    bytes.replace(sample.third, missing, missing, '\0');
    const auto read = read_frames(header, bytes);
    EXPECT_EQ(read.frames.size(), 2U);
    EXPECT_EQ(read.how, SegmentEnd::broken) << missing;
  }
}

TEST(JournalSegmentTest, FlippedByteBeforeLastFrame_IsDamaged) {
  const Sample sample;
  for (std::size_t at = 0; at < sample.third; ++at) {
    const std::string bytes = flipped(sample.bytes, at);
    const auto read = read_frames(header, bytes);
    if (at + 1 == sample.second || at + 1 == sample.third) continue;  // the last byte of a frame
    EXPECT_EQ(read.frames.size(), at < sample.second ? 0U : 1U);
    EXPECT_EQ(read.how, SegmentEnd::damaged) << at;
  }
}

TEST(JournalSegmentTest, FlippedByteInLastFrame_IsABrokenEnd) {
  const Sample sample;
  for (std::size_t at = sample.third; at + 1 < sample.bytes.size(); ++at) {
    for (const int bit : {0x10, 0x20}) {
      const std::string bytes = flipped(sample.bytes, at, bit);
      EXPECT_EQ(read_frames(header, bytes).how, SegmentEnd::broken) << at;
      EXPECT_EQ(read_frames(header, bytes + zeros).how, SegmentEnd::broken) << at;
    }
  }
}

// The zeros behind it could pass for what is missing of it.
TEST(JournalSegmentTest, FlippedByteInFrameWhoseRecordsEndInZeros_IsABrokenEnd) {
  std::string records = records_of({dir("bucket/a"), tree("")});
  append_record(records, LevelRecord{{958'506, 4}});
  ASSERT_EQ(records.back(), '\0');
  const std::string bytes = flipped(encode_frame(instance, 1000, records) + zeros, 40);
  EXPECT_EQ(read_frames(header, bytes).how, SegmentEnd::broken);
}

TEST(JournalSegmentTest, DataBehindZeros_IsDamaged) {
  const Sample sample;
  const std::string two = sample.bytes.substr(0, sample.third);
  const std::string three = sample.bytes.substr(sample.third);
  EXPECT_EQ(read_frames(header, two + zeros + three).how, SegmentEnd::damaged);
  EXPECT_EQ(read_frames(header, two + three.substr(0, 33) + zeros + "x").how, SegmentEnd::damaged);
  // The header of a frame whose last byte is zero.
  std::string four;
  for (JournalPosition position = 0; four.empty() || four[31] != '\0'; ++position) {
    four = encode_frame(instance, position, "").substr(0, 32);
  }
  EXPECT_EQ(read_frames(header, two + zeros + four).how, SegmentEnd::damaged);
}

// One bad sector across two frames: that there was a second one shows that the first was done.
TEST(JournalSegmentTest, TwoAdjacentBadFramesOrAMissingOne_AreDamaged) {
  const Sample sample;
  const std::string two_bad = flipped(flipped(sample.bytes, sample.third - 2), sample.third + 5);
  EXPECT_EQ(read_frames(header, two_bad).how, SegmentEnd::damaged);
  const std::string without_second =
      sample.bytes.substr(0, sample.second) + sample.bytes.substr(sample.third);
  const auto read = read_frames(header, without_second);
  EXPECT_EQ(read.frames.size(), 1U);
  EXPECT_EQ(read.how, SegmentEnd::damaged);
}

TEST(JournalSegmentTest, FramesOfAnotherInstance_AreIgnored) {
  const Sample sample;
  SegmentHeader other = header;
  other.instance = instance_of(5);
  EXPECT_TRUE(read_frames(other, sample.bytes).frames.empty());
  EXPECT_FALSE(holds_frame(instance_of(5), sample.bytes));
  EXPECT_TRUE(holds_frame(instance, "x" + sample.bytes));
}

// A marked path can hold any bytes but NUL; what looks like a frame must not pass for one.
TEST(JournalSegmentTest, TruncatedFrameHoldingFrameBytes_IsTorn) {
  const std::string other = encode_frame(instance_of(5), 7, "records");
  const std::string frame = encode_frame(instance, 1000, "SPJF" + other + other);
  const auto read = read_frames(header, std::string_view(frame).substr(0, frame.size() - 2));
  EXPECT_EQ(read.how, SegmentEnd::torn);
}

}  // namespace
}  // namespace spoor::tracker
