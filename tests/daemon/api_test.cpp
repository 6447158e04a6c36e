#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "peer/gather/cycle_frame.h"
#include "tests/daemon/api_fixture.h"
#include "tracker/cycles/member_marks.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;

// Keeps a pool of one thread from doing anything.
class Held {
 public:
  explicit Held(asio::thread_pool& pool) {
    asio::post(pool, [released = release_.get_future().share()] { released.wait(); });
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { release(); }
  void release() {
    if (!std::exchange(is_released_, true)) release_.set_value();
  }

 private:
  std::promise<void> release_;
  bool is_released_ = false;
};

TEST_F(ApiTest, MemberInACycleRequest_IsRecordedDurablyBeforeTheResponse) {
  start();
  const tracker::PeerId member{"rack/n2", tracker::InstanceId::random()};
  const std::string body = R"({"cluster":"default","marks":false,"member":{"name":")" + member.name +
                           R"(","instance":")" + member.instance.to_string() + R"("}})";
  Held disk(disk_);
  Asked& asked = ask("POST", "/v1/peer/cycle", body);
  EXPECT_FALSE(asked.answer);
  disk.release();
  wait_for(asked);
  EXPECT_EQ(asked.answer->status, 200U);
  EXPECT_GE(persistence_->durable_position(), persistence_->tracker().position());
  const auto recorded = tracker::member_marks(*persistence_->tracker().state().current_marks).joined;
  EXPECT_THAT(recorded, testing::ElementsAre(testing::Key(member)));
}

// A node that retires, and what it hands on.
class AdoptTest : public ApiTest {
 protected:
  AdoptTest() {
    frame_.sender = {"default", "n2"};
    frame_.answer.instance = tracker::InstanceId::random();
    frame_.answer.current = {5};
    frame_.answer.marks.add_tree("bucket/adopted");
  }

  Asked& adopt(const Caller& caller = {}) {
    frame_.rules_digest = is_of_other_rules_ ? 1 : rules_.digest();
    return ask("POST", "/v1/peer/adopt", peer::encode_cycle_frame(frame_), "", caller,
               {{"run", "7"}, {"from", "3"}});
  }

  void expect_refusal(unsigned status, const std::string& code, const Caller& caller = {}) {
    Asked& asked = adopt(caller);
    if (!asked.answer) wait_for(asked);
    EXPECT_EQ(asked.answer->status, status) << asked.answer->body;
    EXPECT_THAT(asked.answer->body, HasSubstr(code));
    EXPECT_FALSE(is_dirty("bucket/adopted")) << "a refusal means that nothing was adopted";
  }

  peer::CycleFrame frame_;
  bool is_of_other_rules_ = false;
};

TEST_F(AdoptTest, Marks_AreDurableBeforeTheResponse) {
  start();
  Held disk(disk_);
  Asked& asked = adopt();
  while (!is_dirty("bucket/adopted")) settle();
  EXPECT_FALSE(asked.answer);
  disk.release();
  wait_for(asked);
  EXPECT_EQ(asked.answer->status, 200U);
  EXPECT_EQ(asked.answer->body, R"({"node":"n1"})");
  EXPECT_GE(persistence_->durable_position(), persistence_->tracker().position());
  const auto state = persistence_->tracker().state();
  const auto retired = tracker::member_marks(*state.history.back().marks).retired;
  EXPECT_THAT(retired, testing::ElementsAre(testing::Pair(tracker::PeerId{"n2", frame_.answer.instance},
                                                          tracker::Retired{7, {3}})));
}

TEST_F(AdoptTest, JournalFails_IsNoRefusal) {
  start();
  files_.fail_below("/data", EIO);
  Asked& asked = adopt();
  wait_for(asked);
  EXPECT_EQ(asked.answer->status, 503U) << "the marks may be there";
}

TEST_F(AdoptTest, WhatIsNotForThisNode_IsRefused) {
  start();
  Caller stranger;
  stranger.certificate_names = {"n3.example"};
  expect_refusal(403, "forbidden", stranger);
  is_of_other_rules_ = true;
  expect_refusal(409, "other_rules");
  is_of_other_rules_ = false;
  frame_.sender = {"default", "n1"};
  expect_refusal(409, "wrong_node");
  frame_.sender = {"another", "n2"};
  expect_refusal(409, "wrong_node");
  Asked& garbage = ask("POST", "/v1/peer/adopt", "garbage");
  wait_for(garbage);
  EXPECT_EQ(garbage.answer->status, 400U);
}

TEST_F(AdoptTest, MoreThanThisNodeAdopts_IsRefused) {
  start();
  frame_.answer.marks.add(tracker::hash_path("bucket"), tracker::BloomShape::for_items(200'000'000, 1e-6));
  frame_.answer.marks = frame_.answer.marks.packed();
  expect_refusal(413, "too_large");
}

TEST_F(AdoptTest, NodeThatRetires_AdoptsNothing) {
  start();
  ASSERT_TRUE(persistence_->note_membership(tracker::Membership::retiring));
  expect_refusal(409, "not_a_member");
  Asked& marked = mark("bucket/a");
  wait_for(marked);
  EXPECT_EQ(marked.answer->status, 503U);
  EXPECT_THAT(marked.answer->body, HasSubstr("has retired"));
  EXPECT_EQ(ask("GET", "/readyz").answer->status, 503U);
}

// Between the check and the marks: they may be missing in what this node has handed on.
TEST_F(AdoptTest, NodeThatRetiresMeanwhile_IsNoAcknowledgement) {
  start();
  Held disk(disk_);
  Asked& asked = adopt();
  while (!is_dirty("bucket/adopted")) settle();
  ASSERT_TRUE(persistence_->note_membership(tracker::Membership::retiring));
  disk.release();
  wait_for(asked);
  EXPECT_EQ(asked.answer->status, 503U);
}

// What another request marked a moment ago is not on the disk yet either.
TEST_F(ApiTest, KnownMark_EarlierMarkNotYetDurable_WaitsForIt) {
  start();
  Held disk(disk_);
  Asked& first = mark("b/a");
  Asked& known = mark("b/a");
  EXPECT_FALSE(first.answer);
  EXPECT_FALSE(known.answer);
  disk.release();
  wait_for(first);
  wait_for(known);
  EXPECT_EQ(first.answer->body, R"({"marked":1,"ignored":0,"cycle":1})");
  EXPECT_EQ(known.answer->status, 200U);
  Held later(disk_);
  const auto at_once = mark("b/a").answer;
  ASSERT_TRUE(at_once) << "there is nothing to wait for";
  EXPECT_EQ(at_once->status, 200U);
  Asked& fresh = mark("b/new");
  EXPECT_FALSE(fresh.answer);
  later.release();
  wait_for(fresh);
}

TEST_F(ApiTest, KnownMark_JournalWriteFails_IsNotAcknowledged) {
  start();
  Held disk(disk_);
  Asked& first = mark("b/a");
  Asked& known = mark("b/a");
  files_.fail_below("/data", EIO);
  disk.release();
  wait_for(first);
  wait_for(known);
  EXPECT_EQ(first.answer->status, 503U);
  EXPECT_EQ(known.answer->status, 503U);
}

TEST_F(ApiTest, DirtyOfAPathThatWasMarkedForADrive_IsTrue) {
  start();
  save();  // the drive gets its id
  Asked& marked = ask("POST", "/v1/marks", "a/b", "text/plain", {}, {{"drive", "/mnt/1"}});
  wait_for(marked);
  EXPECT_FALSE(is_dirty("a/b")) << "on all drives";
  const Asked& asked = ask("GET", "/v1/dirty", "", "", {}, {{"path", "a/b"}});
  EXPECT_THAT(asked.answer.value().body, HasSubstr(R"("dirty":true,"latest_cycle":1)"));
  const Asked& since = ask("GET", "/v1/dirty", "", "", {}, {{"path", "a/b"}, {"since", "2"}});
  EXPECT_THAT(since.answer.value().body, HasSubstr(R"("dirty":false,"latest_cycle":null)"));
}

// A crash would undo it, after peers have taken it for open.
TEST_F(ApiTest, CycleWhileTheJournalFails_IsNotOpened) {
  start();
  files_.fail_below("/data", EIO);
  fail_drives();
  Asked& marked = mark("b/a");
  wait_for(marked);
  EXPECT_EQ(marked.answer->status, 503U);
  Asked& asked = ask("POST", "/v1/peer/cycle", R"({"cluster":"default","current":9})");
  wait_for(asked);
  EXPECT_EQ(persistence_->tracker().status().current.value, 1U);
}

// One reader with many threads took all places.
TEST_F(ApiTest, SlowRequestsOfOneClient_LeavePlacesForOthers) {
  start();
  Held disk(disk_);
  Held reading(reading_);
  const Caller one{.address = "10.0.0.1"};
  const Caller others[] = {{.address = "10.0.0.2"}, {.unix_peer = UnixPeer{0, {}}}};
  const auto expect_share = [&](std::size_t share, const auto&... request) {
    for (std::size_t i = 0; i < share; ++i) {
      const Asked& waits = ask(request..., "text/plain", one);
      ASSERT_FALSE(waits.answer) << i << waits.answer->body;
    }
    const Asked& refused = ask(request..., "text/plain", one);
    ASSERT_TRUE(refused.answer);
    EXPECT_EQ(refused.answer->problem, "overloaded");
    for (const Caller& other : others) EXPECT_FALSE(ask(request..., "text/plain", other).answer);
  };
  expect_share(8, "GET", "/v1/scans", "");
  expect_share(8, "POST", "/v1/snapshot", "");
  expect_share(4, "GET", "/metrics", "");
  disk.release();
  reading.release();
  for (Asked& each : asked_) wait_for(each);
}

std::string lines(std::size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) text += "bucket/directory-" + std::to_string(i) + '\n';
  return text + "bucket/last\n";
}

// An 8 MiB body held the only thread for 20 s: health checks failed, and the watchdog came near.
TEST_F(ApiTest, LargeBody_WhileItIsRead_OtherRequestsAreServed) {
  start();
  Held reading(large_bodies_);
  Asked& large = mark(lines(MarkBatch::small_body_bytes));
  Asked& other = ask("GET", "/livez");
  ASSERT_TRUE(other.answer);
  EXPECT_EQ(other.answer->status, 200U);
  EXPECT_FALSE(large.answer);
  EXPECT_FALSE(is_dirty("bucket/last"));
  reading.release();
  wait_for(large);
  EXPECT_EQ(large.answer->status, 200U);
  EXPECT_TRUE(is_dirty("bucket/last"));
}

TEST_F(ApiTest, BodyWithManyExcludeGlobs_CountsAsLarge) {
  std::vector<std::string> globs;
  for (int i = 0; i < 40; ++i) globs.push_back("*/x" + std::to_string(i) + "/*");
  start(tracker::NamespaceRules({globs, false}));
  Held reading(large_bodies_);
  Asked& costly = mark(lines(MarkBatch::small_body_bytes / 4));
  Asked& cheap = mark("b/a");
  wait_for(cheap);
  EXPECT_FALSE(costly.answer);
  reading.release();
  wait_for(costly);
  EXPECT_EQ(costly.answer->status, 200U);
}

TEST_F(ApiTest, LargeBody_OneInvalidPath_MarksNothing) {
  start();
  Asked& large = mark(lines(MarkBatch::small_body_bytes) + "a/../b\n");
  wait_for(large);
  EXPECT_EQ(large.answer->status, 400U);
  EXPECT_FALSE(is_dirty("bucket"));
}

// It is marked in parts; the acknowledgement is for the last of them, too.
TEST_F(ApiTest, LargeBody_IsAcknowledgedOnceAllOfItIsInTheJournal) {
  start();
  Held disk(disk_);
  Asked& large = mark(lines(MarkBatch::small_body_bytes));
  while (!is_dirty("bucket/last")) std::this_thread::yield();
  settle();
  EXPECT_FALSE(large.answer);
  disk.release();
  wait_for(large);
  EXPECT_EQ(large.answer->status, 200U);
  EXPECT_GE(persistence_->durable_position(), persistence_->tracker().position());
}

// The log as a text, for as long as it lives.
class LogCapture {
 public:
  LogCapture() {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  ~LogCapture() { spdlog::set_default_logger(before_); }
  std::string take() {
    spdlog::default_logger()->flush();
    std::string text = text_.str();
    text_.str({});
    return text;
  }

 private:
  std::ostringstream text_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

// Any writer of the store can send as many as it likes.
TEST_F(ApiTest, InvalidS3Keys_AreLoggedOnceAMinute) {
  start();
  LogCapture log;
  const auto send = [&] {
    Asked& asked = ask("POST", "/v1/events/s3",
                       R"({"Records":[{"eventName":"s3:Nobody:Knows"},{"eventName":"ObjectCreated:Put",)"
                       R"("s3":{"bucket":{"name":"b"},"object":{"key":"../\n\u001b[2J"}}}]})",
                       "application/json");
    wait_for(asked);
    EXPECT_EQ(asked.answer->status, 200U);
  };
  send();
  EXPECT_TRUE(is_dirty("b/any")) << "what is above such a key";
  const std::string first = log.take();
  EXPECT_THAT(first, HasSubstr(R"(b/../\x0a\x1b[2J)"));
  EXPECT_THAT(first, HasSubstr(": 1 that were not reported yet"));
  EXPECT_THAT(first, HasSubstr("S3 events named 's3:Nobody:Knows'"));
  for (int i = 0; i < 10; ++i) send();
  EXPECT_THAT(log.take(), testing::Not(HasSubstr("S3 events")));
  clock_.advance(std::chrono::seconds(61));
  send();
  EXPECT_THAT(log.take(), HasSubstr(": 11 that were not reported yet"));
  Asked& metrics = ask("GET", "/metrics");
  wait_for(metrics);
  EXPECT_THAT(metrics.answer->body, HasSubstr("\nspoor_s3_events_invalid_key_total 12\n"));
}

// As a scan and spoor-watch do it, with what is on the drive.
TEST_F(ApiTest, WatchSync_EndsWithTheReportOfTheCookie) {
  start();
  save();
  const auto with_node = [this](const std::string& cluster) {
    return nlohmann::json{
        {"cluster", cluster}, {"node", node_.node}, {"drives", {"/mnt/1"}}, {"timeout_ms", 1000}}
        .dump();
  };
  Asked& sync = ask("POST", "/v1/watch/sync", with_node("default"));
  EXPECT_EQ(ask("POST", "/v1/watch/sync", with_node("other")).answer->status, 409U);
  EXPECT_FALSE(sync.answer);
  EXPECT_EQ(ask("POST", "/v1/watch", "{}").answer->status, 400U);
  EXPECT_EQ(ask("POST", "/v1/watch", std::string(300'000, ' ')).answer->status, 413U);
  const peer::WatchedDrive other{.drive = "/other", .is_watched = true};
  EXPECT_EQ(ask("POST", "/v1/watch", peer::watched_drive_json(other).dump()).answer->status, 404U);
  const peer::WatchedDrive failing{.drive = "/mnt/1", .error = "overlayfs"};
  EXPECT_EQ(ask("POST", "/v1/watch", peer::watched_drive_json(failing).dump()).answer->status, 200U);
  wait_for(sync);
  EXPECT_EQ(sync.answer->body, R"({"drives":[{"path":"/mnt/1","error":"overlayfs","gap":null}]})");
  EXPECT_EQ(ask("POST", "/v1/watch/sync", "[]").answer->status, 400U);
}

TEST_F(ApiTest, DriveThatIsNotWatched_IsAReason) {
  start();
  save();
  EXPECT_EQ(ask("GET", "/readyz").answer->status, 200U);
  watched_.set_watched({"/mnt/1"});
  EXPECT_THAT(ask("GET", "/readyz").answer->body, HasSubstr("/mnt/1 is not watched"));
  const peer::WatchedDrive drive{.drive = "/mnt/1", .is_watched = true};
  EXPECT_EQ(ask("POST", "/v1/watch", peer::watched_drive_json(drive).dump()).answer->status, 200U);
  EXPECT_EQ(ask("GET", "/readyz").answer->status, 200U);
}

}  // namespace
}  // namespace spoor::daemon
