#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "publish/sink.h"
#include "tests/fakes/answering_transport.h"

namespace spoor::publish {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const Source published_by{"cluster", "node1", "feed"};

// What a server takes, and with which status it refuses the rest.
struct Server {
  std::size_t limit = 1'000'000;        // of a body; a larger one is refused by 413
  std::string retry_after = {};         // not empty: it is closed
  std::vector<unsigned> statuses = {};  // of the first requests
  std::vector<peer::HttpRequest> requests = {};
  std::vector<std::string> paths = {};  // of the events that it took
  std::size_t refused = 0;
  std::size_t largest = 0;

  peer::HttpResponse respond(const peer::HttpRequest& request) {
    requests.push_back(request);
    if (requests.size() <= statuses.size() && statuses[requests.size() - 1] != 204)
      return {.status = statuses[requests.size() - 1], .content_type = {}, .body = {}};
    peer::HttpResponse response{.status = 204, .content_type = {}, .body = {}};
    if (!retry_after.empty()) {
      response.status = 503;
      response.date = "Sun, 06 Nov 1994 08:49:30 GMT";
      response.retry_after = retry_after;
    } else if (request.body.size() > limit) {
      response.status = 413;
      ++refused;
    } else {
      const json body = json::parse(request.body);
      for (const json& event : body.is_array() ? body : json::array({body}))
        paths.push_back(event["data"].value("path", ""));
      largest = std::max(largest, request.body.size());
    }
    return response;
  }
};

class HttpSinkTest : public testing::Test {
 protected:
  void use(bool is_batched) {
    const auto format = is_batched ? config::EventFormat::batched : config::EventFormat::structured;
    sink_ = make_http_sink(
        {.settings = {.format = format},
         .url = {.endpoint = {.host = "hook", .port = 80, .unix_path = {}}, .target = "/a?b=c"},
         .secrets = {.secret = "secret", .tls = {}}},
        std::make_unique<fakes::AnsweringTransport>(
            [this](const peer::HttpRequest& request) { return server_.respond(request); }));
  }

  base::Result<> publish(const std::vector<std::string>& paths) {
    std::vector<Event> events;
    events.reserve(paths.size());
    for (const std::string& path : paths)
      events.push_back(make_event(published_by, {.path = path, .scan = 1, .is_there = true}, ""));
    for (std::span<const Event> rest = events; !rest.empty();) {
      const auto published = sink_->publish(published_by, rest);
      if (!published) return published.error();
      rest = rest.subspan(*published);
    }
    return {};
  }

  static std::vector<std::string> numbers(int count) {
    std::vector<std::string> numbers;
    numbers.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) numbers.push_back(std::to_string(i));
    return numbers;
  }

  Server server_;
  std::unique_ptr<Sink> sink_;
};

TEST_F(HttpSinkTest, Batched_IsOneArray) {
  use(true);
  ASSERT_TRUE(publish(numbers(3)));
  ASSERT_EQ(server_.requests.size(), 1U);
  const peer::HttpRequest& request = server_.requests[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/a?b=c");
  EXPECT_EQ(request.authorization, "Bearer secret");
  EXPECT_THAT(request.content_type, HasSubstr("application/cloudevents-batch+json"));
  EXPECT_TRUE(json::parse(request.body).is_array());
  EXPECT_EQ(server_.paths, numbers(3));
}

TEST_F(HttpSinkTest, LargeBatch_IsSplitByBytes) {
  use(true);
  ASSERT_TRUE(publish(numbers(10'000)));
  EXPECT_GT(server_.requests.size(), 1U);
  EXPECT_LE(server_.largest, 512U << 10U);
  EXPECT_EQ(server_.paths, numbers(10'000)) << "each once, in order";
}

TEST_F(HttpSinkTest, Structured_IsARequestForEachEvent) {
  use(false);
  ASSERT_TRUE(publish(numbers(3)));
  ASSERT_EQ(server_.requests.size(), 3U);
  EXPECT_THAT(server_.requests[2].content_type, HasSubstr("application/cloudevents+json"));
  EXPECT_EQ(json::parse(server_.requests[2].body)["data"]["path"], "2");
}

TEST_F(HttpSinkTest, AnyOtherStatusThanSuccess_IsAFailure) {
  use(false);
  for (const unsigned status : {199U, 301U, 400U, 503U}) {
    server_ = {.statuses = {204, status}};
    const auto published = publish(numbers(3));
    ASSERT_FALSE(published);
    EXPECT_THAT(published.error().message, HasSubstr(std::to_string(status)));
    EXPECT_EQ(published.error().message.ends_with("set the URL to which it leads"), status == 301);
    EXPECT_EQ(server_.requests.size(), 2U) << "it stops there";
  }
}

TEST_F(HttpSinkTest, TooLargeBatch_IsHalvedAndGrowsAgain) {
  use(true);
  server_.limit = 100'000;
  ASSERT_TRUE(publish(numbers(5'000)));
  EXPECT_EQ(server_.paths, numbers(5'000)) << "each once, in order";
  EXPECT_LT(server_.refused, server_.paths.size() / 100);
  server_.limit = 10'000'000;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(publish(numbers(5'000)));
  EXPECT_GT(server_.largest, 400'000U);
}

TEST_F(HttpSinkTest, EventThatIsTooLargeAlone_StopsNoOther) {
  for (const bool is_batched : {true, false}) {
    use(is_batched);
    server_ = {.limit = 5'000};
    ASSERT_TRUE(publish({"before", std::string(6'000, 'x'), "after"}));
    EXPECT_THAT(server_.paths, ElementsAre("before", "after"));
  }
}

// It would give up everything.
TEST_F(HttpSinkTest, ServerThatTakesNoEvent_IsAFailure) {
  use(true);
  server_.limit = 0;
  const auto published = publish({"a", "b"});
  ASSERT_FALSE(published);
  EXPECT_THAT(published.error().message, HasSubstr("too small for any event"));
}

TEST_F(HttpSinkTest, RetryAfter_IsSecondsOrADateOfTheServer) {
  use(true);
  const auto asked = [&](const char* text) {
    server_.retry_after = text;
    EXPECT_FALSE(publish({"a"}));
    return sink_->take_retry_after().count();
  };
  EXPECT_EQ(asked("5"), 5);
  EXPECT_EQ(sink_->take_retry_after().count(), 0) << "it is taken once";
  EXPECT_EQ(asked("Sun, 06 Nov 1994 08:49:37 GMT"), 7);
  EXPECT_EQ(asked("Sun, 06 Nov 1994 08:49:29 GMT"), 0) << "in the past";
  for (const char* const nonsense : {"-5", "soon", "99999999999999999999", "Sun, 06 Nov"})
    EXPECT_EQ(asked(nonsense), 0);
}

}  // namespace
}  // namespace spoor::publish
