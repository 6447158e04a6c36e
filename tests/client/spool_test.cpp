// The spool, by itself and with the queue that fills it.
#include "client/spool.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <thread>
#include <vector>

#include "tests/client/mark_queue_fixture.h"
#include "tests/support/temp_directory.h"

namespace spoor::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SpooledMarksTest : public MarkQueueTest {
 protected:
  SpooledMarksTest() { reopen(); }

  // As a new process does.
  void reopen(std::uint64_t bytes_max = 1'000'000,
              QueueOptions options = {.batch_bytes_max = 40, .held_bytes_max = 100}) {
    queue_.reset();
    options.spool = &spool_.emplace(open_spool(bytes_max));
    queue_.emplace(
        options, [this](const MarkBatch& batch, Deadline) { return daemon_.respond(batch); },
        [](const std::string&) {});
  }

  void add(std::initializer_list<const char*> paths) {
    for (const char* path : paths) queue_->add(MarkKind::dir, path, past);
  }

  // Each in a file of its own.
  void spool(std::initializer_list<const char*> paths) {
    for (const char* path : paths) {
      add({path});
      EXPECT_EQ(queue_->flush(past), Outcome::spooled);
    }
  }

  void damage_first_file() { files_.put("/spool/" + spooled()[0], "spoormk1 and no more"); }

  std::optional<Spool> spool_;
  std::optional<MarkQueue> queue_;
};

TEST_F(SpooledMarksTest, Spool_TakesWhatCantBeSent_AndTheNextFlushSendsIt) {
  daemon_.failures = 1'000'000;
  add({"a"});
  queue_->add(MarkKind::tree, "t", past);
  EXPECT_EQ(queue_->flush(soon()), Outcome::spooled);
  EXPECT_EQ(queue_->figures().held, 0U);
  EXPECT_EQ(queue_->figures().spooled, 2U);
  EXPECT_EQ(spooled().size(), 2U);
  EXPECT_EQ(queue_->flush(soon()), Outcome::spooled) << "it is not empty";
  daemon_.failures = 0;
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a"));
  EXPECT_THAT(daemon_.marked["tree"], ElementsAre("t"));
  EXPECT_THAT(spooled(), IsEmpty());
}

// Another batch is the oldest when the response arrives.
TEST_F(SpooledMarksTest, BatchIsSpooledWhileItIsSent_LaterMarksAreKept) {
  add({"a"});
  daemon_.meanwhile = [&] {
    EXPECT_EQ(queue_->flush(past), Outcome::spooled);
    add({"b"});
  };
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a", "b"));
}

TEST_F(SpooledMarksTest, Spool_TakesTheBuffer_WhereItIsFull) {
  daemon_.failures = 1'000'000;
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(queue_->add(MarkKind::dir, "path-" + std::to_string(i), past), Outcome::done) << i;
  EXPECT_EQ(queue_->flush(past), Outcome::spooled);
  daemon_.failures = 0;
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_EQ(marked().size(), 50U);
}

TEST_F(SpooledMarksTest, Spool_OfAnEarlierClient_IsSentAfterAPowerCut) {
  daemon_.failures = 1'000'000;
  spool({"a"});
  files_.crash();
  daemon_.failures = 0;
  reopen();
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

TEST_F(SpooledMarksTest, Spool_TakesTheMarksOfADeniedClient_WhichIsStillDenied) {
  daemon_.denies = true;
  add({"a"});
  EXPECT_EQ(queue_->flush(never), Outcome::denied);
  EXPECT_EQ(queue_->figures().held, 0U);
  daemon_.denies = false;
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

// Also those that are on their way.
TEST_F(SpooledMarksTest, Spool_TakesAllMarks_WhileAnotherThreadSends) {
  daemon_.meanwhile = [&] {
    add({"b"});
    EXPECT_EQ(queue_->flush(past), Outcome::spooled);
    EXPECT_EQ(spooled().size(), 2U);
  };
  add({"a"});
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a", "b"));
  EXPECT_THAT(spooled(), IsEmpty());
  EXPECT_EQ(queue_->figures().held, 0U);
}

TEST_F(SpooledMarksTest, SpoolFileThatCantBeRead_StaysAndDoesNotStopTheOthers) {
  files_.make_directory("/spool/0.marks");  // as one of another user
  reopen();
  spool({"a"});
  EXPECT_EQ(queue_->flush(never), Outcome::spool_failed);
  EXPECT_THAT(queue_->problem(), HasSubstr("/spool/0.marks"));
  EXPECT_THAT(marked(), ElementsAre("a"));
  EXPECT_THAT(spooled(), ElementsAre("0.marks"));
  EXPECT_EQ(queue_->flush(never), Outcome::spool_failed) << "until it is gone";
}

TEST_F(SpooledMarksTest, SpoolThatIsGone_IsNotTakenForSent) {
  spool({"a"});
  files_.fail_below("/spool", ENOENT);
  EXPECT_EQ(queue_->flush(never), Outcome::spool_failed);
  files_.heal("/spool");
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

TEST_F(SpooledMarksTest, Spool_OfManyBatches_IsSentBitByBit) {
  for (int i = 0; i < 50; ++i) queue_->add(MarkKind::dir, "path-" + std::to_string(i), past);
  EXPECT_EQ(queue_->flush(past), Outcome::spooled);
  const std::size_t files = spooled().size();
  EXPECT_GT(files, 5U);
  for (std::size_t left = files; left > 0; --left) {
    EXPECT_EQ(spooled().size(), left);
    if (left == 1) break;
    daemon_.allowed = 1;
    EXPECT_EQ(flush_in_vain(*queue_), Outcome::spooled);
  }
  daemon_.requests = 0;
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_EQ(marked().size(), 50U);
}

TEST_F(SpooledMarksTest, SpoolFull_MarksStayInMemory) {
  reopen(10);
  daemon_.failures = 1'000'000;
  add({"a"});
  EXPECT_EQ(queue_->flush(past), Outcome::spool_failed);
  EXPECT_THAT(queue_->problem(), HasSubstr("the spool /spool is full"));
  EXPECT_EQ(queue_->figures().held, 1U);
  daemon_.failures = 0;
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

// It could not be read again.
TEST_F(SpooledMarksTest, BatchTooLargeForAFile_IsNotTaken) {
  reopen(10'000'000);
  EXPECT_FALSE(spool_->append({.paths = std::string(std::size_t{1} << 20U, 'a') + '\0', .count = 1}));
  EXPECT_THAT(spooled(), IsEmpty());
}

TEST_F(SpooledMarksTest, DamagedSpoolFile_IsKeptAndReported_TheOthersAreSent) {
  daemon_.failures = 1'000'000;
  spool({"a", "b"});
  const auto file = "/spool/" + spooled()[0];
  std::string content = *files_.content(file);
  content[9] ^= 1;
  files_.put(file, content);
  daemon_.failures = 0;
  reopen();
  EXPECT_EQ(queue_->flush(never), Outcome::spool_failed);
  EXPECT_THAT(queue_->problem(), HasSubstr("damaged, and its marks are lost: " + file + ".damaged;"));
  EXPECT_THAT(marked(), ElementsAre("b"));
  EXPECT_EQ(queue_->flush(never), Outcome::done) << "it is reported once";
  EXPECT_EQ(spooled().size(), 1U);
}

// A flush that fails over something else says nothing of it.
TEST_F(SpooledMarksTest, DamagedSpoolFile_IsReportedByTheNextClient_IfTheFlushIsDenied) {
  spool({"a", "b"});
  damage_first_file();
  daemon_.denies = true;
  EXPECT_EQ(queue_->flush(never), Outcome::denied);
  daemon_.denies = false;
  reopen();
  EXPECT_EQ(queue_->flush(never), Outcome::spool_failed);
  EXPECT_THAT(queue_->problem(), HasSubstr("its marks are lost"));
  EXPECT_EQ(queue_->flush(never), Outcome::done);
}

TEST_F(SpooledMarksTest, DamagedSpoolFile_OfTwoClients_IsReportedByBoth) {
  spool({"a"});
  damage_first_file();
  auto other_spool = open_spool();
  auto other = make_queue(&other_spool);
  EXPECT_EQ(other.flush(never), Outcome::spool_failed);
  EXPECT_EQ(queue_->flush(never), Outcome::spool_failed);
  EXPECT_THAT(queue_->problem(), HasSubstr("its marks are lost"));
}

// Another thread may read the damaged file, and the flush that finds it may not succeed.
TEST_F(SpooledMarksTest, DamagedSpoolFile_IsReported_AlsoIfTheFlushTimesOut) {
  spool({"a"});
  damage_first_file();
  spool({"b"});
  daemon_.failures = 1'000'000;
  EXPECT_EQ(flush_in_vain(*queue_), Outcome::spool_failed);
  EXPECT_THAT(queue_->problem(), HasSubstr("its marks are lost"));
  daemon_.failures = 0;
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("b"));
}

// As if the spool's file system were not mounted: the directory is there, and empty.
TEST_F(SpooledMarksTest, OtherDirectoryInPlaceOfTheSpool_IsNotTakenForSent_AndTakesNothing) {
  spool({"a"});
  const std::string file = "/spool/" + spooled()[0];
  const std::string content = *files_.content(file);
  const std::string of_spool = identity();
  ASSERT_TRUE(files_.remove(file));
  ASSERT_TRUE(files_.remove(of_spool));
  EXPECT_EQ(queue_->flush(never), Outcome::spool_failed);
  EXPECT_THAT(queue_->problem(), HasSubstr("/spool is not the directory that was opened"));
  // Another client of the daemon opens it.
  ASSERT_TRUE(open_spool().append({.paths = std::string("c\0", 2), .count = 1}));
  const std::string of_other = identity();
  ASSERT_FALSE(of_other.empty());
  EXPECT_EQ(queue_->flush(never), Outcome::spool_failed);
  EXPECT_THAT(queue_->problem(), HasSubstr("/spool is not the directory that was opened"));
  ASSERT_TRUE(files_.remove("/spool/" + spooled()[0]));
  add({"b"});
  EXPECT_EQ(queue_->flush(past), Outcome::spool_failed);
  EXPECT_THAT(spooled(), IsEmpty());
  ASSERT_TRUE(files_.remove(of_other));
  files_.put(file, content);
  files_.put(of_spool, "/spoor.sock");
  EXPECT_EQ(queue_->flush(never), Outcome::done) << queue_->problem();
  EXPECT_THAT(marked(), ElementsAre("a", "b"));
}

TEST_F(SpooledMarksTest, SpoolOfAnotherDaemon_IsNotOpened) {
  files_.make_directory("/new");
  ASSERT_TRUE(Spool::open(files_, "/new", "/a.sock", 1000));
  ASSERT_TRUE(Spool::open(files_, "/new", "/a.sock", 1000));
  const auto other = Spool::open(files_, "/new", "/b.sock", 1000);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("/new has marks for the daemon at /a.sock, not /b.sock"));
}

TEST_F(SpooledMarksTest, NewSpoolOpenedByTwoAtOnce_IsThatOfBoth_OrOfNeitherIfTheyDiffer) {
  files_.make_directory("/new");
  for (const std::string of_other : {"/a.sock", "/b.sock"}) {
    std::optional<base::Result<Spool>> other;
    bool is_first = true;
    files_.before_create = [&](const std::filesystem::path&) {
      if (std::exchange(is_first, false)) other.emplace(Spool::open(files_, "/new", of_other, 1000));
    };
    auto spool = Spool::open(files_, "/new", "/a.sock", 1000);
    ASSERT_TRUE(other);
    EXPECT_TRUE(*other) << "it was the first to write";
    EXPECT_EQ(spool.has_value(), of_other == "/a.sock");
    if (spool) {
      EXPECT_TRUE((*other)->append({.paths = std::string("a\0", 2), .count = 1}));
      EXPECT_TRUE(spool->append({.paths = std::string("b\0", 2), .count = 1}));
    }
    EXPECT_TRUE(Spool::open(files_, "/new", of_other, 1000));
    for (const std::string& name : files_.names_in("/new")) ASSERT_TRUE(files_.remove("/new/" + name));
  }
}

// The other client has sent a part of it, and has put another file in its place.
TEST_F(SpooledMarksTest, SpoolFileShortenedByAnotherClient_IsNotTakenForSent) {
  add({"bad", "a"});
  EXPECT_EQ(queue_->flush(past), Outcome::spooled);
  {
    auto other_spool = open_spool();
    auto other = make_queue(&other_spool);
    daemon_.allowed = 1;
    EXPECT_EQ(flush_in_vain(other), Outcome::refused);
  }
  daemon_.allowed = 1'000'000;
  EXPECT_THAT(marked(), IsEmpty());
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

TEST_F(SpooledMarksTest, SpoolWithoutRoomForTheRestOfAFile_KeepsIt) {
  reopen(30);
  add({"bad", "a"});
  EXPECT_EQ(queue_->flush(past), Outcome::spooled);
  const auto files = spooled();
  daemon_.allowed = 1;
  EXPECT_EQ(flush_in_vain(*queue_), Outcome::refused);
  EXPECT_EQ(spooled(), files);
  daemon_.allowed = 1'000'000;
  EXPECT_EQ(queue_->flush(never), Outcome::refused) << "again";
  EXPECT_THAT(marked(), ElementsAre("a"));
}

// While this client sends a file, another client does, too, and another thread writes to the spool.
TEST_F(SpooledMarksTest, SpoolFileThatTwoClientsSend_IsTheOnlyOneRemoved) {
  reopen(200);  // few bytes until it looks again
  spool({"a", "b"});
  const auto files = spooled();
  ASSERT_EQ(files.size(), 2U);
  daemon_.meanwhile = [&] {
    EXPECT_TRUE(files_.remove("/spool/" + files[0]));
    add({"c"});
    EXPECT_EQ(queue_->flush(past), Outcome::spooled);
    EXPECT_EQ(spooled().size(), 2U);
  };
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(spooled(), IsEmpty());
}

TEST_F(SpooledMarksTest, PathRefusedWhenTheSpoolIsSent_IsToldToTheThreadThatMarkedIt) {
  spool({"bad"});
  Outcome of_other = Outcome::done;
  std::thread([&] { of_other = queue_->flush(never); }).join();
  EXPECT_EQ(of_other, Outcome::refused);
  EXPECT_EQ(queue_->flush(never), Outcome::refused);
  EXPECT_EQ(queue_->flush(never), Outcome::done);
}

TEST_F(SpooledMarksTest, RefusalAndSpool_TheRefusalIsTold) {
  add({"bad"});
  add({"good"});
  daemon_.allowed = 1;
  EXPECT_EQ(flush_in_vain(*queue_), Outcome::refused);
  EXPECT_EQ(spooled().size(), 1U);
  daemon_.allowed = 1'000'000;
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("good"));
}

// A flush that times out over it keeps what it has done.
TEST_F(SpooledMarksTest, SpoolFileWithManyRefusedPaths_Drains) {
  reopen(1'000'000, QueueOptions());
  for (int i = 0; i < 50; ++i) {
    add({"bad"});
    queue_->add(MarkKind::dir, "path-" + std::to_string(i), past);
  }
  EXPECT_EQ(queue_->flush(past), Outcome::spooled);
  ASSERT_EQ(spooled().size(), 1U);
  daemon_.allowed = 10;
  for (std::uint64_t refused = 0; refused < 50; refused = queue_->figures().refused) {
    EXPECT_EQ(queue_->figures().refused, refused);
    EXPECT_EQ(flush_in_vain(*queue_), Outcome::refused);
    ASSERT_GT(queue_->figures().refused, refused) << "no progress";
  }
  EXPECT_EQ(queue_->figures().refused, 50U) << "none twice";
  daemon_.allowed = 1'000'000;
  EXPECT_EQ(queue_->flush(never), Outcome::done);
  EXPECT_EQ(marked().size(), 50U);
  EXPECT_THAT(spooled(), IsEmpty());
}

TEST(SpoolTest, Limit_IsThatOfAllClientsTogether) {
  const support::TempDirectory directory;
  base::PosixFileSystem files;
  constexpr std::uint64_t bytes_max = 6'000;
  std::vector<Spool> spools;
  for (int i = 0; i < 4; ++i)
    spools.push_back(Spool::open(files, directory.path(), "/spoor.sock", bytes_max).value());
  const MarkBatch batch{.paths = std::string(99, 'a') + '\0', .count = 1};
  std::size_t full = 0;
  while (full < spools.size()) {
    full = 0;
    for (Spool& spool : spools) full += spool.append(batch) ? 0U : 1U;
  }
  std::uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory.path())) bytes += file.file_size();
  EXPECT_LE(bytes, bytes_max * 5 / 4);
  EXPECT_GE(bytes, bytes_max - 1000);
  std::uint64_t removed = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory.path()))
    if (file.path().extension() == ".marks") removed += std::filesystem::remove(file.path()) ? 1U : 0U;
  EXPECT_GT(removed, 30U);
  EXPECT_TRUE(spools[0].append(batch)) << "others have sent theirs";
}

// Whatever call to the disk fails: what a flush calls spooled is there after a power cut, and is sent.
TEST_F(SpooledMarksTest, SpoolOnAFailingDisk_LosesNothingThatItReportedAsSpooled) {
  for (std::size_t failing = 1; failing < 16; ++failing) {
    fakes::MemoryFileSystem files;
    files.make_directory("/spool");
    FakeDaemon daemon;
    const auto send = [&](const MarkBatch& batch, Deadline) { return daemon.respond(batch); };
    daemon.failures = 1'000'000;
    std::set<std::string> promised;
    {
      auto spool = *Spool::open(files, "/spool", "/spoor.sock", 1'000'000);
      MarkQueue queue({.spool = &spool}, send, [](const std::string&) {});
      files.stop_at_call(failing);
      for (const char* path : {"a", "b"}) {
        queue.add(MarkKind::dir, path, past);
        const Outcome outcome = queue.flush(past);
        ASSERT_TRUE(outcome == Outcome::spooled || outcome == Outcome::spool_failed);
        // The second one has what the first could not store.
        if (outcome == Outcome::spooled)
          promised = path[0] == 'b' ? std::set<std::string>{"a", "b"} : std::set<std::string>{"a"};
      }
    }
    files.crash();
    daemon.failures = 0;
    auto spool = *Spool::open(files, "/spool", "/spoor.sock", 1'000'000);
    MarkQueue queue({.spool = &spool}, send, [](const std::string&) {});
    EXPECT_EQ(queue.flush(never), Outcome::done) << queue.problem();
    EXPECT_TRUE(std::ranges::includes(daemon.marked["dir"], promised)) << "call " << failing;
  }
}

}  // namespace
}  // namespace spoor::client
