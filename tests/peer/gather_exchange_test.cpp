#include "peer/gather/gather_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tracker/filter/hash.h"

namespace spoor::peer {
namespace {

using testing::HasSubstr;
using tracker::Standing;

tracker::PeerBook book() {
  const auto instance = tracker::InstanceId::parse(std::string(32, 'a')).value();
  return {{{"n1", instance}, {.cycle = {5}}},
          {{"n2", instance},
           {.cycle = {7},
            .home = "http://10.0.0.2:7420",
            .standing = Standing::copied,
            .silent = std::chrono::hours(3),
            .run = std::numeric_limits<std::uint64_t>::max()}},
          {{"n3", instance}, {.cycle = {}, .standing = Standing::retired, .run = 1}}};
}

GatherQuery query() {
  GatherQuery query{.node = {"default", "n1"},
                    .instance = tracker::InstanceId::random(),
                    .members_digest = 3,
                    .timeout = std::chrono::seconds(7),
                    .book = book()};
  query.options.rules_digest = 9;
  query.options.min_cycle_age = std::chrono::milliseconds(1);
  query.options.forget_after = std::chrono::hours(5);
  query.options.own_only = true;
  query.options.has_scanned = true;
  query.options.since_last_scan = std::chrono::minutes(2);
  query.options.start_level = 4;
  query.options.read_only = true;
  return query;
}

Gathered gathered() {
  const tracker::BloomShape shape{1000, 3};
  Gathered gathered;
  for (const char* path : {"a", "b"}) {
    tracker::MarkSet marks;
    marks.add(tracker::hash_path(path), shape);
    marks.add_tree(std::string(path) + "/tree");
    EXPECT_TRUE(gathered.marks.try_add_apart(marks.packed()));
  }
  gathered.items = 2.5;
  gathered.cycle = {6};
  gathered.book = book();
  gathered.peers = {{"n1", "unix:/s", true, ""}, {"", "http://x", false, "no answer"}};
  gathered.unknown_sources = {"dns x: none"};
  gathered.gaps = {"one", "two"};
  gathered.warnings = {"moved"};
  return gathered;
}

base::Result<Gathered> decoded(std::string body) {
  return read_gathered(HttpResponse{200, "", std::move(body)});
}

TEST(GatherExchangeTest, Query_ArrivesAsItWasSent) {
  const GatherQuery sent = query();
  const HttpRequest request = gather_request({}, sent);
  EXPECT_EQ(request.target, "/v1/gather");
  const auto got = decode_gather_query(request.body);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->node, sent.node);
  EXPECT_EQ(got->instance, sent.instance);
  EXPECT_EQ(got->members_digest, sent.members_digest);
  EXPECT_EQ(got->timeout, sent.timeout);
  EXPECT_EQ(got->options.rules_digest, sent.options.rules_digest);
  EXPECT_EQ(got->options.min_cycle_age, sent.options.min_cycle_age);
  EXPECT_EQ(got->options.forget_after, sent.options.forget_after);
  EXPECT_TRUE(got->options.own_only);
  EXPECT_TRUE(got->options.has_scanned);
  EXPECT_EQ(got->options.since_last_scan, sent.options.since_last_scan);
  EXPECT_EQ(got->options.start_level, sent.options.start_level);
  EXPECT_TRUE(got->options.read_only);
  EXPECT_EQ(got->book, sent.book);
}

TEST(GatherExchangeTest, Gathered_ArrivesAsItWasSent) {
  const Gathered sent = gathered();
  const auto got = decoded(encode_gathered(sent));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->items, sent.items);
  EXPECT_EQ(got->cycle, sent.cycle);
  EXPECT_EQ(got->book, sent.book);
  ASSERT_EQ(got->peers.size(), 2U);
  EXPECT_EQ(got->peers[0].url, "unix:/s");
  EXPECT_TRUE(got->peers[0].ok);
  EXPECT_EQ(got->peers[1].error, "no answer");
  EXPECT_EQ(got->unknown_sources, sent.unknown_sources);
  EXPECT_EQ(got->gaps, sent.gaps);
  EXPECT_EQ(got->warnings, sent.warnings);
  EXPECT_EQ(got->marks.group_count(), 2U) << "the filters of two peers do not fill each other";
  EXPECT_EQ(got->marks.tree_marks(), sent.marks.tree_marks());
  for (const char* path : {"a", "b", "a/tree/x"})
    EXPECT_TRUE(got->marks.may_contain(path, tracker::hash_path(path))) << path;
  EXPECT_FALSE(got->marks.may_contain("c", tracker::hash_path("c")));
}

TEST(GatherExchangeTest, CutOffAnywhere_IsRefused) {
  const std::string asked = gather_request({}, query()).body;
  for (std::size_t bytes = 0; bytes < asked.size(); ++bytes)
    EXPECT_FALSE(decode_gather_query(asked.substr(0, bytes))) << bytes;
  EXPECT_FALSE(decode_gather_query(asked + '\0'));
  const std::string answered = encode_gathered(gathered());
  for (std::size_t bytes = 0; bytes < answered.size(); ++bytes)
    EXPECT_FALSE(decoded(answered.substr(0, bytes))) << bytes;
  EXPECT_FALSE(decoded(answered + '\0'));
}

TEST(GatherExchangeTest, AnotherVersion_IsRefusedWithAdvice) {
  std::string asked = gather_request({}, query()).body;
  asked[7] = '9';
  EXPECT_THAT(decode_gather_query(asked).error().message, HasSubstr("restart spoord"));
  std::string answered = encode_gathered(gathered());
  answered[7] = '9';
  EXPECT_THAT(decoded(answered).error().message, HasSubstr("restart spoord"));
  EXPECT_THAT(read_gathered(HttpResponse{404, "", ""}).error().message, HasSubstr("restart it"));
}

TEST(GatherExchangeTest, NumbersOutOfRange_AreRefusedOrBounded) {
  GatherQuery odd = query();
  odd.options.start_level = 64;
  EXPECT_FALSE(decode_gather_query(gather_request({}, odd).body));
  odd = query();
  odd.timeout = std::chrono::hours(100);
  odd.book.begin()->second.cycle = {tracker::CycleId::value_max + 1};
  const auto got = decode_gather_query(gather_request({}, odd).body);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->timeout, GatherQuery::timeout_max);
  EXPECT_EQ(got->book.begin()->second.cycle.value, tracker::CycleId::value_max);
}

}  // namespace
}  // namespace spoor::peer
