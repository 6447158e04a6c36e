#include "tracker/storage/journal.h"

#include <gtest/gtest.h>

#include "tests/fakes/memory_file_system.h"
#include "tests/tracker/samples.h"

namespace spoor::tracker {
namespace {

const NodeIdentity owner{"cluster", "node"};

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    files_.make_directory("/data");
    EXPECT_TRUE(journal_.begin({owner, instance_of(1), 1000, 1000}));
  }

  // The size of all segments, without the zeros behind the last frame.
  std::uint64_t bytes_on_disk() {
    std::uint64_t bytes = 0;
    for (const auto& segment : load_journal(files_, "/data", owner, instance_of(1)).segments) {
      bytes += segment.bytes->find_last_not_of('\0') + 1;
    }
    return bytes;
  }

  // Ten bytes of records in a segment of their own, so often.
  void fill(int segments) {
    for (int i = 0; i < segments; ++i) {
      ASSERT_TRUE(journal_.append("0123456789"));
      ASSERT_TRUE(journal_.rotate());
    }
  }

  std::vector<JournalPosition> starts() {
    std::vector<JournalPosition> found;
    for (const auto& segment : load_journal(files_, "/data", owner, instance_of(1)).segments) {
      found.push_back(segment.start);
    }
    return found;
  }

  using Starts = std::vector<JournalPosition>;

  const std::string file_ = "/data/journal/00000000000000001000-" + instance_of(1).to_string() + ".log";
  fakes::MemoryFileSystem files_;
  Journal journal_{files_, "/data", true};
};

TEST_F(JournalTest, SyncedAppend_RarelyLengthensFile) {
  const std::string records(1000, 'r');
  const std::size_t appends = 1000;
  std::size_t lengthened = 0;
  std::size_t size = 0;
  for (std::size_t i = 1; i <= appends; ++i) {
    ASSERT_TRUE(journal_.append(records));
    const std::size_t longer = files_.content(file_)->size();
    if (longer != size) ++lengthened;
    size = longer;
    ASSERT_LE(size, std::max(2 * journal_.bytes(), journal_.bytes() + (16U << 10U)));
  }
  EXPECT_LT(lengthened, appends / 50);
  EXPECT_LE(size, journal_.bytes() + (256U << 10U));
  const auto segment = std::move(load_journal(files_, "/data", owner, instance_of(1)).segments.at(0));
  EXPECT_EQ(segment.frames.frames.size(), appends);
  EXPECT_EQ(segment.frames.how, SegmentEnd::whole);
}

TEST_F(JournalTest, UnsyncedAppend_WritesNoZeros) {
  Journal journal(files_, "/data", false);
  ASSERT_TRUE(journal.begin({owner, instance_of(1), 1000, 1000}));
  ASSERT_TRUE(journal.append("0123456789"));
  EXPECT_EQ(files_.content(file_)->size(), journal.bytes());
}

// Each sync is of one frame: whatever of it a power cut leaves, those before it are there.
TEST_F(JournalTest, PowerCutDuringAppend_LosesNoEarlierFrame) {
  using Fate = fakes::MemoryFileSystem::Fate;
  for (const std::size_t earlier : {0U, 1U, 3U}) {
    for (const Fate fate : {Fate::lost, Fate::torn, Fate::reordered, Fate::kept}) {
      fakes::MemoryFileSystem files;
      files.make_directory("/data");
      Journal journal(files, "/data", true);
      ASSERT_TRUE(journal.begin({owner, instance_of(1), 1000, 1000}));
      for (std::size_t i = 0; i < earlier; ++i) ASSERT_TRUE(journal.append("0123456789"));
      files.stop_at_call(2);  // the sync
      ASSERT_FALSE(journal.append(std::string(100, 'r')));
      files.crash(fate);
      const auto frames = load_journal(files, "/data", owner, instance_of(1)).segments.at(0).frames;
      EXPECT_EQ(frames.frames.size(), earlier + (fate == Fate::kept ? 1 : 0));
      EXPECT_NE(frames.how, SegmentEnd::damaged);
    }
  }
}

// What a process left behind that was killed before it could sync.
TEST_F(JournalTest, AdoptedSegment_SurvivesPowerCut) {
  const auto file =
      files_.create("/data/journal/00000000000000002000-" + instance_of(1).to_string() + ".log").value();
  ASSERT_TRUE(file->append(encode_segment_header({owner, instance_of(1), 2000, 2000})));
  Journal next(files_, "/data", true);
  next.adopt(load_journal(files_, "/data", owner, instance_of(1)));
  ASSERT_TRUE(next.sync_adopted());
  files_.crash();
  EXPECT_EQ(starts(), (Starts{1000, 2000}));
}

TEST_F(JournalTest, Cut_RemovesOnlyCoveredSegments) {
  fill(3);
  ASSERT_TRUE(journal_.rotate()) << "not of an empty segment";
  EXPECT_EQ(starts(), (Starts{1000, 1010, 1020, 1030}));
  EXPECT_EQ(journal_.bytes(), bytes_on_disk());
  journal_.cut(1009);
  EXPECT_EQ(starts(), (Starts{1000, 1010, 1020, 1030})) << "a record before 1010 is not covered";
  journal_.cut(1010);
  EXPECT_EQ(starts(), (Starts{1010, 1020, 1030}));
  journal_.cut(1025);
  EXPECT_EQ(starts(), (Starts{1020, 1030}));
  EXPECT_EQ(journal_.bytes(), bytes_on_disk());
  journal_.cut(5000);
  EXPECT_EQ(starts(), (Starts{1030})) << "the one that is written to stays";
}

TEST_F(JournalTest, SegmentRemovalFails_NextCutRetries) {
  fill(2);
  files_.fail_call(1, EIO);
  journal_.cut(1020);
  EXPECT_EQ(starts(), (Starts{1000, 1020}));
  journal_.cut(1020);
  EXPECT_EQ(starts(), (Starts{1020}));
}

TEST_F(JournalTest, FailedWrite_RefusesAppendsUntilNextBegin) {
  files_.fail_call(2, EIO);  // the sync
  EXPECT_FALSE(journal_.append("0123456789"));
  EXPECT_FALSE(journal_.append("0123456789"));
  EXPECT_FALSE(journal_.rotate());
  ASSERT_TRUE(journal_.begin({owner, instance_of(1), 2000, 2000}));
  EXPECT_TRUE(journal_.append("0123456789"));
}

TEST_F(JournalTest, SegmentsOfAnotherNode_AreNotRead) {
  ASSERT_TRUE(journal_.append("0123456789"));
  const auto journal = load_journal(files_, "/data", {"cluster", "other"}, instance_of(1));
  ASSERT_EQ(journal.segments.size(), 1U);
  EXPECT_FALSE(journal.segments[0].header);
  EXPECT_FALSE(journal.segments[0].error.empty());
  EXPECT_TRUE(load_journal(files_, "/data", owner, instance_of(2)).segments.empty());
}

TEST_F(JournalTest, RemoveLeftovers_RemovesOnlySegmentsOfOtherInstances) {
  files_.put("/data/journal/notes.txt", "of the operator");
  Journal next(files_, "/data", true);
  ASSERT_TRUE(next.begin({owner, instance_of(2), 0, 0}));
  EXPECT_TRUE(next.remove_leftovers().empty());
  EXPECT_TRUE(starts().empty());
  EXPECT_EQ(files_.names_in("/data/journal").size(), 2U);
  EXPECT_TRUE(files_.exists("/data/journal/notes.txt"));
}

}  // namespace
}  // namespace spoor::tracker
