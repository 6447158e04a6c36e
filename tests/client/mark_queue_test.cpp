// Batches, repetition and the spool, with a daemon that is a function.
#include "client/mark_queue.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fakes/memory_file_system.h"
#include "tests/support/temp_directory.h"

namespace spoor::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto never = Deadline::max();
constexpr auto past = Deadline::min();
// Of calls that are to run into it.
Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::milliseconds(30); }

std::vector<std::string> split(const std::string& paths) {
  std::vector<std::string> split;
  for (std::size_t begin = 0; begin < paths.size();) {
    const std::size_t end = paths.find('\0', begin);
    split.push_back(paths.substr(begin, end - begin));
    begin = end + 1;
  }
  return split;
}

// Acknowledges what it is sent; or fails.
class FakeDaemon {
 public:
  peer::MarkReply respond(const MarkBatch& batch) {
    const std::lock_guard lock(mutex_);
    ++requests;
    if (failures > 0) {
      --failures;
      return {.problem = "it is down", .may_retry = true};
    }
    if (requests > allowed) return {.problem = "it is slow", .may_retry = true};
    if (denies) return {.problem = "no right"};
    const auto paths = split(batch.paths);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (paths[i] == "bad") return {.problem = "bad path", .refused = i};
    }
    EXPECT_EQ(batch.count, paths.size());
    batch_bytes.push_back(batch.paths.size());
    for (const auto& path : paths) marked[kind_name(batch.kind)].insert(path);
    return {.is_acknowledged = true, .marked = paths.size(), .cycle = 7};
  }

  int failures = 0;
  bool denies = false;
  int requests = 0;
  int allowed = 1'000'000;
  std::vector<std::size_t> batch_bytes;
  std::map<std::string, std::set<std::string>> marked;  // by kind

 private:
  std::mutex mutex_;
};

class MarkQueueTest : public testing::Test {
 protected:
  MarkQueueTest() { files_.make_directory("/spool"); }

  Spool open_spool(std::uint64_t bytes_max = 1'000'000) {
    return Spool::open(files_, "/spool", "/spoor.sock", bytes_max).value();
  }

  MarkQueue make_queue(Spool* spool = nullptr) {
    return MarkQueue(
        {.batch_bytes_max = 40, .held_bytes_max = 100, .spool = spool},
        [this](const MarkBatch& batch, Deadline) { return daemon_.respond(batch); },
        [this](const std::string& problem) { refusals_.push_back(problem); });
  }

  // Until there was an attempt: on a busy machine the time can be over before.
  Outcome flush_in_vain(MarkQueue& queue) {
    daemon_.requests = 0;
    for (;;) {
      const Outcome outcome = queue.flush(soon());
      if (daemon_.requests > 0) return outcome;
    }
  }

  // The files of marks in the spool.
  std::vector<std::string> spooled() {
    auto names = files_.names_in("/spool");
    std::erase_if(names, [](const std::string& name) { return name.ends_with(".socket"); });
    return names;
  }

  // The file that tells the spool from other directories.
  std::string identity() {
    for (const std::string& name : files_.names_in("/spool"))
      if (name.ends_with(".socket")) return "/spool/" + name;
    return {};
  }

  std::set<std::string>& marked() { return daemon_.marked["dir"]; }

  fakes::MemoryFileSystem files_;
  FakeDaemon daemon_;
  std::vector<std::string> refusals_;
};

TEST_F(MarkQueueTest, Flush_SendsAllKinds_EachInItsBatch) {
  auto queue = make_queue();
  EXPECT_EQ(queue.add(MarkKind::dir, "a", past), Outcome::done);
  EXPECT_EQ(queue.add(MarkKind::tree, "t", past), Outcome::done);
  EXPECT_EQ(queue.add(MarkKind::file, "f", past), Outcome::done);
  EXPECT_EQ(queue.add(MarkKind::dir, "b", past), Outcome::done);
  EXPECT_EQ(queue.figures().held, 4U);
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(daemon_.marked["dir"], ElementsAre("a", "b"));
  EXPECT_THAT(daemon_.marked["file"], ElementsAre("f"));
  EXPECT_THAT(daemon_.marked["tree"], ElementsAre("t"));
  EXPECT_EQ(daemon_.requests, 3);
  const auto figures = queue.figures();
  EXPECT_EQ(figures.held, 0U);
  EXPECT_EQ(figures.acknowledged, 4U);
  EXPECT_EQ(figures.cycle, 7U);
}

TEST_F(MarkQueueTest, Flush_OfNothing_SendsNothing) {
  auto queue = make_queue();
  EXPECT_EQ(queue.flush(past), Outcome::done);
  EXPECT_EQ(daemon_.requests, 0);
}

TEST_F(MarkQueueTest, FullBatch_IsSentByAdd_UnlessItMayNotWait) {
  auto queue = make_queue();
  const std::string long_path(30, 'a');
  queue.add(MarkKind::dir, long_path, past);
  queue.add(MarkKind::dir, "not in the same", past);
  EXPECT_EQ(daemon_.requests, 0);
  queue.add(MarkKind::dir, "c", never);
  EXPECT_THAT(daemon_.batch_bytes, ElementsAre(31U));
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), testing::SizeIs(3));
}

TEST_F(MarkQueueTest, Batches_AreNeverLargerThanAllowed) {
  auto queue = make_queue();
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(queue.add(MarkKind::dir, "path-" + std::to_string(i), never), Outcome::done);
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_EQ(marked().size(), 200U);
  EXPECT_THAT(daemon_.batch_bytes, testing::Each(testing::Le(40U)));
}

TEST_F(MarkQueueTest, Failures_AreRepeated_UntilAcknowledged) {
  auto queue = make_queue();
  daemon_.failures = 4;
  queue.add(MarkKind::dir, "a", past);
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_EQ(daemon_.requests, 5);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

TEST_F(MarkQueueTest, DeadlinePasses_MarksAreKept_AndSentLater) {
  auto queue = make_queue();
  daemon_.failures = 1'000'000;
  queue.add(MarkKind::dir, "a", past);
  EXPECT_EQ(flush_in_vain(queue), Outcome::timed_out);
  EXPECT_EQ(queue.problem(), "it is down");
  EXPECT_EQ(queue.figures().held, 1U);
  daemon_.failures = 0;
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

TEST_F(MarkQueueTest, FullBuffer_RefusesTheMark_AndTakesItOnceThereIsRoom) {
  auto queue = make_queue();
  const std::string path(24, 'a');
  for (char last = 'a'; last < 'e'; ++last)
    EXPECT_EQ(queue.add(MarkKind::dir, path.substr(1) + last, past), Outcome::done);
  EXPECT_EQ(queue.add(MarkKind::dir, "one more", past), Outcome::full);
  EXPECT_EQ(queue.figures().held, 4U);
  EXPECT_EQ(queue.add(MarkKind::dir, "one more", never), Outcome::done);
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_EQ(marked().size(), 5U);
}

TEST_F(MarkQueueTest, RefusedPaths_AreLeftOut_AndToldOnce) {
  auto queue = make_queue();
  for (const char* path : {"a", "bad", "b", "bad"}) queue.add(MarkKind::dir, path, past);
  EXPECT_EQ(queue.flush(never), Outcome::refused);
  EXPECT_THAT(marked(), ElementsAre("a", "b"));
  EXPECT_THAT(refusals_, ElementsAre("bad path", "bad path"));
  EXPECT_EQ(queue.figures().refused, 2U);
  EXPECT_EQ(queue.flush(never), Outcome::done);
}

// A path that is refused does not stand for another one that is not acknowledged.
TEST_F(MarkQueueTest, RefusedPath_SettlesNoOther) {
  int requests = 0;
  MarkQueue queue(
      {},
      [&](const MarkBatch& batch, Deadline) {
        if (++requests == 2) return peer::MarkReply{.problem = "it is down", .may_retry = true};
        if (requests == 3) throw std::bad_alloc();  // before its second attempt
        return daemon_.respond(batch);
      },
      [](const std::string&) {});
  for (const char* path : {"a", "bad"}) queue.add(MarkKind::dir, path, past);
  EXPECT_THROW(queue.flush(never), std::bad_alloc);
  EXPECT_EQ(queue.figures().held, 1U);
  EXPECT_EQ(queue.flush(never), Outcome::refused);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

TEST_F(MarkQueueTest, AcknowledgementOfAnotherNumber_IsNone) {
  int requests = 0;
  MarkQueue queue(
      {},
      [&](const MarkBatch& batch, Deadline) {
        auto reply = daemon_.respond(batch);
        if (++requests == 1) reply.marked = 2;
        return reply;
      },
      [](const std::string&) {});
  queue.add(MarkKind::dir, "a", past);
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_EQ(requests, 2);
}

TEST_F(MarkQueueTest, FullBuffer_OfADeniedClient_IsDenied) {
  auto queue = make_queue();
  daemon_.denies = true;
  const std::string path(30, 'a');
  for (int i = 0; i < 3; ++i) EXPECT_EQ(queue.add(MarkKind::dir, path, never), Outcome::done);
  EXPECT_EQ(queue.add(MarkKind::dir, path, never), Outcome::denied);
}

TEST_F(MarkQueueTest, DeniedRequest_EndsTheFlush_AndKeepsTheMarks) {
  auto queue = make_queue();
  daemon_.denies = true;
  queue.add(MarkKind::dir, "a", past);
  EXPECT_EQ(queue.flush(never), Outcome::denied);
  EXPECT_EQ(queue.problem(), "no right");
  daemon_.denies = false;
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

TEST_F(MarkQueueTest, Exception_LosesNothing_AndTheNextFlushSends) {
  bool throws = true;
  MarkQueue queue(
      {},
      [&](const MarkBatch& batch, Deadline) {
        auto reply = daemon_.respond(batch);
        if (!reply.refused && throws) throw std::bad_alloc();
        return reply;
      },
      [](const std::string&) {});
  for (const char* path : {"bad", "a"}) queue.add(MarkKind::dir, path, past);
  EXPECT_THROW(queue.flush(never), std::bad_alloc);
  EXPECT_EQ(queue.figures().held, 1U);
  throws = false;
  EXPECT_EQ(queue.flush(never), Outcome::refused);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

// What is added while a batch is being sent is not in it.
TEST_F(MarkQueueTest, MarksAddedDuringARequest_AreSentByTheNext) {
  std::function<void()> meanwhile;
  MarkQueue queue(
      {},
      [&](const MarkBatch& batch, Deadline) {
        if (const auto call = std::exchange(meanwhile, nullptr)) call();
        return daemon_.respond(batch);
      },
      [](const std::string&) {});
  meanwhile = [&] { EXPECT_EQ(queue.add(MarkKind::dir, "b", past), Outcome::done); };
  queue.add(MarkKind::dir, "a", past);
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_EQ(queue.figures().held, 1U);
  EXPECT_THAT(marked(), ElementsAre("a"));
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a", "b"));
}

TEST_F(MarkQueueTest, ManyThreads_EachFlushSeesItsOwnMarksAcknowledged) {
  auto queue = make_queue();
  daemon_.failures = 3;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(queue.add(MarkKind::dir, std::to_string(t) + "/" + std::to_string(i), never),
                  Outcome::done);
        if (i % 10 == 0) {
          EXPECT_EQ(queue.flush(never), Outcome::done);
        }
      }
      EXPECT_EQ(queue.flush(never), Outcome::done);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(marked().size(), 400U);
  EXPECT_EQ(queue.figures().held, 0U);
}

// Each on its own, not the first that asks.
TEST_F(MarkQueueTest, ThreadWhosePathIsRefused_IsTold_AfterAnotherThreadWas) {
  auto queue = make_queue();
  queue.add(MarkKind::dir, "bad", past);
  Outcome of_other = Outcome::done;
  std::thread([&] { of_other = queue.flush(never); }).join();
  EXPECT_EQ(of_other, Outcome::refused);
  std::thread([&] { of_other = queue.flush(never); }).join();
  EXPECT_EQ(of_other, Outcome::done) << "it was before its flush";
  EXPECT_EQ(queue.flush(never), Outcome::refused);
  EXPECT_EQ(queue.flush(never), Outcome::done) << "it is told once";
}

// The bytes that are sent do not grow with the square of the refused paths.
TEST_F(MarkQueueTest, BatchOfRefusedPaths_IsSentInSmallParts) {
  constexpr int count = 20'000;
  std::uint64_t sent_bytes = 0;
  MarkQueue queue(
      {},
      [&](const MarkBatch& batch, Deadline) {
        sent_bytes += batch.paths.size();
        return daemon_.respond(batch);
      },
      [](const std::string&) {});
  for (int i = 0; i < count; ++i) queue.add(MarkKind::dir, "bad", past);
  queue.add(MarkKind::dir, "good", past);
  EXPECT_EQ(queue.flush(never), Outcome::refused);
  EXPECT_EQ(queue.figures().refused, std::uint64_t{count});
  EXPECT_THAT(marked(), ElementsAre("good"));
  EXPECT_LT(sent_bytes, std::uint64_t{count} * 5000);
}

TEST_F(MarkQueueTest, Spool_TakesWhatCantBeSent_AndTheNextFlushSendsIt) {
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  daemon_.failures = 1'000'000;
  queue.add(MarkKind::dir, "a", past);
  queue.add(MarkKind::tree, "t", past);
  EXPECT_EQ(queue.flush(soon()), Outcome::spooled);
  EXPECT_EQ(queue.figures().held, 0U);
  EXPECT_EQ(queue.figures().spooled, 2U);
  EXPECT_EQ(spooled().size(), 2U);
  EXPECT_EQ(queue.flush(soon()), Outcome::spooled) << "it is not empty";
  daemon_.failures = 0;
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a"));
  EXPECT_THAT(daemon_.marked["tree"], ElementsAre("t"));
  EXPECT_THAT(spooled(), IsEmpty());
}

TEST_F(MarkQueueTest, Spool_TakesTheBuffer_WhereItIsFull) {
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  daemon_.failures = 1'000'000;
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(queue.add(MarkKind::dir, "path-" + std::to_string(i), past), Outcome::done) << i;
  EXPECT_EQ(queue.flush(past), Outcome::spooled);
  daemon_.failures = 0;
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_EQ(marked().size(), 50U);
}

TEST_F(MarkQueueTest, Spool_OfAnEarlierClient_IsSentAfterAPowerCut) {
  {
    auto spool = open_spool();
    auto queue = make_queue(&spool);
    daemon_.failures = 1'000'000;
    queue.add(MarkKind::dir, "a", past);
    EXPECT_EQ(queue.flush(past), Outcome::spooled);
  }
  files_.crash();
  daemon_.failures = 0;
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

TEST_F(MarkQueueTest, Spool_TakesTheMarksOfADeniedClient_WhichIsStillDenied) {
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  daemon_.denies = true;
  queue.add(MarkKind::dir, "a", past);
  EXPECT_EQ(queue.flush(never), Outcome::denied);
  EXPECT_EQ(queue.figures().held, 0U);
  daemon_.denies = false;
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

// Also those that are on their way.
TEST_F(MarkQueueTest, Spool_TakesAllMarks_WhileAnotherThreadSends) {
  auto spool = open_spool();
  std::function<void()> meanwhile;
  MarkQueue queue(
      {.spool = &spool},
      [&](const MarkBatch& batch, Deadline) {
        if (const auto call = std::exchange(meanwhile, nullptr)) call();
        return daemon_.respond(batch);
      },
      [](const std::string&) {});
  meanwhile = [&] {
    queue.add(MarkKind::dir, "b", past);
    EXPECT_EQ(queue.flush(past), Outcome::spooled);
    EXPECT_EQ(spooled().size(), 2U);
  };
  queue.add(MarkKind::dir, "a", past);
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a", "b"));
  EXPECT_THAT(spooled(), IsEmpty());
  EXPECT_EQ(queue.figures().held, 0U);
}

TEST_F(MarkQueueTest, SpoolFileThatCantBeRead_StaysAndDoesNotStopTheOthers) {
  files_.make_directory("/spool/0.marks");  // as one of another user
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  queue.add(MarkKind::dir, "a", past);
  EXPECT_EQ(queue.flush(past), Outcome::spooled);
  EXPECT_EQ(queue.flush(never), Outcome::spool_failed);
  EXPECT_THAT(queue.problem(), HasSubstr("/spool/0.marks"));
  EXPECT_THAT(marked(), ElementsAre("a"));
  EXPECT_THAT(spooled(), ElementsAre("0.marks"));
  EXPECT_EQ(queue.flush(never), Outcome::spool_failed) << "until it is gone";
}

TEST_F(MarkQueueTest, SpoolThatIsGone_IsNotTakenForSent) {
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  queue.add(MarkKind::dir, "a", past);
  EXPECT_EQ(queue.flush(past), Outcome::spooled);
  files_.fail_below("/spool", ENOENT);
  EXPECT_EQ(queue.flush(never), Outcome::spool_failed);
  files_.heal("/spool");
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

TEST_F(MarkQueueTest, Spool_OfManyBatches_IsSentBitByBit) {
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  for (int i = 0; i < 50; ++i) queue.add(MarkKind::dir, "path-" + std::to_string(i), past);
  EXPECT_EQ(queue.flush(past), Outcome::spooled);
  const std::size_t files = spooled().size();
  EXPECT_GT(files, 5U);
  for (std::size_t left = files; left > 0; --left) {
    EXPECT_EQ(spooled().size(), left);
    if (left == 1) break;
    daemon_.allowed = 1;
    EXPECT_EQ(flush_in_vain(queue), Outcome::spooled);
  }
  daemon_.requests = 0;
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_EQ(marked().size(), 50U);
}

TEST_F(MarkQueueTest, SpoolFull_MarksStayInMemory) {
  auto spool = open_spool(10);
  auto queue = make_queue(&spool);
  daemon_.failures = 1'000'000;
  queue.add(MarkKind::dir, "a", past);
  EXPECT_EQ(queue.flush(past), Outcome::spool_failed);
  EXPECT_THAT(queue.problem(), HasSubstr("the spool /spool is full"));
  EXPECT_EQ(queue.figures().held, 1U);
  daemon_.failures = 0;
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

TEST_F(MarkQueueTest, DamagedSpoolFile_IsKeptAndReported_TheOthersAreSent) {
  {
    auto spool = open_spool();
    auto queue = make_queue(&spool);
    daemon_.failures = 1'000'000;
    for (const char* path : {"a", "b"}) {
      queue.add(MarkKind::dir, path, past);
      EXPECT_EQ(queue.flush(past), Outcome::spooled);
    }
  }
  const auto file = "/spool/" + spooled()[0];
  std::string content = *files_.content(file);
  content[9] ^= 1;
  files_.put(file, content);
  daemon_.failures = 0;
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  EXPECT_EQ(queue.flush(never), Outcome::spool_failed);
  EXPECT_THAT(queue.problem(), HasSubstr("damaged, and its marks are lost: " + file + ".damaged;"));
  EXPECT_THAT(marked(), ElementsAre("b"));
  EXPECT_EQ(queue.flush(never), Outcome::done) << "it is reported once";
  EXPECT_EQ(spooled().size(), 1U);
}

// A flush that fails over something else says nothing of it.
TEST_F(MarkQueueTest, DamagedSpoolFile_IsReportedByTheNextClient_IfTheFlushIsDenied) {
  {
    auto spool = open_spool();
    auto queue = make_queue(&spool);
    for (const char* path : {"a", "b"}) {
      queue.add(MarkKind::dir, path, past);
      EXPECT_EQ(queue.flush(past), Outcome::spooled);
    }
    files_.put("/spool/" + spooled()[0], "spoormk1 and no more");
    daemon_.denies = true;
    EXPECT_EQ(queue.flush(never), Outcome::denied);
  }
  daemon_.denies = false;
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  EXPECT_EQ(queue.flush(never), Outcome::spool_failed);
  EXPECT_THAT(queue.problem(), HasSubstr("its marks are lost"));
  EXPECT_EQ(queue.flush(never), Outcome::done);
}

TEST_F(MarkQueueTest, DamagedSpoolFile_OfTwoClients_IsReportedByBoth) {
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  queue.add(MarkKind::dir, "a", past);
  EXPECT_EQ(queue.flush(past), Outcome::spooled);
  files_.put("/spool/" + spooled()[0], "spoormk1 and no more");
  auto other_spool = open_spool();
  auto other = make_queue(&other_spool);
  EXPECT_EQ(other.flush(never), Outcome::spool_failed);
  EXPECT_EQ(queue.flush(never), Outcome::spool_failed);
  EXPECT_THAT(queue.problem(), HasSubstr("its marks are lost"));
}

// Another thread may read the damaged file, and the flush that finds it may not succeed.
TEST_F(MarkQueueTest, DamagedSpoolFile_IsReported_AlsoIfTheFlushTimesOut) {
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  queue.add(MarkKind::dir, "a", past);
  EXPECT_EQ(queue.flush(past), Outcome::spooled);
  files_.put("/spool/" + spooled()[0], "spoormk1 and no more");
  queue.add(MarkKind::dir, "b", past);
  EXPECT_EQ(queue.flush(past), Outcome::spooled);
  daemon_.failures = 1'000'000;
  EXPECT_EQ(flush_in_vain(queue), Outcome::spool_failed);
  EXPECT_THAT(queue.problem(), HasSubstr("its marks are lost"));
  daemon_.failures = 0;
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("b"));
}

// As if the spool's file system were not mounted: the directory is there, and empty.
TEST_F(MarkQueueTest, OtherDirectoryInPlaceOfTheSpool_IsNotTakenForSent_AndTakesNothing) {
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  queue.add(MarkKind::dir, "a", past);
  EXPECT_EQ(queue.flush(past), Outcome::spooled);
  const std::string file = "/spool/" + spooled()[0];
  const std::string content = *files_.content(file);
  const std::string of_spool = identity();
  ASSERT_TRUE(files_.remove(file));
  ASSERT_TRUE(files_.remove(of_spool));
  EXPECT_EQ(queue.flush(never), Outcome::spool_failed);
  EXPECT_THAT(queue.problem(), HasSubstr("/spool is not the directory that was opened"));
  // Another client of the daemon opens it.
  ASSERT_TRUE(open_spool().append({.paths = std::string("c\0", 2), .count = 1}));
  const std::string of_other = identity();
  ASSERT_FALSE(of_other.empty());
  EXPECT_EQ(queue.flush(never), Outcome::spool_failed);
  EXPECT_THAT(queue.problem(), HasSubstr("/spool is not the directory that was opened"));
  ASSERT_TRUE(files_.remove("/spool/" + spooled()[0]));
  queue.add(MarkKind::dir, "b", past);
  EXPECT_EQ(queue.flush(past), Outcome::spool_failed);
  EXPECT_THAT(spooled(), IsEmpty());
  ASSERT_TRUE(files_.remove(of_other));
  files_.put(file, content);
  files_.put(of_spool, "/spoor.sock");
  EXPECT_EQ(queue.flush(never), Outcome::done) << queue.problem();
  EXPECT_THAT(marked(), ElementsAre("a", "b"));
}

TEST_F(MarkQueueTest, SpoolOfAnotherDaemon_IsNotOpened) {
  ASSERT_TRUE(Spool::open(files_, "/spool", "/a.sock", 1000));
  ASSERT_TRUE(Spool::open(files_, "/spool", "/a.sock", 1000));
  const auto other = Spool::open(files_, "/spool", "/b.sock", 1000);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("/spool has marks for the daemon at /a.sock, not /b.sock"));
}

TEST_F(MarkQueueTest, NewSpoolOpenedByTwoAtOnce_IsThatOfBoth_OrOfNeitherIfTheyDiffer) {
  for (const std::string of_other : {"/a.sock", "/b.sock"}) {
    std::optional<base::Result<Spool>> other;
    bool is_first = true;
    files_.before_create = [&](const std::filesystem::path&) {
      if (std::exchange(is_first, false)) other.emplace(Spool::open(files_, "/spool", of_other, 1000));
    };
    auto spool = Spool::open(files_, "/spool", "/a.sock", 1000);
    ASSERT_TRUE(other);
    EXPECT_TRUE(*other) << "it was the first to write";
    EXPECT_EQ(spool.has_value(), of_other == "/a.sock");
    if (spool) {
      EXPECT_TRUE((*other)->append({.paths = std::string("a\0", 2), .count = 1}));
      EXPECT_TRUE(spool->append({.paths = std::string("b\0", 2), .count = 1}));
    }
    EXPECT_TRUE(Spool::open(files_, "/spool", of_other, 1000));
    for (const std::string& name : files_.names_in("/spool")) ASSERT_TRUE(files_.remove("/spool/" + name));
  }
}

// The other client has sent a part of it, and has put another file in its place.
TEST_F(MarkQueueTest, SpoolFileShortenedByAnotherClient_IsNotTakenForSent) {
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  for (const char* path : {"bad", "a"}) queue.add(MarkKind::dir, path, past);
  EXPECT_EQ(queue.flush(past), Outcome::spooled);
  {
    auto other_spool = open_spool();
    auto other = make_queue(&other_spool);
    daemon_.allowed = 1;
    EXPECT_EQ(flush_in_vain(other), Outcome::refused);
  }
  daemon_.allowed = 1'000'000;
  EXPECT_THAT(marked(), IsEmpty());
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

TEST_F(MarkQueueTest, SpoolWithoutRoomForTheRestOfAFile_KeepsIt) {
  auto spool = open_spool(30);
  auto queue = make_queue(&spool);
  for (const char* path : {"bad", "a"}) queue.add(MarkKind::dir, path, past);
  EXPECT_EQ(queue.flush(past), Outcome::spooled);
  const auto files = spooled();
  daemon_.allowed = 1;
  EXPECT_EQ(flush_in_vain(queue), Outcome::refused);
  EXPECT_EQ(spooled(), files);
  daemon_.allowed = 1'000'000;
  EXPECT_EQ(queue.flush(never), Outcome::refused) << "again";
  EXPECT_THAT(marked(), ElementsAre("a"));
}

// While this client sends a file, another client does, too, and another thread writes to the spool.
TEST_F(MarkQueueTest, SpoolFileThatTwoClientsSend_IsTheOnlyOneRemoved) {
  auto spool = open_spool(200);  // few bytes until it looks again
  std::function<void()> meanwhile;
  MarkQueue queue(
      {.spool = &spool},
      [&](const MarkBatch& batch, Deadline) {
        if (const auto call = std::exchange(meanwhile, nullptr)) call();
        return daemon_.respond(batch);
      },
      [](const std::string&) {});
  for (const char* path : {"a", "b"}) {
    queue.add(MarkKind::dir, path, past);
    EXPECT_EQ(queue.flush(past), Outcome::spooled);
  }
  const auto files = spooled();
  ASSERT_EQ(files.size(), 2U);
  meanwhile = [&] {
    EXPECT_TRUE(files_.remove("/spool/" + files[0]));
    queue.add(MarkKind::dir, "c", past);
    EXPECT_EQ(queue.flush(past), Outcome::spooled);
    EXPECT_EQ(spooled().size(), 2U);
  };
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(spooled(), IsEmpty());
}

TEST_F(MarkQueueTest, PathRefusedWhenTheSpoolIsSent_IsToldToTheThreadThatMarkedIt) {
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  queue.add(MarkKind::dir, "bad", past);
  EXPECT_EQ(queue.flush(past), Outcome::spooled);
  Outcome of_other = Outcome::done;
  std::thread([&] { of_other = queue.flush(never); }).join();
  EXPECT_EQ(of_other, Outcome::refused);
  EXPECT_EQ(queue.flush(never), Outcome::refused);
  EXPECT_EQ(queue.flush(never), Outcome::done);
}

TEST_F(MarkQueueTest, RefusalAndSpool_TheRefusalIsTold) {
  auto spool = open_spool();
  auto queue = make_queue(&spool);
  queue.add(MarkKind::dir, "bad", past);
  queue.add(MarkKind::dir, "good", past);
  daemon_.allowed = 1;
  EXPECT_EQ(flush_in_vain(queue), Outcome::refused);
  EXPECT_EQ(spooled().size(), 1U);
  daemon_.allowed = 1'000'000;
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("good"));
}

// A flush that times out over it keeps what it has done.
TEST_F(MarkQueueTest, SpoolFileWithManyRefusedPaths_Drains) {
  auto spool = open_spool();
  MarkQueue queue(
      {.spool = &spool}, [this](const MarkBatch& batch, Deadline) { return daemon_.respond(batch); },
      [](const std::string&) {});
  for (int i = 0; i < 50; ++i) {
    queue.add(MarkKind::dir, "bad", past);
    queue.add(MarkKind::dir, "path-" + std::to_string(i), past);
  }
  EXPECT_EQ(queue.flush(past), Outcome::spooled);
  ASSERT_EQ(spooled().size(), 1U);
  daemon_.allowed = 10;
  for (std::uint64_t refused = 0; refused < 50; refused = queue.figures().refused) {
    EXPECT_EQ(queue.figures().refused, refused);
    EXPECT_EQ(flush_in_vain(queue), Outcome::refused);
    ASSERT_GT(queue.figures().refused, refused) << "no progress";
  }
  EXPECT_EQ(queue.figures().refused, 50U) << "none twice";
  daemon_.allowed = 1'000'000;
  EXPECT_EQ(queue.flush(never), Outcome::done);
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
TEST_F(MarkQueueTest, SpoolOnAFailingDisk_LosesNothingThatItReportedAsSpooled) {
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
