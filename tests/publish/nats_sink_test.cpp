// A real nats-server without a stream: the test acknowledges in its place.
#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "publish/sink.h"
#include "tests/publish/nats_server.h"

namespace spoor::publish {
namespace {

using testing::HasSubstr;

const Source published_by{"cluster", "node1", "feed"};

struct Reply {
  std::string body;
  std::size_t to = 0;  // the message, counted from 1; 0: the one that was published last
};

Reply acknowledgement(std::size_t number, std::size_t to = 0) {
  return {R"({"stream":"A", "seq":)" + std::to_string(number) + "}", to};
}

// An error, read after all that was sent before it.
const Reply end{R"({"error":"the end"})"};

// Replies to all that is published.
class Responder {
 public:
  // What follows the message with this number, counted from 1.
  using Replies = std::function<std::vector<Reply>(std::size_t)>;

  Responder(const std::string& url, Replies replies) : replies_(std::move(replies)) {
    if (natsConnection_ConnectTo(&connection_, url.c_str()) != NATS_OK ||
        natsConnection_SubscribeSync(&subscription_, connection_, "spoor.changes") != NATS_OK ||
        natsConnection_Flush(connection_) != NATS_OK)
      throw std::runtime_error("cannot subscribe at " + url);
    thread_ = std::thread([this] { reply_to_all(); });
  }
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;
  ~Responder() {
    natsConnection_Close(connection_);
    thread_.join();
    natsSubscription_Destroy(subscription_);
    natsConnection_Destroy(connection_);
  }

  // The header Nats-Msg-Id of each message so far.
  std::vector<std::string> ids() const {
    const std::lock_guard lock(mutex_);
    return ids_;
  }

 private:
  void reply_to_all() {
    constexpr std::int64_t timeout_ms = 60'000;
    std::vector<std::string> subjects;  // of the replies to each message
    natsMsg* message = nullptr;
    while (natsSubscription_NextMsg(&message, subscription_, timeout_ms) == NATS_OK) {
      subjects.emplace_back(natsMsg_GetReply(message));
      const char* id = "";
      natsMsgHeader_Get(message, "Nats-Msg-Id", &id);
      {
        const std::lock_guard lock(mutex_);
        ids_.emplace_back(id);
      }
      natsMsg_Destroy(message);
      for (const Reply& reply : replies_(subjects.size())) {
        const std::string& subject = reply.to == 0 ? subjects.back() : subjects[reply.to - 1];
        natsConnection_PublishString(connection_, subject.c_str(), reply.body.c_str());
      }
    }
  }

  const Replies replies_;
  natsConnection* connection_ = nullptr;
  natsSubscription* subscription_ = nullptr;
  mutable std::mutex mutex_;
  std::vector<std::string> ids_;
  std::thread thread_;
};

class NatsSinkTest : public testing::Test {
 protected:
  static std::string url(const NatsServer& server) { return server.sink()["url"]; }

  static std::unique_ptr<Sink> sink_to(const NatsServer& server) {
    SinkTarget target{.url = {.servers = {url(server).substr(url(server).rfind('/') + 1)}}};
    return make_nats_sink(std::move(target), std::chrono::seconds(30));
  }

  static base::Result<> publish_three(Sink& sink, const std::string& second = "b") {
    std::vector<Event> events;
    for (const std::string& path : {std::string("a"), second, std::string("c")})
      events.push_back(make_event(published_by, {.path = path, .scan = 1, .is_there = true}, ""));
    const auto published = sink.publish(published_by, events);
    return published ? base::Result<>() : published.error();
  }

  // Three events a batch.
  base::Result<> publish(const Responder::Replies& replies, int batches = 1) {
    const Responder responder(url(server_), replies);
    const auto sink = sink_to(server_);
    base::Result<> published;
    for (int batch = 0; published && batch < batches; ++batch) published = publish_three(*sink);
    return published ? sink->settle() : published;
  }

  std::string failure(const Responder::Replies& replies, int batches = 1) {
    const auto published = publish(replies, batches);
    return published ? "" : published.error().message;
  }

  NatsServer server_;
};

TEST_F(NatsSinkTest, EachMessageIsAcknowledged_ArePublished) {
  EXPECT_TRUE(publish([](std::size_t number) { return std::vector{acknowledgement(number)}; }, 3));
}

// A stream may store several subjects, and drops repetitions over all of them.
TEST_F(NatsSinkTest, MessageId_BeginsWithTheSubject) {
  const Responder responder(url(server_),
                            [](std::size_t number) { return std::vector{acknowledgement(number)}; });
  const auto sink = sink_to(server_);
  ASSERT_TRUE(publish_three(*sink));
  ASSERT_TRUE(sink->settle());
  EXPECT_THAT(responder.ids(),
              testing::AllOf(testing::SizeIs(3), testing::Each(testing::StartsWith("spoor.changes/"))));
}

TEST_F(NatsSinkTest, AcknowledgementOfAnotherMessage_DoesNotCount) {
  EXPECT_THAT(failure([](std::size_t number) {
                if (number < 3) return std::vector{acknowledgement(number)};
                return std::vector{acknowledgement(103, 1), acknowledgement(203, 2), end};
              }),
              HasSubstr("the end"));
}

TEST_F(NatsSinkTest, AcknowledgementOfABatchBefore_DoesNotCount) {
  EXPECT_THAT(failure(
                  [](std::size_t number) {
                    if (number < 6) return std::vector{acknowledgement(number)};
                    return std::vector{acknowledgement(6, 1), acknowledgement(6, 3), end};
                  },
                  2),
              HasSubstr("the end"));
}

TEST_F(NatsSinkTest, EventTooLargeForTheStreamOrTheServer_StopsNoOther) {
  for (const bool is_limit_of_stream : {true, false}) {
    NatsServer server(is_limit_of_stream ? "" : "max_payload: 4096\n");
    server.create_stream(is_limit_of_stream ? 2'000 : -1);
    const auto sink = sink_to(server);
    EXPECT_TRUE(publish_three(*sink, std::string(5'000, 'x')));
    EXPECT_TRUE(sink->settle());
    EXPECT_EQ(server.events().size(), 2U);
  }
}

TEST_F(NatsSinkTest, StreamThatTakesNoSmallEvent_IsAFailure) {
  server_.create_stream(100);
  const auto sink = sink_to(server_);
  EXPECT_TRUE(publish_three(*sink));
  const auto settled = sink->settle();
  ASSERT_FALSE(settled);
  EXPECT_THAT(settled.error().message, HasSubstr("message size exceeds maximum allowed"));
}

TEST_F(NatsSinkTest, EachBatch_WaitsForTheOneBefore) {
  const auto sink = sink_to(server_);
  EXPECT_FALSE(sink->settle());
  {
    const Responder first(url(server_), [](std::size_t number) {
      if (number <= 3) return std::vector{acknowledgement(number)};
      return number < 6 ? std::vector<Reply>() : std::vector{end};
    });
    EXPECT_TRUE(publish_three(*sink));
    EXPECT_TRUE(publish_three(*sink));
    EXPECT_FALSE(sink->settle());
    EXPECT_FALSE(sink->settle());
  }
  const Responder second(url(server_), [](std::size_t number) {
    if (number == 2) return std::vector<Reply>();
    return number < 6 ? std::vector{acknowledgement(number)} : std::vector{acknowledgement(number), end};
  });
  EXPECT_TRUE(publish_three(*sink));
  EXPECT_FALSE(publish_three(*sink));
}

TEST_F(NatsSinkTest, StoredBefore_IsAnAcknowledgement) {
  EXPECT_TRUE(publish([](std::size_t number) {
    return std::vector{number == 2 ? Reply{R"({"stream":"A", "seq":9, "duplicate": true})"}
                                   : acknowledgement(number)};
  }));
}

// A number that ends the text is not always that of the message.
TEST_F(NatsSinkTest, OtherMembers_AreAccepted) {
  EXPECT_TRUE(publish([](std::size_t number) {
    return std::vector{Reply{R"({"seq":)" + std::to_string(number) + R"(,"stream":"A","code":-7})"}};
  }));
  EXPECT_TRUE(publish([](std::size_t number) {
    return std::vector{Reply{R"({"seq":5,"stream":"A","code":)" + std::to_string(number - 1) + "}"}};
  }));
}

TEST_F(NatsSinkTest, SequenceNumberZero_IsNotStored) {
  EXPECT_THAT(failure([](std::size_t number) { return std::vector{acknowledgement(3 - number)}; }),
              HasSubstr(R"(did not store an event: {"stream":"A", "seq":0})"));
}

TEST_F(NatsSinkTest, FailureAmongManyReplies_ConnectsAnew) {
  std::atomic<bool> fails = true;
  const Responder responder(url(server_), [&](std::size_t number) {
    std::vector<Reply> replies(fails ? 50 : 1, acknowledgement(number));
    if (fails) replies.front() = end;
    return replies;
  });
  const auto sink = sink_to(server_);
  for (int round = 0; round < 20; ++round) {
    fails = true;
    EXPECT_TRUE(publish_three(*sink));
    EXPECT_FALSE(sink->settle());
    fails = false;
    EXPECT_TRUE(publish_three(*sink));
    EXPECT_TRUE(sink->settle());
  }
}

TEST_F(NatsSinkTest, OneThatIsNotStored_IsNamed) {
  for (const char* error : {R"({"code":503,"description":"maximum bytes\n"})", R"({"err_code":"10054"})"}) {
    const std::string refusal = R"({"error":)" + std::string(error) + R"(,"stream":"A","seq":7})";
    EXPECT_THAT(failure([&](std::size_t number) {
                  return std::vector{number == 2 ? Reply{refusal} : acknowledgement(number)};
                }),
                HasSubstr("did not store an event: " + std::string(error)));
  }
}

TEST_F(NatsSinkTest, OtherReplies_AreNamed) {
  for (const char* reply : {"", "yes", "7", "7}", "}", ":}", ":7}", "null", "[1]", R"({"stream":"A"})",
                            R"({"stream":"A","seq":-1})", R"({"stream":"A","seq":"1"})",
                            R"({"stream":"A","seq":1.5})", R"({"stream":"A","seq":1)", "\xff"})
    EXPECT_THAT(failure([&](std::size_t) { return std::vector{Reply{reply}}; }),
                HasSubstr("did not store an event"))
        << reply;
}

// Only one: libnats 3.4 leaks the part of a message that it has read when the connection ends.
TEST_F(NatsSinkTest, DeepReply_IsRefused) {
  EXPECT_THAT(failure([](std::size_t number) {
                return number == 1 ? std::vector{Reply{std::string(100'000, '[')}} : std::vector<Reply>();
              }),
              HasSubstr("did not store an event: [[["));
}

}  // namespace
}  // namespace spoor::publish
