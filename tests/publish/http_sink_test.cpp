#include "publish/http_sink.h"

#include <gmock/gmock.h>

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
  requests_.clear();
  EXPECT_THAT(publish(2, true, {413}).error().message, HasSubstr("set a smaller 'batch'"));
  requests_.clear();
  EXPECT_THAT(publish(1, true, {413}).error().message, testing::Not(HasSubstr("batch"))) << "of one event";
}

}  // namespace
}  // namespace spoor::publish
