// What spoor-publish does while a server is down, or lacks what it needs, and when it is stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "publish/sink.h"
#include "tests/publish/http_collector.h"
#include "tests/publish/nats_server.h"
#include "tests/publish/postgres_server.h"
#include "tests/publish/published_node.h"
#include "tests/support/listening_socket.h"
#include "tests/support/loopback.h"
#include "tests/support/page_blocks.h"
#include "tests/support/random.h"
#include "tests/watch/eventually.h"

namespace spoor::publish {
namespace {

using testing::HasSubstr;

constexpr int files = 60;  // several batches

class PublishOutageTest : public testing::Test {
 protected:
  PublishOutageTest() { node_.write_and_scan("bucket", files); }

  // Each event once.
  void expect_equal_copy(const std::vector<Event>& events) {
    EXPECT_EQ(differences(node_.tree(), TreeCopy(events).tree()), "");
    EXPECT_EQ(without_repeats(events).size(), events.size());
  }

  // Waits until the server has everything.
  bool is_copied_to(EventServer& server) {
    return watch::eventually(
        [&] { return differences(node_.tree(), TreeCopy(server.events()).tree()).empty(); });
  }

  void publish_all_once() {
    const auto published = node_.publish_once();
    ASSERT_EQ(published.code, 0) << published.err;
  }

  PublishedNode node_;
};

TEST_F(PublishOutageTest, ServerComesLater_PublishesEverything) {
  HttpCollector collector("batched");
  node_.set_sinks({collector.sink()});
  collector.refuse_connections();
  node_.start();
  EXPECT_THAT(node_.publisher().wait_for("the sink 's0' fails: "), HasSubstr("; retries"));
  collector.restore();
  EXPECT_TRUE(is_copied_to(collector));
  expect_equal_copy(collector.events());
  EXPECT_EQ(node_.stop(), 0);
}

// The first server accepts connections and does not respond: the timeout of its sink is 30 s.
TEST_F(PublishOutageTest, OneServerHangs_TheOtherSinkIsNotDelayed) {
  const support::ListeningSocket hangs;
  HttpCollector collector("batched");
  node_.set_sinks({{{"url", "http://" + support::own_loopback() + ":" + std::to_string(hangs.port())}},
                   collector.sink()});
  node_.start();
  EXPECT_TRUE(collector.wait_for_events(files));
  EXPECT_TRUE(is_copied_to(collector));
  node_.write_and_scan("later", files);
  EXPECT_TRUE(is_copied_to(collector));
  EXPECT_THAT(node_.publisher().log(), testing::Not(HasSubstr("'s1' fails")));
}

// The response to some batches is lost, and then the process: exactly these are there twice, in their places.
TEST_F(PublishOutageTest, KilledAfterABatchWasStored_RepeatsExactlyThisBatch) {
  HttpCollector collector("batched");
  node_.set_sinks({collector.sink()});
  constexpr std::size_t kills = 5;
  for (std::size_t kill = 1; kill <= kills; ++kill) {
    collector.drop_response(1);
    node_.start();
    ASSERT_TRUE(collector.wait_for_dropped_response());
    node_.kill();
    collector.refuse_connections();  // what the process sent last is not stored later
    collector.restore();
  }
  publish_all_once();
  auto batches = collector.batches();
  for (const auto& batch : batches) EXPECT_LE(batch.size(), PublishedNode::batch);
  const auto is_same = [](const auto& one, const auto& other) {
    return std::ranges::equal(one, other, {}, &Event::id, &Event::id);
  };
  const std::size_t stored = batches.size();
  batches.erase(std::ranges::unique(batches, is_same).begin(), batches.end());
  EXPECT_EQ(stored - batches.size(), kills);
  std::vector<Event> events;
  for (const auto& batch : batches) events.insert(events.end(), batch.begin(), batch.end());
  expect_equal_copy(events);
}

// The directory changes again before its replacement is published once more: the event of the file in it must
// not come before it.
TEST_F(PublishOutageTest, KilledAfterAReplacementWasStored_ConsumersThatDropRepeatsLoseNothing) {
  HttpCollector collector("batched");
  node_.set_sinks({collector.sink()});
  publish_all_once();
  std::filesystem::remove_all(node_.drive() / "bucket");
  node_.write_and_scan("bucket/below", 2);
  collector.drop_response();
  node_.start();
  ASSERT_TRUE(collector.wait_for_dropped_response());
  node_.kill();
  collector.refuse_connections();
  collector.restore();
  node_.write_and_scan("bucket", 1);
  publish_all_once();
  EXPECT_EQ(differences(node_.tree(), TreeCopy(collector.events()).tree()), "");
  expect_equal_copy(without_repeats(collector.events()));
}

TEST_F(PublishOutageTest, Sigterm_FinishesTheBatchAndRepeatsNothing) {
  HttpCollector collector("batched");
  node_.set_sinks({collector.sink()});
  for (int stops = 5; stops > 0; --stops) {
    const std::size_t before = collector.events().size();
    collector.hold_responses(true);
    node_.start();
    ASSERT_TRUE(collector.wait_for_events(before + 1));
    node_.publisher().signal(SIGTERM);
    collector.hold_responses(false);
    EXPECT_EQ(node_.stop(), 0);
    node_.write_and_scan("more" + std::to_string(stops), files);
  }
  publish_all_once();
  expect_equal_copy(collector.events());
}

TEST_F(PublishOutageTest, Once_PublishesWhatIsThereAndReportsFailures) {
  HttpCollector collector("batched");
  node_.set_sinks({collector.sink()});
  collector.refuse_connections();
  const auto failed = node_.publish_once();
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.err, HasSubstr("s0: "));
  collector.restore();
  publish_all_once();
  expect_equal_copy(collector.events());
  const std::size_t requests = collector.batches().size();
  publish_all_once();
  EXPECT_EQ(collector.batches().size(), requests) << "nothing is new";
}

TEST_F(PublishOutageTest, NatsWithoutStream_ReportsTheSubjectAndWorksOnceThereIsOne) {
  std::signal(SIGHUP, SIG_DFL);  // nohup(1) has it ignored, and then so does spoor-publish
  NatsServer server;
  node_.set_sinks({server.sink()});
  node_.start();
  EXPECT_THAT(
      node_.publisher().wait_for("the sink 's0' fails: "),
      HasSubstr("no stream stores the subject spoor.changes: create one, for example by 'nats stream add "
                "--subjects spoor.changes'"));
  server.create_stream();
  EXPECT_TRUE(is_copied_to(server));
  expect_equal_copy(server.events());
  EXPECT_EQ(node_.stop(SIGHUP), 0);
}

TEST_F(PublishOutageTest, NatsKilledBeforeItReadsABatch_LosesNothing) {
  NatsServer server;
  server.create_stream();
  node_.set_sinks({server.sink()});
  node_.start();
  // The frozen server takes no new connection: the one that there is must be kept.
  ASSERT_TRUE(watch::eventually([&] { return node_.has_published_all(); }));
  server.freeze();
  node_.write_and_scan("later", files);
  ASSERT_TRUE(watch::eventually([&] { return server.has_unread_input(); }));
  server.kill();
  server.start();
  EXPECT_TRUE(is_copied_to(server));
  publish_all_once();
  expect_equal_copy(server.events());
}

TEST_F(PublishOutageTest, PostgresWithAnotherEncoding_ReportsIt) {
  const PostgresServer server("SQL_ASCII");
  node_.set_sinks({server.sink()});
  const auto failed = node_.publish_once();
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.err,
              HasSubstr("the database has the encoding SQL_ASCII: create one with ENCODING 'UTF8'"));
}

// The publisher waits for the server when the signal arrives.
TEST_F(PublishOutageTest, SigtermWhilePostgresHangs_EndsAndLosesNothing) {
  PostgresServer server;
  node_.set_sinks({server.sink()});
  server.freeze();
  node_.start();
  EXPECT_NE(node_.publisher().wait_for("publishes to "), "");
  node_.publisher().signal(SIGTERM);
  server.thaw();
  EXPECT_EQ(node_.stop(), 0);
  publish_all_once();
  expect_equal_copy(server.events());
}

TEST_F(PublishOutageTest, PostgresSchemaIsGone_StartsOver) {
  PostgresServer server;
  node_.set_sinks({server.sink()});
  publish_all_once();
  server.query("DROP SCHEMA spoor CASCADE");
  node_.write_and_scan("later", 1);
  publish_all_once();
  expect_equal_copy(server.events());
}

TEST(PostgresSinkTest, ServerIsDownAfterAStartOver_NeedsNoOther) {
  PostgresServer server;
  const base::SystemClock clock;
  const nlohmann::json url = server.sink();
  const auto sink = make_postgres_sink({.settings = {.url = url["url"], .user = url["user"]}}, clock);
  const Source source{"cluster", "node", "feed"};
  const std::array change{make_event(source, {.path = "a", .scan = 1, .is_there = true}, "")};
  ASSERT_TRUE(sink->publish(source, std::array{make_reset(source, 1, "start")}));
  server.query("DELETE FROM spoor.sources");
  EXPECT_FALSE(sink->publish(source, change));
  EXPECT_TRUE(sink->needs_reset());
  ASSERT_TRUE(sink->publish(source, std::array{make_reset(source, 1, "again")}));
  server.kill();
  EXPECT_FALSE(sink->publish(source, change));
  EXPECT_FALSE(sink->needs_reset());
}

// Its last statements may still arrive: they must not be stored after those of a later attempt.
TEST_F(PublishOutageTest, AttemptThatWasGivenUp_EndsBeforeTheNextBegins) {
  PostgresServer server;
  node_.set_sinks({server.sink()});
  publish_all_once();
  const auto given_up = server.connect();
  ASSERT_EQ(server.query("SELECT * FROM spoor.sources").size(), 1U);
  PQclear(PQexec(given_up.get(), "BEGIN; SELECT * FROM spoor.sources FOR UPDATE"));
  node_.write_and_scan("later", files);
  node_.start();
  EXPECT_TRUE(watch::eventually([&] {
    return !server
                .query(
                    "SELECT pid FROM pg_stat_activity WHERE application_name = 'spoor-publish' AND "
                    "wait_event_type = 'Lock'")
                .empty();
  }));
  EXPECT_NE(differences(node_.tree(), TreeCopy(server.events()).tree()), "");
  PQclear(PQexec(given_up.get(), "ROLLBACK"));
  EXPECT_TRUE(is_copied_to(server));
  EXPECT_EQ(node_.stop(), 0);
}

// An index row of PostgreSQL has at most 2,704 bytes. Random, for it compresses them.
TEST(PostgresTotalsTest, AnyPath_IsStored) {
  const PostgresServer server;
  const base::SystemClock clock;
  const nlohmann::json url = server.sink();
  const auto sink = make_postgres_sink({.settings = {.url = url["url"], .user = url["user"]}}, clock);
  const Source source{"cluster", "node", "feed"};
  support::Random random;
  std::string text;
  std::string bytes;
  for (int i = 0; i < 8'000; ++i) {
    text += static_cast<char>('a' + random.below(26));
    bytes += static_cast<char>(0x80 + random.below(0x40));
  }
  // The last two look alike once they are escaped.
  const std::vector<std::string> paths{"",    "plain",      text,         text + "/a", text + "/b",
                                       bytes, bytes + "/a", bytes + "/b", "\xff",      "\\xff"};
  std::vector<DirectoryTotals> totals;
  for (const std::string& path : paths) totals.push_back({.path = path, .files = 1});
  ASSERT_TRUE(sink->publish(source, std::array{make_reset(source, 1, "start")}));
  for (const std::uint64_t scan : {1U, 2U}) {
    for (DirectoryTotals& each : totals) ++each.files;
    scanner::ScanRecord record;
    record.id = scan;
    const auto stored = sink->store_totals(source, record, totals, true);
    ASSERT_TRUE(stored) << stored.error().message;
  }
  EXPECT_EQ(server.query("SELECT DISTINCT path FROM spoor.usage_now WHERE files = 3").size(), paths.size());
  EXPECT_EQ(server.query("SELECT path FROM spoor.usage").size(), 2 * paths.size());
}

TEST_F(PublishOutageTest, StatementsOfThePage_Work) {
  PostgresServer server;
  node_.set_sinks({server.sink()});
  publish_all_once();
  std::vector<std::string> statements;
  for (std::string text : support::page_blocks(DOCS "/publish.md", "PostgreSQL", "sql")) {
    for (std::size_t end = text.find(";\n"); end != std::string::npos; end = text.find(";\n")) {
      statements.push_back(text.substr(0, end));
      text.erase(0, end + 2);
    }
  }
  ASSERT_EQ(statements.size(), 4U);
  for (const std::string& statement : statements) EXPECT_NO_THROW(server.query(statement)) << statement;
  EXPECT_EQ(server.query(statements[2]).size(), static_cast<std::size_t>(files)) << "the files of the bucket";
  EXPECT_EQ(server.query(statements[3]).size(), 2U) << "the root, and the bucket";
}

}  // namespace
}  // namespace spoor::publish
