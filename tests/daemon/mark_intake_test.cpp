// The steps that every source of marks shares.
#include "daemon/api/mark_intake.h"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <future>

#include "tests/daemon/stepped_node.h"

namespace spoor::daemon {
namespace {

using tracker::MarkKind;

// Of a node that no member has recorded.
class NewNodeIntakeTest : public SteppedNode {
 protected:
  ~NewNodeIntakeTest() override {
    for (boost::asio::thread_pool* const pool : {&pool_, &large_bodies_}) pool->join();
  }

  // Empty until it is done.
  auto take(MarkIntake::Source source) {
    const auto taken = begin(intake_.take(std::move(source), 10, "me"));
    poll();
    return taken;
  }

  static MarkIntake::Source source_of(std::string path) {
    return [path = std::move(path)](MarkBatch& batch) -> std::optional<Problem> {
      EXPECT_TRUE(batch.add(path, MarkKind::dir));
      return std::nullopt;
    };
  }

  const tracker::NamespaceRules rules_{{.exclude = {"*.tmp"}}};
  boost::asio::thread_pool large_bodies_{1};
  GroupCommit group_commit_{context_, pool_, *persistence_, snapshot_scheduler_, clock_, timers_};
  Introduction introduction_{context_, pool_, *persistence_, "node", std::chrono::hours(12), clock_, timers_};
  MarkIntake intake_{context_,      large_bodies_, *persistence_, rules_, tracker::DrivePaths({"/mnt/1"}),
                     group_commit_, introduction_, clock_};
};

class MarkIntakeTest : public NewNodeIntakeTest {
 protected:
  MarkIntakeTest() { introduction_.open_alone(); }
};

TEST_F(NewNodeIntakeTest, NoMemberResponds_MarksAreMadeAndNotAcknowledged) {
  const auto taken = take(source_of("a/b"));
  settle();
  EXPECT_FALSE(*taken) << "the members may be starting, too";
  pass(std::chrono::seconds(5));
  ASSERT_TRUE(*taken && !**taken);
  EXPECT_EQ((*taken)->error().code, "not_a_member");
  EXPECT_TRUE(is_dirty("a/b"));
}

TEST_F(NewNodeIntakeTest, MemberResponds_WaitingMarksAreAcknowledged) {
  const auto taken = take(source_of("a/b"));
  run(introduction_.take(
      {.began_at = introduction_.now(), .met = {{"b", tracker::InstanceId::random()}}, .are_all = true}));
  ASSERT_TRUE(*taken && **taken);
}

TEST_F(MarkIntakeTest, Paths_AreNormalisedAndFiltered) {
  const auto taken = take([](MarkBatch& batch) -> std::optional<Problem> {
    EXPECT_EQ(batch.add("/a//b/", MarkKind::dir).value(), true);
    EXPECT_EQ(batch.add("a/c.tmp", MarkKind::dir).value(), false);
    EXPECT_FALSE(batch.add("a/../d", MarkKind::dir));
    EXPECT_FALSE(batch.add("/mnt/1/e", MarkKind::dir));
    ++batch.counts().ignored;
    return std::nullopt;
  });
  settle();
  ASSERT_TRUE(*taken && **taken);
  EXPECT_EQ((**taken)->marked, 1U);
  EXPECT_EQ((**taken)->ignored, 1U);
  EXPECT_TRUE(is_dirty("a/b"));
  EXPECT_FALSE(is_dirty("a/c.tmp"));
  EXPECT_FALSE(is_dirty("mnt"));
}

TEST_F(MarkIntakeTest, MarksThatAreNotDurableYet_AreNeitherAcknowledgedNorCounted) {
  std::promise<void> release;
  boost::asio::post(pool_, [released = release.get_future().share()] { released.wait(); });
  const auto taken = take(source_of("a/b"));
  EXPECT_TRUE(is_dirty("a/b"));
  EXPECT_FALSE(*taken);
  EXPECT_EQ(intake_.counters().accepted, 0U);
  EXPECT_TRUE(intake_.counters().identities.empty());
  release.set_value();
  settle();
  ASSERT_TRUE(*taken && **taken);
  EXPECT_EQ(intake_.counters().accepted, 1U);
  EXPECT_EQ(intake_.counters().identities.at("me").accepted, 1U);
  EXPECT_GE(persistence_->durable_position(), persistence_->tracker().position());
}

// They are made in parts; the last one may add nothing, and has an earlier position then.
TEST_F(MarkIntakeTest, ManyMarksThatAreNotDurableYet_AreNotAcknowledged) {
  std::promise<void> release;
  boost::asio::post(pool_, [released = release.get_future().share()] { released.wait(); });
  const auto taken = take([](MarkBatch& batch) -> std::optional<Problem> {
    for (int number = 0; number < 512; ++number)
      EXPECT_TRUE(batch.add("a/" + std::to_string(number), MarkKind::dir));
    return std::nullopt;
  });
  EXPECT_FALSE(*taken);
  release.set_value();
  settle();
  EXPECT_TRUE(*taken && **taken);
}

TEST_F(MarkIntakeTest, MarksThatCannotBecomeDurable_AreRejected) {
  files_.fail_below("/data", EIO);
  const auto taken = take(source_of("a/b"));
  settle();
  ASSERT_TRUE(*taken && !**taken);
  EXPECT_EQ((*taken)->error().code, "not_durable");
  EXPECT_EQ(intake_.counters().accepted, 0U);
  EXPECT_EQ(intake_.counters().rejected, 1U);
}

TEST_F(MarkIntakeTest, RequestWithAProblem_LeavesNothingForTheNext) {
  const auto refused = take([](MarkBatch& batch) -> std::optional<Problem> {
    EXPECT_TRUE(batch.add("a/b", MarkKind::tree));
    batch.counts().ignored = 3;
    batch.counts().unknown_events = 2;
    return Problem{400, "invalid_path", ""};
  });
  const auto taken = take(source_of("c"));
  settle();
  ASSERT_TRUE(*refused && !**refused);
  EXPECT_EQ((*refused)->error().code, "invalid_path");
  ASSERT_TRUE(*taken && **taken);
  EXPECT_EQ((**taken)->marked, 1U);
  EXPECT_EQ((**taken)->ignored, 0U);
  EXPECT_FALSE(is_dirty("a/b"));
  EXPECT_EQ(intake_.counters().rejected, 1U);
  EXPECT_EQ(intake_.counters().unknown_events, 0U);
}

// A body may hold millions: they are handed over in parts, all of them and each with its kind.
TEST_F(MarkIntakeTest, ManyMarks_AreHandedOverInOrderWithTheirKinds) {
  const tracker::DrivePaths drive_paths;
  MarkBatch batch(rules_, drive_paths);
  constexpr std::size_t count = 1000;
  for (std::size_t i = 0; i < count; ++i) {
    batch.add(std::string(1 + i % 200, 'x') + "/" + std::to_string(i), static_cast<MarkKind>(i % 3)).value();
  }
  batch.add(std::string(255, 'y') + "/" + std::string(255, 'z'), MarkKind::tree).value();
  std::size_t next = 0;
  std::size_t parts = 0;
  batch.hand_over([&](std::span<const tracker::Mark> marks) {
    ++parts;
    for (const tracker::Mark& mark : marks) {
      if (next++ == count) continue;
      EXPECT_TRUE(mark.path.ends_with("/" + std::to_string(next - 1)));
      EXPECT_EQ(mark.kind, static_cast<MarkKind>((next - 1) % 3));
    }
  });
  EXPECT_EQ(next, count + 1);
  EXPECT_GT(parts, 1U);
}

}  // namespace
}  // namespace spoor::daemon
