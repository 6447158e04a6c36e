// Batches and repetition.
#include "client/mark_queue.h"

#include <functional>
#include <new>
#include <thread>
#include <vector>

#include "tests/client/mark_queue_fixture.h"
#include "tests/support/sanitizer.h"

namespace spoor::client {
namespace {

using testing::ElementsAre;

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
  daemon_.intercept = [&](const MarkBatch&) -> std::optional<peer::MarkReply> {
    if (++requests == 2) return peer::MarkReply{.problem = "it is down", .may_retry = true};
    if (requests == 3) throw std::bad_alloc();  // before its second attempt
    return std::nullopt;
  };
  auto queue = make_queue();
  for (const char* path : {"a", "bad"}) queue.add(MarkKind::dir, path, past);
  EXPECT_THROW(queue.flush(never), std::bad_alloc);
  EXPECT_EQ(queue.figures().held, 1U);
  EXPECT_EQ(queue.flush(never), Outcome::refused);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

TEST_F(MarkQueueTest, DaemonWithASmallerLimit_GetsSmallerRequests) {
  daemon_.bytes_max = 7;
  auto queue = make_queue();
  for (const char* path : {"a", "b", "cdefg", "h", "i"}) queue.add(MarkKind::dir, path, past);
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_THAT(marked(), ElementsAre("a", "b", "cdefg", "h", "i"));
}

// Few requests are refused, and all of the room is used again once the limit is higher.
TEST_F(MarkQueueTest, RequestsFollowTheLimitOfTheDaemon) {
  daemon_.bytes_max = 20'000;
  auto queue = make_queue(QueueOptions());
  const auto send_all = [&] {
    for (int i = 0; i < 60'000; ++i) queue.add(MarkKind::dir, std::to_string(i), past);
    EXPECT_EQ(queue.flush(never), Outcome::done);
  };
  send_all();
  const std::size_t acknowledged = daemon_.batch_bytes.size();
  EXPECT_LT(static_cast<std::size_t>(daemon_.requests), 2 * acknowledged);
  daemon_.bytes_max = 1'000'000;
  for (int times = 0; times < 3; ++times) send_all();
  EXPECT_GT(daemon_.batch_bytes.back() + *std::prev(daemon_.batch_bytes.end(), 2), 200'000U);
}

TEST_F(MarkQueueTest, PathThatIsTooLargeByItself_IsDenied) {
  daemon_.bytes_max = 3;
  auto queue = make_queue();
  for (const char* path : {"a", "b", "long"}) queue.add(MarkKind::dir, path, past);
  EXPECT_EQ(queue.flush(never), Outcome::denied);
  EXPECT_THAT(marked(), ElementsAre("a", "b"));
  EXPECT_EQ(queue.problem(), "too large");
  EXPECT_EQ(queue.figures().held, 1U);
}

// What the daemon marks in the time of a call may be less than a batch.
TEST_F(MarkQueueTest, RequestThatTakesTooLong_IsRepeatedInSmallerOnes) {
  constexpr std::size_t in_time = 5'000;
  daemon_.bytes_in_time = in_time;
  auto queue = make_queue(QueueOptions());
  for (int i = 0; i < 10'000; ++i) queue.add(MarkKind::dir, std::to_string(i), past);
  EXPECT_EQ(queue.flush(never), Outcome::done);
  EXPECT_EQ(marked().size(), 10'000U);
}

TEST_F(MarkQueueTest, AcknowledgementOfAnotherNumber_IsNone) {
  int requests = 0;
  daemon_.intercept = [&](const MarkBatch&) -> std::optional<peer::MarkReply> {
    if (++requests > 1) return std::nullopt;
    return peer::MarkReply{.is_acknowledged = true, .marked = 2};
  };
  auto queue = make_queue();
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
  daemon_.intercept = [](const MarkBatch& batch) -> std::optional<peer::MarkReply> {
    if (!batch.paths.starts_with("bad")) throw std::bad_alloc();
    return std::nullopt;
  };
  auto queue = make_queue();
  for (const char* path : {"bad", "a"}) queue.add(MarkKind::dir, path, past);
  EXPECT_THROW(queue.flush(never), std::bad_alloc);
  EXPECT_EQ(queue.figures().held, 1U);
  daemon_.intercept = nullptr;
  EXPECT_EQ(queue.flush(never), Outcome::refused);
  EXPECT_THAT(marked(), ElementsAre("a"));
}

// What is added while a batch is being sent is not in it.
TEST_F(MarkQueueTest, MarksAddedDuringARequest_AreSentByTheNext) {
  auto queue = make_queue();
  daemon_.meanwhile = [&] { EXPECT_EQ(queue.add(MarkKind::dir, "b", past), Outcome::done); };
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
  constexpr int count = support::is_sanitized ? 1'000 : 5'000;
  std::uint64_t sent_bytes = 0;
  daemon_.intercept = [&](const MarkBatch& batch) -> std::optional<peer::MarkReply> {
    sent_bytes += batch.paths.size();
    return std::nullopt;
  };
  auto queue = make_queue(QueueOptions());
  for (int i = 0; i < count; ++i) queue.add(MarkKind::dir, "bad", past);
  queue.add(MarkKind::dir, "good", past);
  EXPECT_EQ(queue.flush(never), Outcome::refused);
  EXPECT_EQ(queue.figures().refused, std::uint64_t{count});
  EXPECT_THAT(marked(), ElementsAre("good"));
  EXPECT_LT(sent_bytes, std::uint64_t{count} * 5000);
}

}  // namespace
}  // namespace spoor::client
