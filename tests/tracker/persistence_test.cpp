// What an acknowledgement is worth, and what becomes of it when disks fail and files are damaged.
#include "tracker/storage/persistence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/support/sanitizer.h"
#include "tests/tracker/node.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

using fakes::MemoryFileSystem;
using ::testing::HasSubstr;

class PersistenceTest : public ::testing::Test {
 protected:
  PersistenceTest() { make_directories(files_); }

  Node start(Durability durability = Durability::disk, const std::string& boot_id = "this boot") {
    auto options = node_options(durability);
    options.boot_id = boot_id;
    return {files_, clock_, options};
  }

  // The files of the journal, oldest first.
  std::vector<std::filesystem::path> segments() const {
    std::vector<std::filesystem::path> found;
    for (const std::string& name : files_.names_in("/data/journal")) {
      if (name.ends_with(".log")) found.push_back("/data/journal/" + name);
    }
    return found;
  }

  void flip(const std::filesystem::path& file, std::size_t at) {
    std::string bytes = files_.content(file).value();
    bytes[at] = static_cast<char>(bytes[at] ^ 0x20);
    files_.put(file, bytes);
  }

  MemoryFileSystem files_;
  fakes::ManualClock clock_;
};

TEST_F(PersistenceTest, AcknowledgedMark_SurvivesPowerCut) {
  Node(start()).mark_durably(dir("bucket/a"));
  files_.crash();
  Node node = start(Durability::disk, "another boot");
  EXPECT_EQ(node.loss(), "");
  EXPECT_TRUE(node.is_dirty("bucket/a"));
  EXPECT_FALSE(node.is_dirty("bucket/b"));
}

// The mark that adds nothing would be acknowledged at once, and lost with the one it relies on.
TEST_F(PersistenceTest, DuplicateOfPendingMark_WaitsForItsCommit) {
  Node node = start();
  const std::vector<Mark> marks{dir("bucket/a")};
  node.tracker().mark(marks);
  const MarkOutcome again = node.tracker().mark(marks);
  EXPECT_EQ(again.added, 0U);
  EXPECT_GT(again.position, node.persistence().durable_position());
  ASSERT_TRUE(node.persistence().commit());
  EXPECT_LE(again.position, node.persistence().durable_position());
}

TEST_F(PersistenceTest, DuplicateOfDurableMark_NeedsNoCommit) {
  Node node = start();
  ASSERT_TRUE(node.mark_durably(dir("bucket/a")));
  const std::size_t calls = files_.calls();
  EXPECT_TRUE(node.mark_durably(dir("bucket/a")));
  EXPECT_EQ(files_.calls(), calls);
}

TEST_F(PersistenceTest, PendingMarks_AreWrittenInOneGroupCommit) {
  Node node = start();
  const std::size_t calls = files_.calls();
  for (int i = 0; i < 100; ++i) mark(node.tracker(), {dir("bucket/" + std::to_string(i))});
  ASSERT_TRUE(node.persistence().commit());
  EXPECT_EQ(files_.calls() - calls, 2U) << "one write, one sync";
}

// A scanner has the cycle's number as its cursor: if it went back, marks made in between were missed.
TEST_F(PersistenceTest, Advance_SurvivesPowerCut) {
  {
    Node node = start();
    node.tracker().advance({7});
    ASSERT_TRUE(node.persistence().commit());
  }
  files_.crash();
  EXPECT_EQ(start(Durability::disk, "another boot").tracker().state().current, CycleId{7});
}

TEST_F(PersistenceTest, DurabilityOs_KeepsMarksAfterKillAndHasGapAfterReboot) {
  InstanceId instance;
  {
    Node node = start(Durability::os);
    instance = node.instance();
    EXPECT_TRUE(node.mark_durably(dir("bucket/a")));
  }
  {
    Node node = start(Durability::os);
    EXPECT_EQ(node.loss(), "");
    EXPECT_EQ(node.instance(), instance);
    EXPECT_TRUE(node.is_dirty("bucket/a"));
  }
  Node node = start(Durability::os, "another boot");
  EXPECT_THAT(node.loss(), HasSubstr("durability was 'os'"));
  EXPECT_TRUE(node.is_dirty("anything"));
}

// What counts is how the run that crashed kept its marks, not how the next one will.
TEST_F(PersistenceTest, DurabilityOfLastRun_DecidesIfCrashIsALoss) {
  {
    Node node = start(Durability::memory);
  }
  EXPECT_NE(start(Durability::disk).loss(), "");
  {
    Node node = start(Durability::disk);
  }
  EXPECT_EQ(start(Durability::memory).loss(), "");
}

TEST_F(PersistenceTest, Save_FreesJournalSegments) {
  Node node = start();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(node.mark_durably(dir("bucket/" + std::to_string(i))));
    ASSERT_TRUE(node.save().durable());
    EXPECT_EQ(segments().size(), 1U);
  }
}

TEST_F(PersistenceTest, NoDriveTakesSnapshot_JournalKeepsAllMarks) {
  {
    Node node = start();
    for (const auto& drive : node_drives) files_.fail_below(drive, EIO);
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(node.mark_durably(dir("bucket/" + std::to_string(i))));
      EXPECT_FALSE(node.save().durable());
    }
    EXPECT_LE(segments().size(), 3U) << "not one for each failed save";
  }
  files_.crash();  // the drives are back as well
  Node node = start(Durability::disk, "another boot");
  EXPECT_EQ(node.loss(), "");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(node.is_dirty("bucket/" + std::to_string(i)));
}

TEST_F(PersistenceTest, JournalAtBound_RefusesUntilSnapshotFreesIt) {
  auto options = node_options(Durability::disk);
  options.journal_bytes_max = 1000;
  Node node(files_, clock_, options);
  for (const auto& drive : node_drives) files_.fill(drive);
  int marked = 0;
  while (node.mark_durably(dir("bucket/" + std::to_string(marked)))) ASSERT_LT(++marked, 1000);
  EXPECT_THAT(node.persistence().journal_status().error, HasSubstr("until a drive takes a snapshot"));
  EXPECT_FALSE(node.save().durable());
  EXPECT_FALSE(node.mark_durably(dir("bucket/x")));
  for (const auto& drive : node_drives) files_.heal(drive);
  EXPECT_TRUE(node.save().durable());
  EXPECT_TRUE(node.mark_durably(dir("bucket/x")));
  EXPECT_EQ(node.persistence().journal_status().error, "");
}

// At every call of a small life, once with each error: whatever was acknowledged is there after a power
// cut, or covered by a gap; and once the disk is well again, marks are acknowledged again without a
// restart.
TEST_F(PersistenceTest, FailedCall_NeverLosesAcknowledgedMarks) {
  const auto live = [](MemoryFileSystem& files, fakes::ManualClock& clock, std::size_t failing, int error,
                       std::vector<std::string>& acknowledged, bool& is_over) {
    Node node(files, clock, node_options(Durability::disk));
    files.reset_calls();
    if (failing != 0) files.fail_call(failing, error);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 3; ++i) {
        const std::string path = "bucket/" + std::to_string(round) + "/" + std::to_string(i);
        if (node.mark_durably(dir(path))) acknowledged.push_back(path);
      }
      node.tracker().advance({static_cast<std::uint64_t>(round) + 2});
      node.save();
    }
    is_over = files.calls() < failing;
    node.save();  // the next attempt, as the daemon makes it
    EXPECT_EQ(node.persistence().journal_status().error, "");
    EXPECT_TRUE(node.mark_durably(dir("bucket/after"))) << "call " << failing << " failed";
    acknowledged.emplace_back("bucket/after");
  };
  std::size_t points = 0;
  for (const int error : {EIO, ENOSPC}) {
    bool is_over = false;
    for (std::size_t failing = 1; !is_over; ++failing) {
      MemoryFileSystem files;
      make_directories(files);
      std::vector<std::string> acknowledged;
      live(files, clock_, failing, error, acknowledged, is_over);
      files.crash();
      auto options = node_options(Durability::disk);
      options.boot_id = "another boot";
      Node node(files, clock_, options);
      EXPECT_EQ(node.loss(), "") << "call " << failing;
      for (const std::string& path : acknowledged)
        EXPECT_TRUE(node.is_dirty(path)) << path << ", call " << failing;
      ++points;
    }
  }
  std::cout << "[ POINTS   ] " << points << " failed calls" << std::endl;
  EXPECT_GT(points, 100U);
}

TEST_F(PersistenceTest, FullDataDirectory_RefusesMarksUntilSpaceReturns) {
  Node node = start();
  ASSERT_TRUE(node.save().durable());
  ASSERT_TRUE(node.mark_durably(dir("bucket/before")));
  files_.fill("/data");
  EXPECT_FALSE(node.mark_durably(dir("bucket/refused")));
  EXPECT_THAT(node.persistence().journal_status().error, HasSubstr("No space"));
  EXPECT_FALSE(node.mark_durably(dir("bucket/refused too")));
  EXPECT_TRUE(node.is_dirty("bucket/refused")) << "marked in memory all the same";
  EXPECT_TRUE(node.save().durable());
  // On one drive only, while the journal tells nobody of the hole: with that drive gone, it was lost.
  EXPECT_FALSE(node.mark_durably(dir("bucket/refused")));
  EXPECT_FALSE(node.mark_durably(dir("bucket/still refused")));
  files_.heal("/data");
  EXPECT_TRUE(node.save().durable());
  EXPECT_TRUE(node.mark_durably(dir("bucket/after")));
  EXPECT_EQ(node.persistence().journal_status().failures, 2U) << "the second when it was begun anew";
  files_.crash();
  Node next = start(Durability::disk, "another boot");
  EXPECT_EQ(next.loss(), "");
  for (const char* path : {"bucket/before", "bucket/refused", "bucket/after"})
    EXPECT_TRUE(next.is_dirty(path));
}

TEST_F(PersistenceTest, FlippedByteInJournal_IsALoss) {
  {
    Node node = start();
    for (int i = 0; i < 4; ++i) node.mark_durably(dir("bucket/" + std::to_string(i)));
  }
  const auto file = segments().at(0);
  const std::string whole = files_.content(file).value();
  const std::size_t written = whole.find_last_not_of('\0') + 1;  // the rest is written ahead
  for (std::size_t at = 0; at < written; ++at) {
    // The last byte of a frame, which is read whatever it is.
    if (at + 1 == written || whole.substr(at + 1).starts_with("SPJF")) continue;
    const auto files = files_.clone();
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x20);
    files->put(file, bytes);
    Node node(*files, clock_, node_options(Durability::disk));
    // The same boot: nothing was cut off by the power, so that other bytes are damage wherever they are.
    EXPECT_NE(node.loss(), "") << at;
    EXPECT_TRUE(node.is_dirty("anything")) << at;
    EXPECT_TRUE(node.mark_durably(dir("bucket/after"))) << at;
  }
}

TEST_F(PersistenceTest, TruncatedJournal_IsALossOnlyWithoutHeader) {
  {
    Node node = start();
    for (int i = 0; i < 2; ++i) node.mark_durably(dir("bucket/" + std::to_string(i)));
  }
  const auto file = segments().at(0);
  const std::string whole = files_.content(file).value();
  const std::size_t written = whole.find_last_not_of('\0') + 1;
  for (std::size_t size = 0; size <= written; ++size) {
    const auto files = files_.clone();
    files->put(file, whole.substr(0, size));
    Node node(*files, clock_, node_options(Durability::disk));
    const bool has_header = size >= whole.find("SPJF");
    EXPECT_EQ(node.loss().empty(), has_header) << size << ": it can't be told from an unfinished write";
    EXPECT_TRUE(node.mark_durably(dir("bucket/after"))) << size;
  }
}

TEST_F(PersistenceTest, RemovedJournal_IsALoss) {
  {
    Node node = start();
    node.mark_durably(dir("bucket/a"));
  }
  ASSERT_TRUE(files_.remove(segments().at(0)));
  EXPECT_THAT(start().loss(), HasSubstr("there is no journal"));
}

TEST_F(PersistenceTest, UnreadableJournal_IsALoss) {
  {
    Node node = start();
    node.mark_durably(dir("bucket/a"));
  }
  files_.fail_below(segments().at(0), EIO);
  Node node = start();
  EXPECT_THAT(node.loss(), HasSubstr("Input/output error"));
  EXPECT_TRUE(node.is_dirty("bucket/a"));
}

TEST_F(PersistenceTest, ShortRead_KeepsMarksOrIsALoss) {
  {
    Node node = start();
    node.mark_durably(dir("bucket/a"));
    node.save();
    node.mark_durably(dir("bucket/b"));
  }
  const auto count = files_.clone();
  count->reset_calls();
  {
    Node node(*count, clock_, node_options(Durability::disk));
  }
  for (std::size_t call = 1; call <= count->calls(); ++call) {
    const auto files = files_.clone();
    files->shorten_call(call);
    Node node(*files, clock_, node_options(Durability::disk));
    EXPECT_TRUE(node.is_dirty("bucket/a")) << call;
    // Half of the last frame can't be told from a write that was not finished.
    if (node.loss().empty()) continue;
    EXPECT_TRUE(node.is_dirty("anything")) << call;
  }
}

TEST_F(PersistenceTest, SegmentOfNewerVersion_IsKeptAside) {
  {
    Node node = start();
    node.mark_durably(dir("bucket/a"));
  }
  const auto file = segments().at(0);
  std::string bytes = files_.content(file).value();
  bytes[0] = 9;
  files_.put(file, bytes);
  Node node = start();
  EXPECT_THAT(node.loss(), HasSubstr("version 9"));
  EXPECT_EQ(files_.content("/data/journal/aside.v9"), bytes);
}

TEST_F(PersistenceTest, DamagedSegment_IsKeptAside) {
  {
    Node node = start();
    node.mark_durably(dir("bucket/a"));
    node.mark_durably(dir("bucket/b"));
  }
  flip(segments().at(0), files_.content(segments().at(0))->find("bucket/a"));
  Node node = start();
  EXPECT_THAT(node.loss(), HasSubstr("is damaged"));
  EXPECT_TRUE(files_.exists("/data/journal/aside.corrupt"));
  ASSERT_EQ(segments().size(), 1U) << "only the new instance's";
}

// A drive that was away while the journal failed holds a snapshot that got ahead of it; the positions
// behind the journal's end must not have been given to other marks since.
TEST_F(PersistenceTest, SnapshotAheadOfJournalOnReturnedDrive_KeepsLaterMarks) {
  {
    Node node = start();
    ASSERT_TRUE(node.mark_durably(dir("bucket/a")));
    ASSERT_TRUE(node.save().durable());
    ASSERT_TRUE(node.mark_durably(dir("bucket/b")));
    files_.fail_below(node_drives[0], EIO);
    files_.fail_below("/data/journal", EIO);
    for (int i = 0; i < 50; ++i) EXPECT_FALSE(node.mark_durably(dir("bucket/never/" + std::to_string(i))));
    ASSERT_TRUE(node.save().drives[1].ok) << "it is ahead of the journal";
    EXPECT_FALSE(node.mark_durably(dir("bucket/never/49"))) << "and the only one that holds this";
  }
  files_.crash();
  files_.fail_below(node_drives[1], EIO);
  InstanceId instance;
  {
    Node node = start(Durability::disk, "another boot");
    instance = node.instance();
    ASSERT_TRUE(node.mark_durably(dir("bucket/c")));
    files_.fail_below(node_drives[0], EIO);  // no later snapshot
  }
  files_.crash();
  Node node = start(Durability::disk, "a third boot");
  EXPECT_TRUE(node.is_dirty("bucket/b"));
  EXPECT_TRUE(node.is_dirty("bucket/c"));
  EXPECT_EQ(node.loss().empty(), node.instance() == instance);
}

TEST_F(PersistenceTest, FailedStart_ChangesNothing) {
  {
    start().stop();
  }
  const auto before = files_.names_in("/data/journal");
  for (std::size_t call = 1; call < 40; ++call) {
    files_.reset_calls();
    files_.fail_call(call, ENOSPC);
    static_cast<void>(Persistence::start(files_, clock_, node_options(Durability::disk)));
    files_.kill();
    Node node = start();
    EXPECT_EQ(node.loss(), "") << call;
    node.stop();
    EXPECT_EQ(files_.names_in("/data/journal").size(), before.size()) << "no litter, call " << call;
  }
}

// A start after a loss that fails at any call, and the one after it: never without a gap, nor with the
// numbers of a birth in the instance that scanners may have met.
TEST_F(PersistenceTest, FailedStartAfterLoss_IsNotABirth) {
  {
    Node node = start(Durability::memory);
    node.tracker().advance({7});
    ASSERT_TRUE(node.save().durable());
  }
  for (std::size_t call = 1; call < 40; ++call) {
    const auto files = files_.clone();
    files->fail_call(call, ENOSPC);
    const auto first = Persistence::start(*files, clock_, node_options(Durability::disk));
    files->kill();
    for (const auto& drive : node_drives) files->fail_below(drive, EIO);  // only the journal is left
    Node node(*files, clock_, node_options(Durability::disk));
    EXPECT_TRUE(node.is_dirty("anything")) << call;
    const bool same = first && (*first)->tracker().state().instance == node.instance();
    EXPECT_TRUE(!same || node.tracker().state().current >= (*first)->tracker().state().current) << call;
    EXPECT_FALSE(node.tracker().state().complete_since_birth) << call;
  }
}

TEST_F(PersistenceTest, SegmentWithoutHeader_IsALoss) {
  {
    Node node = start();
    node.mark_durably(dir("bucket/a"));
  }
  const auto file = segments().at(0);
  const std::size_t size = files_.content(file)->size();
  for (const std::string& bytes : {std::string(), std::string(size, '\0'), std::string(10, '\0')}) {
    const auto files = files_.clone();
    files->put(file, bytes);
    Node node(*files, clock_, node_options(Durability::disk));
    EXPECT_NE(node.loss(), "");
    EXPECT_TRUE(node.is_dirty("bucket/a"));
  }
}

// What a killed process had written, but not synced, is taken over by the next run; the power may go then.
TEST_F(PersistenceTest, UnsyncedJournalOfKilledProcess_IsSyncedByNextRun) {
  {
    Node node = start();
    ASSERT_TRUE(node.save().durable());
    mark(node.tracker(), {dir("bucket/a")});
    files_.reset_calls();
    files_.fail_call(2, EIO);  // the sync; the write was done
    EXPECT_FALSE(node.persistence().commit());
  }
  files_.kill();
  InstanceId instance;
  {
    Node node = start();
    instance = node.instance();
    EXPECT_TRUE(node.mark_durably(dir("bucket/a"))) << "it is known, and acknowledged at once";
    files_.crash();
  }
  Node node = start(Durability::disk, "another boot");
  EXPECT_EQ(node.loss(), "");
  EXPECT_EQ(node.instance(), instance);
  EXPECT_TRUE(node.is_dirty("bucket/a"));
}

// The next start does not read the journal.
TEST_F(PersistenceTest, MarkAfterRecordedStop_IsNotAcknowledged) {
  Node node = start();
  node.stop();
  EXPECT_FALSE(node.mark_durably(dir("bucket/a")));
}

// Two drives away by turns give the same generation twice; the one of the clean stop is not told by it.
TEST_F(PersistenceTest, OtherSnapshotOfCleanStopGeneration_LosesNoMarks) {
  {
    Node node = start();
    node.save();
    node.stop();
  }
  std::uint64_t generation = 0;
  files_.fail_below(node_drives[1], EIO);
  {
    Node node = start();
    node.save();
    node.save();
    generation = node.save().generation;
    ASSERT_TRUE(node.mark_durably(dir("bucket/journaled")));
  }
  files_.kill();
  files_.fail_below(node_drives[0], EIO);
  {
    Node node = start();
    ASSERT_TRUE(node.mark_durably(dir("bucket/later")));
    while (node.persistence().stop().value().generation < generation) {
    }
  }
  files_.kill();
  files_.fail_below(node_drives[1], EIO);
  Node node = start();
  EXPECT_TRUE(node.is_dirty("bucket/journaled"));
  EXPECT_TRUE(node.is_dirty("bucket/later"));
}

TEST_F(PersistenceTest, InstanceBornWithoutJournal_KeepsCycleAndGap) {
  {
    Node node = start(Durability::memory);
  }
  CycleId born;
  {
    Node node = start(Durability::memory);
    EXPECT_NE(node.loss(), "");
    born = node.tracker().state().current;
    node.stop();
  }
  {
    Node node = start(Durability::disk);
    ASSERT_TRUE(node.mark_durably(dir("bucket/a")));
  }
  for (const auto& drive : node_drives) static_cast<void>(files_.remove(snapshot_file(drive)));
  Node node = start(Durability::disk);
  EXPECT_GE(node.tracker().state().current, born);
  EXPECT_TRUE(node.is_dirty("anything")) << "its gap is still there";
}

// The first run with a journal, behind a clean stop of one without: no segment reaches back that far.
TEST_F(PersistenceTest, CrashBeforeFirstSaveOfFirstJournal_KeepsMarks) {
  InstanceId instance;
  {
    Node node = start(Durability::memory);
    instance = node.instance();
    mark(node.tracker(), {dir("bucket/a")});
    node.stop();
  }
  {
    Node node = start(Durability::disk);
    ASSERT_TRUE(node.mark_durably(dir("bucket/b")));
  }
  files_.crash();
  Node node = start(Durability::disk, "another boot");
  EXPECT_EQ(node.loss(), "");
  EXPECT_EQ(node.instance(), instance);
  EXPECT_TRUE(node.is_dirty("bucket/a"));
  EXPECT_TRUE(node.is_dirty("bucket/b"));
}

TEST_F(PersistenceTest, FailedJournal_LeavesNoExtraSegments) {
  Node node = start();
  ASSERT_TRUE(node.save().durable());
  files_.fill("/data");
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(node.mark_durably(dir("bucket/" + std::to_string(i))));
    node.save();
  }
  EXPECT_LE(segments().size(), 2U);
}

// Marking goes on while the snapshot is written that mends the journal.
TEST_F(PersistenceTest, MarkDuringSaveThatRetriesJournal_IsInNewJournal) {
  {
    Node node = start();
    ASSERT_TRUE(node.save().durable());
    files_.fill("/data");
    EXPECT_FALSE(node.mark_durably(dir("bucket/refused")));
    files_.heal("/data");
    files_.before_create = [&](const std::filesystem::path& file) {
      if (file.filename() == ".tracker.bin.tmp") mark(node.tracker(), {dir("bucket/meanwhile")});
    };
    EXPECT_TRUE(node.save().durable());
    files_.before_create = nullptr;
    EXPECT_TRUE(node.mark_durably(dir("bucket/meanwhile")));
    EXPECT_TRUE(node.mark_durably(dir("bucket/refused")));
  }
  files_.crash();
  Node node = start(Durability::disk, "another boot");
  EXPECT_EQ(node.loss(), "");
  for (const char* path : {"bucket/refused", "bucket/meanwhile"}) EXPECT_TRUE(node.is_dirty(path)) << path;
}

// A drive hung during a save, and wrote only after the next one.
TEST_F(PersistenceTest, LateWriteOfAnOlderSnapshot_IsHarmlessAndNoSubstituteForTheNewer) {
  {
    Node node = start();
    const auto save_to_one = [&](const PreparedSnapshot& snapshot) {
      auto saved = snapshot.on_no_drive();
      saved.add(node.persistence().save_to(0, snapshot));
      saved.add({node.persistence().drives().failed_state(1, "hangs")});
      node.persistence().finish_save(saved, snapshot.position);
    };
    ASSERT_TRUE(node.save().durable());
    ASSERT_TRUE(node.mark_durably(dir("bucket/a")));
    const auto older = node.persistence().begin_save();
    save_to_one(*older);
    ASSERT_TRUE(node.mark_durably(dir("bucket/b")));
    save_to_one(*node.persistence().begin_save());
    ASSERT_TRUE(node.mark_durably(dir("bucket/c")));
    ASSERT_TRUE(node.persistence().save_to(1, *older).state.ok);
  }
  const auto lost = files_.clone();
  lost->fail_below(node_drives[0], EIO);
  Node without = {*lost, clock_, node_options(Durability::disk)};
  EXPECT_THAT(without.loss(), HasSubstr("journal"));
  EXPECT_TRUE(without.is_dirty("bucket/b"));
  EXPECT_TRUE(without.is_dirty("bucket/never marked")) << "a gap";

  files_.crash();
  Node node = start(Durability::disk, "another boot");
  EXPECT_EQ(node.loss(), "");
  for (const char* path : {"bucket/a", "bucket/b", "bucket/c"}) EXPECT_TRUE(node.is_dirty(path)) << path;
  EXPECT_FALSE(node.is_dirty("bucket/never marked"));
}

// While the disk hangs nobody takes what is recorded.
TEST_F(PersistenceTest, PendingRecordsBeyondBound_AreRefusedUntilSave) {
  auto options = node_options(Durability::disk);
  options.tracker.levels = LevelSchedule(400'000, 0.01);
  Node node(files_, clock_, options);
  // Few marks of long records.
  std::string above;
  for (int level = 0; level < 15; ++level) above += std::string(250, 'x') + '/';
  for (int i = 0; i < 22'000; ++i) mark(node.tracker(), {dir(above + std::to_string(i))});
  ASSERT_FALSE(node.persistence().commit()) << "nobody may believe that they are kept";
  EXPECT_TRUE(node.save().durable());
  EXPECT_TRUE(node.mark_durably(dir("bucket/after")));
}

// One that adds nothing by a false positive has no record: a replay has to set the very same bits.
TEST_F(PersistenceTest, FalsePositiveMarksInGrownCycle_SurviveCrash) {
  auto options = node_options(Durability::disk);
  options.tracker.levels = LevelSchedule(1000, 0.5);
  constexpr int count = 4000;  // not so many that a replay into filters too small would know everything
  std::size_t known = 0;
  {
    Node node(files_, clock_, options);
    CycleRequest request = read_all(node.tracker());
    request.current = {2};
    request.start_level = 1;
    node.tracker().cycle(request);
    node.save();
    for (int number = 0; number < count; ++number) {
      if (mark(node.tracker(), {dir(std::to_string(number))}).added == 0) ++known;
    }
    ASSERT_TRUE(node.persistence().commit());
    EXPECT_GT(node.tracker().status().cycles.front().levels, 1U);
  }
  EXPECT_GT(known, 20U);
  files_.crash();
  options.tracker.levels =
      LevelSchedule(1500, 0.4);  // not even a change of the configuration makes a difference
  Node node(files_, clock_, options);
  EXPECT_EQ(node.loss(), "");
  for (int number = 0; number < count; ++number) ASSERT_TRUE(node.is_dirty(std::to_string(number))) << number;
}

// It would be acknowledged without a record, and gone with the one drive that has the snapshot.
TEST_F(PersistenceTest, SnapshotDuringMarks_HoldsOnlyJournaledMarks) {
  auto options = node_options(Durability::disk);
  options.tracker.levels = LevelSchedule(100'000, 1e-9);
  Node node(files_, clock_, options);
  constexpr std::size_t count = support::is_sanitized ? 10'000 : 50'000;
  std::vector<JournalPosition> positions;
  positions.reserve(count);
  std::atomic<bool> is_over = false;
  std::jthread marker([&] {
    for (std::size_t number = 0; number < count; ++number) {
      positions.push_back(mark(node.tracker(), {dir(std::to_string(number))}).position);
    }
    is_over = true;
  });
  std::vector<std::pair<Snapshot, JournalPosition>> saves;
  while (!is_over) {
    ASSERT_TRUE(node.save().durable());
    saves.emplace_back(decode_snapshot(files_.content(snapshot_file(node_drives[0])).value()).value(),
                       node.persistence().durable_position());
  }
  marker.join();
  for (const auto& [snapshot, durable] : saves) {
    const auto behind = std::upper_bound(positions.begin(), positions.end(), durable);
    for (auto position = behind; position != positions.end() && position - behind < 1000; ++position) {
      ASSERT_FALSE(contains(*snapshot.state.current_marks, std::to_string(position - positions.begin())));
    }
  }
}

// The same at the two moments at which a mark could slip in: while the save's first commit opens a segment,
// before the state is copied; and while the second one writes, when the copy is made.
TEST_F(PersistenceTest, MarksDuringSave_AreDurableBeforeTheSnapshot) {
  Node node = start();
  ASSERT_TRUE(node.mark_durably(dir("bucket/before")));
  std::vector<std::pair<std::string, JournalPosition>> marked;
  const auto mark_now = [&](const std::string& path) {
    marked.emplace_back(path, mark(node.tracker(), {dir(path)}).position);
  };
  JournalPosition durable = 0;
  files_.before_create = [&](const std::filesystem::path& file) {
    if (file.extension() == ".log") mark_now("bucket/after the first commit");
    if (file == snapshot_file(node_drives[0]).native() + ".tmp")
      durable = node.persistence().durable_position();
  };
  files_.before_append = [&](const std::filesystem::path& file) {
    if (file.extension() == ".log") mark_now("bucket/during write " + std::to_string(marked.size()));
  };
  ASSERT_TRUE(node.save().durable());
  files_.before_create = nullptr;
  files_.before_append = nullptr;
  ASSERT_GE(marked.size(), 3U);
  const auto saved = decode_snapshot(files_.content(snapshot_file(node_drives[0])).value()).value();
  for (const auto& [path, position] : marked) {
    if (contains(*saved.state.current_marks, path)) {
      EXPECT_LE(position, durable) << path;
    }
  }
  EXPECT_TRUE(contains(*saved.state.current_marks, "bucket/after the first commit"));
}

// The file can be read again when the run goes on: nothing later would notice what the replay left out.
TEST_F(PersistenceTest, SegmentUnreadableOnce_IsALoss) {
  {
    Node node = start();
    ASSERT_TRUE(node.mark_durably(dir("bucket/first run")));
  }
  {
    Node node = start();
    ASSERT_TRUE(node.mark_durably(dir("bucket/second run")));
  }
  ASSERT_EQ(segments().size(), 2U);
  const auto count = files_.clone();
  count->reset_calls();
  {
    const Node node(*count, clock_, node_options(Durability::disk));
  }
  std::size_t losses = 0;
  for (std::size_t call = 1; call <= count->calls(); ++call) {
    const auto files = files_.clone();
    files->fail_call(call, EIO);
    const auto started = Persistence::start(*files, clock_, node_options(Durability::disk));
    if (!started) continue;  // it says so, and leaves everything as it was
    Tracker& tracker = (*started)->tracker();
    for (const char* path : {"bucket/first run", "bucket/second run"}) {
      EXPECT_TRUE(tracker.dirty(path, {}).latest) << path << ", call " << call;
    }
    if (!(*started)->report().loss.empty()) ++losses;
  }
  EXPECT_GE(losses, 3U) << "the record, and each of the segments";
}

// It is empty where the system does not give it: then nothing proves that the machine did not go down.
TEST_F(PersistenceTest, UnknownBootIdInBothRuns_IsNotTheSameBoot) {
  {
    Node node = start(Durability::os, "");
    ASSERT_TRUE(node.mark_durably(dir("bucket/a")));
  }
  Node node = start(Durability::os, "");
  EXPECT_THAT(node.loss(), HasSubstr("durability was 'os'"));
  EXPECT_TRUE(node.is_dirty("anything"));
}

TEST_F(PersistenceTest, RepeatedCrashes_KeepInstanceAndMarks) {
  InstanceId instance;
  for (int round = 0; round < 50; ++round) {
    Node node = start(Durability::disk, "boot " + std::to_string(round));
    if (round == 0) instance = node.instance();
    EXPECT_EQ(node.instance(), instance) << node.loss();
    ASSERT_TRUE(node.mark_durably(dir("bucket/" + std::to_string(round))));
    for (int marked = 0; marked <= round; ++marked)
      EXPECT_TRUE(node.is_dirty("bucket/" + std::to_string(marked)));
    if (round % 7 == 3) node.save();
    files_.crash();
  }
}

}  // namespace
}  // namespace spoor::tracker
