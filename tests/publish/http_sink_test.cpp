#include "publish/http_sink.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace spoor::publish {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const Source published_by{"cluster", "node1", "feed"};

// Answers with these statuses, in order, and 204 after them.
class ScriptedTransport final : public peer::Transport {
 public:
  explicit ScriptedTransport(std::vector<peer::HttpRequest>& requests, std::vector<unsigned> statuses)
      : requests_(requests), statuses_(std::move(statuses)) {}

  void exchange(std::span<const peer::HttpRequest> requests, const OnResponse& on_response) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::size_t at = requests_.size();
      requests_.push_back(requests[i]);
      on_response(
          i, peer::HttpResponse{
                 .status = at < statuses_.size() ? statuses_[at] : 204U, .content_type = {}, .body = {}});
    }
  }

 private:
  std::vector<peer::HttpRequest>& requests_;
  const std::vector<unsigned> statuses_;
};

class HttpSinkTest : public testing::Test {
 protected:
  base::Result<> publish(std::size_t count, bool is_batched, std::vector<unsigned> statuses = {}) {
    std::vector<Event> events;
    for (std::size_t i = 0; i < count; ++i)
      events.push_back(
          make_event(published_by, {.path = std::to_string(i), .scan = 1, .is_there = true}, ""));
    HttpSink sink({.endpoint = {.host = "hook", .port = 80, .unix_path = {}},
                   .target = "/a?b=c",
                   .is_batched = is_batched,
                   .token = "secret"},
                  std::make_unique<ScriptedTransport>(requests_, std::move(statuses)));
    std::span<const Event> rest = events;
    while (!rest.empty()) {
      const auto published = sink.publish(published_by, rest);
      if (!published) return published.error();
      rest = rest.subspan(*published);
    }
    return {};
  }

  std::vector<peer::HttpRequest> requests_;
};

TEST_F(HttpSinkTest, Batched_IsOneArray) {
  ASSERT_TRUE(publish(3, true));
  ASSERT_EQ(requests_.size(), 1U);
  EXPECT_EQ(requests_[0].method, "POST");
  EXPECT_EQ(requests_[0].target, "/a?b=c");
  EXPECT_EQ(requests_[0].authorization, "Bearer secret");
  EXPECT_THAT(requests_[0].content_type, HasSubstr("application/cloudevents-batch+json"));
  const json events = json::parse(requests_[0].body);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[2]["data"]["path"], "2");
}

TEST_F(HttpSinkTest, LargeBatch_IsSplitByBytes) {
  ASSERT_TRUE(publish(10'000, true));
  EXPECT_GT(requests_.size(), 1U);
  std::size_t next = 0;
  for (const peer::HttpRequest& request : requests_) {
    EXPECT_LE(request.body.size(), 512U << 10U);
    for (const json& event : json::parse(request.body))
      EXPECT_EQ(event["data"]["path"], std::to_string(next++));
  }
  EXPECT_EQ(next, 10'000U);
}

TEST_F(HttpSinkTest, Structured_IsARequestForEachEvent) {
  ASSERT_TRUE(publish(3, false));
  ASSERT_EQ(requests_.size(), 3U);
  EXPECT_THAT(requests_[2].content_type, HasSubstr("application/cloudevents+json"));
  EXPECT_EQ(json::parse(requests_[2].body)["data"]["path"], "2");
}

TEST_F(HttpSinkTest, AnyOtherStatusThanSuccess_IsAFailure) {
  for (const unsigned status : {199U, 301U, 400U, 503U}) {
    requests_.clear();
    const auto published = publish(3, false, {204, status});
    ASSERT_FALSE(published);
    EXPECT_THAT(published.error().message, HasSubstr(std::to_string(status)));
    EXPECT_EQ(requests_.size(), 2U) << "it stops there";
  }
}

TEST_F(HttpSinkTest, StatusThatHasARemedy_NamesIt) {
  EXPECT_THAT(publish(1, true, {301}).error().message, HasSubstr("set the URL to which it leads"));
}

// A server, or its proxy, that answers 413 to bodies over a limit, and 503 while it is closed.
class LimitedServer final : public peer::Transport {
 public:
  void exchange(std::span<const peer::HttpRequest> requests, const OnResponse& on_response) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      peer::HttpResponse response{.status = 204, .content_type = {}, .body = {}};
      if (!retry_after.empty()) {
        response.status = 503;
        response.date = "Sun, 06 Nov 1994 08:49:30 GMT";
        response.retry_after = retry_after;
      } else if (requests[i].body.size() > limit) {
        response.status = 413;
        ++refused;
      } else {
        const json body = json::parse(requests[i].body);
        for (const json& event : body.is_array() ? body : json::array({body}))
          paths.push_back(event["data"].value("path", ""));
        largest = std::max(largest, requests[i].body.size());
      }
      on_response(i, response);
    }
  }

  std::size_t limit = 100'000;
  std::string retry_after;
  std::vector<std::string> paths;
  std::size_t refused = 0;
  std::size_t largest = 0;
};

class LimitedHttpSinkTest : public testing::Test {
 protected:
  HttpSink make_sink(bool is_batched) {
    auto transport = std::make_unique<LimitedServer>();
    server_ = transport.get();
    return {{.endpoint = {.host = "hook", .port = 80, .unix_path = {}}, .is_batched = is_batched},
            std::move(transport)};
  }

  void add(const std::string& path) {
    paths_.push_back(path);
    events_.push_back(make_event(published_by, {.path = path, .scan = 1, .is_there = true}, ""));
  }

  base::Result<> publish_all(HttpSink& sink) {
    std::span<const Event> rest = events_;
    while (!rest.empty()) {
      const auto published = sink.publish(published_by, rest);
      if (!published) return published.error();
      rest = rest.subspan(*published);
    }
    return {};
  }

  LimitedServer* server_ = nullptr;
  std::vector<std::string> paths_;
  std::vector<Event> events_;
};

TEST_F(LimitedHttpSinkTest, TooLargeBatch_IsHalvedAndGrowsAgain) {
  HttpSink sink = make_sink(true);
  for (int i = 0; i < 5'000; ++i) add(std::to_string(i));
  ASSERT_TRUE(publish_all(sink));
  EXPECT_EQ(server_->paths, paths_) << "each once, in order";
  EXPECT_LT(server_->refused, server_->paths.size() / 100);
  server_->limit = 10'000'000;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(publish_all(sink));
  EXPECT_GT(server_->largest, 400'000U);
}

TEST_F(LimitedHttpSinkTest, EventThatIsTooLargeAlone_StopsNoOther) {
  for (const bool is_batched : {true, false}) {
    HttpSink sink = make_sink(is_batched);
    server_->limit = 5'000;
    paths_.clear();
    events_.clear();
    add("before");
    add(std::string(6'000, 'x'));
    add("after");
    ASSERT_TRUE(publish_all(sink));
    EXPECT_EQ(server_->paths, (std::vector<std::string>{"before", "after"}));
  }
}

// It would give up everything.
TEST_F(LimitedHttpSinkTest, ServerThatTakesNoEvent_IsAFailure) {
  HttpSink sink = make_sink(true);
  server_->limit = 0;
  add("a");
  add("b");
  const auto published = publish_all(sink);
  ASSERT_FALSE(published);
  EXPECT_THAT(published.error().message, HasSubstr("too small for any event"));
}

TEST_F(LimitedHttpSinkTest, RetryAfter_IsSecondsOrADateOfTheServer) {
  HttpSink sink = make_sink(true);
  add("a");
  const auto asked = [&](const char* text) {
    server_->retry_after = text;
    EXPECT_FALSE(publish_all(sink));
    return sink.take_retry_after().count();
  };
  EXPECT_EQ(asked("5"), 5);
  EXPECT_EQ(asked("Sun, 06 Nov 1994 08:49:37 GMT"), 7);
  EXPECT_EQ(asked("Sun, 06 Nov 1994 08:49:29 GMT"), 0) << "in the past";
  for (const char* const nonsense : {"-5", "soon", "99999999999999999999", "Sun, 06 Nov"})
    EXPECT_EQ(asked(nonsense), 0);
  EXPECT_EQ(sink.take_retry_after().count(), 0) << "it is taken once";
}

}  // namespace
}  // namespace spoor::publish
