// Rounds of random changes, in which spoor-publish and the server that it publishes to are killed at random
// moments: a copy that is made from the events alone equals the drive. SPOOR_PUBLISH_ROUNDS sets how many.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>
#include <thread>

#include "tests/publish/http_collector.h"
#include "tests/publish/kafka_mock.h"
#include "tests/publish/nats_server.h"
#include "tests/publish/postgres_server.h"
#include "tests/publish/published_node.h"
#include "tests/support/sanitizer.h"

namespace spoor::publish {
namespace {

struct Case {
  std::string name;
  bool file_feed = true;
  int rounds = 5;  // unless they are set
  std::function<std::unique_ptr<EventServer>()> make_server;

  friend void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }
};

std::unique_ptr<EventServer> make_nats_server() {
  auto server = std::make_unique<NatsServer>();
  server->create_stream();
  return server;
}

const std::vector<Case> cases{
    {"HttpBatches", true, 5, [] { return std::make_unique<HttpCollector>("batched"); }},
    {"HttpEvents", true, 5, [] { return std::make_unique<HttpCollector>("structured"); }},
    {"HttpOnlyDirectories", false, 5, [] { return std::make_unique<HttpCollector>("batched"); }},
    {"Nats", true, 5, make_nats_server},
    {"Kafka", true, 1, [] { return std::make_unique<KafkaMock>(); }},
    {"Postgres", true, 5, [] { return std::make_unique<PostgresServer>(); }},
};

int rounds(int unless_set) {
  const char* const set = std::getenv("SPOOR_PUBLISH_ROUNDS");
  if (set != nullptr) return std::atoi(set);
  return support::is_sanitized ? 2 : unless_set;
}

class PublishRoundsTest : public testing::TestWithParam<Case> {
 protected:
  PublishRoundsTest()
      : node_(GetParam().file_feed), server_(GetParam().make_server()), changes_(random_, node_.drive()) {
    node_.set_sinks({server_->sink()});
  }

  void run_round() {
    node_.change_and_scan(changes_, random_);
    if (!node_.is_running()) node_.start();
    wait_for_random_moment();
    kill_publisher();
    if (random_.one_in(12)) node_.forget();
    node_.start();
    wait_for_random_moment();
    kill_server();
    if (random_.one_in(3)) expect_equal_copy();
  }

  void kill_publisher() {
    node_.kill();
    ++interruptions_;
  }

  // spoor-publish notices it, and goes on by itself, unless it is killed, too.
  void kill_server() {
    server_->fail(random_);
    ++interruptions_;
    if (random_.one_in(2)) {
      wait_for_random_moment();
      kill_publisher();
    }
    server_->restore();
  }

  // The moment of a failure is random; nothing waits for what happens until then.
  void wait_for_random_moment() {
    const auto [first, last] = server_->moments();
    const auto us = [](std::chrono::microseconds time) { return static_cast<std::uint64_t>(time.count()); };
    std::this_thread::sleep_for(std::chrono::microseconds(random_.between(us(first), us(last))));
  }

  void expect_equal_copy() {
    if (node_.is_running()) kill_publisher();
    const auto published = node_.publish_once();
    ASSERT_EQ(published.code, 0) << published.err;
    const auto events = server_->events();
    const TreeCopy copy(events);
    EXPECT_EQ(differences(source(), copy.tree()), "");
    EXPECT_EQ(differences(source(), TreeCopy(without_repeats(events)).tree()), "") << "without repetitions";
    EXPECT_EQ(disorder_in(events), "");
    if (GetParam().file_feed) {
      EXPECT_EQ(changes_.missing_events(copy), "");
    }
    expect_few_repeats(events);
  }

  Tree source() {
    Tree tree = node_.tree();
    if (!GetParam().file_feed) std::erase_if(tree, [](const auto& entry) { return entry.second; });
    return tree;
  }

  // For each failure, those of the batch that was not acknowledged. They may be among others then: a batch
  // that is the first of its range is published as part of a longer range if there was a scan in between.
  void expect_few_repeats(const std::vector<Event>& events) {
    repeats_ = events.size() - without_repeats(events).size();
    events_ = events.size();
    if (server_->repeats() == EventServer::Repeats::none) {
      EXPECT_EQ(repeats_, 0U);
    }
    EXPECT_LE(repeats_, PublishedNode::batch * interruptions_);
  }

  support::Random random_;
  PublishedNode node_;
  std::unique_ptr<EventServer> server_;
  DriveChanges changes_;
  std::size_t interruptions_ = 0;
  std::size_t repeats_ = 0;
  std::size_t events_ = 0;
};

TEST_P(PublishRoundsTest, PublisherAndServerKilled_CopyFromTheEventsEqualsTheSource) {
  SCOPED_TRACE(random_.trace());
  const int last = rounds(GetParam().rounds);
  for (int round = 1; round <= last && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    run_round();
  }
  node_.kill();
  node_.change_and_scan(changes_, random_);
  expect_equal_copy();
  std::cout << "after " << interruptions_ << " failures " << events_ << " events are stored, " << repeats_
            << " of them again\n";
}

INSTANTIATE_TEST_SUITE_P(Servers, PublishRoundsTest, testing::ValuesIn(cases),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace spoor::publish
