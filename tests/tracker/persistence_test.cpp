// What an acknowledgement is worth, and what becomes of it when disks fail and files are damaged.
#include "tracker/storage/persistence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

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

  // A run that makes marks of `bucket/0` and so on durable, and is killed.
  void run_with_marks(int count) {
    Node node = start();
    for (int i = 0; i < count; ++i) ASSERT_TRUE(node.mark_durably(dir("bucket/" + std::to_string(i))));
  }

  std::size_t calls_of_a_start() {
    const auto files = files_.clone();
    files->reset_calls();
    const Node node = start_on(*files);
    return files->calls();
  }

  Node start_on(MemoryFileSystem& files) { return {files, clock_, node_options(Durability::disk)}; }

  MemoryFileSystem files_;
  fakes::ManualClock clock_;
};

// The mark that adds nothing would be acknowledged at once, and lost with the one it relies on.
TEST_F(PersistenceTest, DuplicateMark_WaitsForThePendingCommitOnly) {
  Node node = start();
  const std::size_t calls = files_.calls();
  for (int i = 0; i < 100; ++i) mark(node.tracker(), {dir("bucket/" + std::to_string(i))});
  const MarkOutcome again = mark(node.tracker(), {dir("bucket/0")});
  EXPECT_EQ(again.added, 0U);
  EXPECT_GT(again.position, node.persistence().durable_position());
  ASSERT_TRUE(node.persistence().commit());
  EXPECT_LE(again.position, node.persistence().durable_position());
  EXPECT_EQ(files_.calls() - calls, 2U) << "one write, one sync, of all";
  EXPECT_TRUE(node.mark_durably(dir("bucket/0")));
  EXPECT_EQ(files_.calls() - calls, 2U) << "nothing to commit";
}

// What counts is how the run that crashed kept its marks, not how the next one will. The boot is empty where
// the system does not give it: then nothing proves that the machine did not go down.
TEST_F(PersistenceTest, DurabilityOfTheLastRun_DecidesWhetherACrashIsALoss) {
  struct Case {
    Durability last;
    const char* last_boot;
    Durability now;
    const char* boot;
    const char* loss;
  };
  for (const Case& each : {Case{Durability::os, "1", Durability::os, "1", ""},
                           {Durability::os, "1", Durability::os, "2", "durability was 'os'"},
                           {Durability::os, "", Durability::os, "", "durability was 'os'"},
                           {Durability::memory, "1", Durability::disk, "1", "durability was 'memory'"},
                           {Durability::disk, "1", Durability::memory, "2", ""}}) {
    SCOPED_TRACE(each.last_boot);
    MemoryFileSystem files;
    make_directories(files);
    const auto start_as = [&](Durability durability, const char* boot) {
      auto options = node_options(durability);
      options.boot_id = boot;
      return Node(files, clock_, options);
    };
    InstanceId instance;
    {
      Node node = start_as(each.last, each.last_boot);
      instance = node.instance();
      EXPECT_TRUE(node.mark_durably(dir("bucket/a")));
    }
    Node node = start_as(each.now, each.boot);
    const bool is_loss = *each.loss != '\0';
    EXPECT_THAT(node.loss(), HasSubstr(each.loss));
    EXPECT_EQ(node.loss().empty(), !is_loss);
    EXPECT_EQ(node.instance() == instance, !is_loss);
    EXPECT_TRUE(node.is_dirty("bucket/a"));
    EXPECT_EQ(node.is_dirty("anything"), is_loss);
  }
}

TEST_F(PersistenceTest, SegmentsOfTheJournal_AreFreedBySavesAndFewIfThatFails) {
  {
    Node node = start();
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(node.mark_durably(dir("freed/" + std::to_string(i))));
      ASSERT_TRUE(node.save().durable());
      EXPECT_EQ(segments().size(), 1U);
    }
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
  const std::size_t before = segments().size();
  files_.fill("/data");
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(node.mark_durably(dir("refused/" + std::to_string(i))));
    node.save();
  }
  EXPECT_LE(segments().size(), before + 1);
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

TEST_F(PersistenceTest, UnusableJournal_IsALossAndKeptAside) {
  run_with_marks(2);
  const auto file = segments().at(0);
  const std::string whole = files_.content(file).value();
  struct Case {
    std::string bytes;
    const char* loss;
    const char* aside;
  };
  const std::size_t in_first_frame = whole.find("bucket/0");
  const Case cases[] = {{flipped(whole, 0, whole[0] ^ 9), "version 9", "aside.v9"},
                        {flipped(whole, in_first_frame), "is damaged", "aside.corrupt"},
                        {"", "not a segment", "aside.corrupt"},
                        {std::string(10, '\0'), "not a segment", "aside.corrupt"},
                        {std::string(whole.size(), '\0'), "not a segment", "aside.corrupt"}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.loss);
    const auto files = files_.clone();
    files->put(file, each.bytes);
    Node node = start_on(*files);
    EXPECT_THAT(node.loss(), HasSubstr(each.loss));
    EXPECT_TRUE(node.is_dirty("bucket/0"));
    EXPECT_EQ(files->content(std::string("/data/journal/") + each.aside), each.bytes);
    EXPECT_EQ(files->names_in("/data/journal").size(), 2U) << "and only the new instance's segment";
    EXPECT_TRUE(node.mark_durably(dir("bucket/after")));
  }
  const auto removed = files_.clone();
  ASSERT_TRUE(removed->remove(file));
  EXPECT_THAT(start_on(*removed).loss(), HasSubstr("there is no journal"));
  files_.fail_below(file, EIO);
  Node node = start();
  EXPECT_THAT(node.loss(), HasSubstr("Input/output error"));
  EXPECT_TRUE(node.is_dirty("bucket/0"));
}

TEST_F(PersistenceTest, BadLastFrameOnTheSameBoot_IsALossUnlessItIsCutOff) {
  run_with_marks(2);
  const auto file = segments().at(0);
  const std::string whole = files_.content(file).value();
  const std::size_t in_last_frame = whole.find("bucket/1");
  files_.put(file, flipped(whole, in_last_frame));
  EXPECT_THAT(start_on(*files_.clone()).loss(), HasSubstr("is damaged"));
  files_.put(file, whole.substr(0, in_last_frame));
  EXPECT_EQ(start().loss(), "") << "it can't be told from an unfinished write";
}

TEST_F(PersistenceTest, ShortRead_KeepsMarksOrIsALoss) {
  {
    Node node = start();
    ASSERT_TRUE(node.mark_durably(dir("bucket/a")));
    node.save();
    ASSERT_TRUE(node.mark_durably(dir("bucket/b")));
  }
  const std::size_t calls = calls_of_a_start();
  for (std::size_t call = 1; call <= calls; ++call) {
    const auto files = files_.clone();
    files->shorten_call(call);
    Node node = start_on(*files);
    EXPECT_TRUE(node.is_dirty("bucket/a")) << call;
    // Half of the last frame can't be told from a write that was not finished.
    EXPECT_TRUE(node.loss().empty() || node.is_dirty("anything")) << call;
  }
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
    Node node = start_on(*files);
    EXPECT_TRUE(node.is_dirty("anything")) << call;
    const bool same = first && (*first)->tracker().state().instance == node.instance();
    EXPECT_TRUE(!same || node.tracker().state().current >= (*first)->tracker().state().current) << call;
    EXPECT_FALSE(node.tracker().state().complete_since_birth) << call;
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
    while (fakes::stop(node.persistence()).value().generation < generation) {
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
      saved.drives.push_back(node.persistence().save_to(0, snapshot));
      saved.drives.push_back(node.persistence().drives().failed_state(1, "hangs"));
      node.persistence().finish_save(saved, snapshot.position);
    };
    ASSERT_TRUE(node.save().durable());
    ASSERT_TRUE(node.mark_durably(dir("bucket/a")));
    const auto older = node.persistence().begin_save();
    save_to_one(*older);
    ASSERT_TRUE(node.mark_durably(dir("bucket/b")));
    save_to_one(*node.persistence().begin_save());
    ASSERT_TRUE(node.mark_durably(dir("bucket/c")));
    ASSERT_TRUE(node.persistence().save_to(1, *older).ok);
  }
  const auto lost = files_.clone();
  lost->fail_below(node_drives[0], EIO);
  Node without = start_on(*lost);
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

// A mark in the snapshot that the journal does not hold would be acknowledged without a record, and gone with
// the one drive that has the snapshot. A mark could slip in at two moments: while the save's first commit
// opens a segment, before the state is copied; and while the second one writes, when the copy is made.
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
  for (const char* path : {"bucket/first run", "bucket/second run"}) {
    Node node = start();
    ASSERT_TRUE(node.mark_durably(dir(path)));
  }
  ASSERT_EQ(segments().size(), 2U);
  std::size_t losses = 0;
  const std::size_t calls = calls_of_a_start();
  for (std::size_t call = 1; call <= calls; ++call) {
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

TEST_F(PersistenceTest, RepeatedPowerCuts_KeepInstanceAndExactlyTheAcknowledgedMarks) {
  InstanceId instance;
  for (int round = 0; round < 50; ++round) {
    Node node = start(Durability::disk, "boot " + std::to_string(round));
    if (round == 0) instance = node.instance();
    EXPECT_EQ(node.loss(), "");
    EXPECT_EQ(node.instance(), instance);
    EXPECT_FALSE(node.is_dirty("bucket/" + std::to_string(round)));
    ASSERT_TRUE(node.mark_durably(dir("bucket/" + std::to_string(round))));
    for (int marked = 0; marked <= round; ++marked)
      EXPECT_TRUE(node.is_dirty("bucket/" + std::to_string(marked)));
    if (round % 7 == 3) node.save();
    files_.crash();
  }
}

}  // namespace
}  // namespace spoor::tracker
