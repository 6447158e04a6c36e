#include <gmock/gmock.h>

#include "publish/sink.h"
#include "tests/publish/kafka_mock.h"

namespace spoor::publish {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class KafkaSinkTest : public testing::Test {
 protected:
  // Returns how many of the events each transaction took.
  std::vector<std::size_t> publish_all(std::span<const Event> events) {
    std::vector<std::size_t> taken;
    while (!events.empty()) {
      taken.push_back(sink_->publish(published_by_, events).value());
      events = events.subspan(taken.back());
    }
    return taken;
  }

  std::vector<std::string> stored_ids() {
    std::vector<std::string> ids;
    for (const Event& event : mock_.events()) ids.push_back(event.id);
    return ids;
  }

  static Event large_event(const std::string& id) {
    return {.path = std::string(2 * small_event_bytes, 'x'), .scan = 1, .id = id};
  }

  const Source published_by_{"cluster", "node1", "feed"};
  KafkaMock mock_;
  const std::unique_ptr<Sink> sink_ = make_kafka_sink({.url = {.servers = {mock_.servers()}}}, "id");
};

TEST_F(KafkaSinkTest, TransactionTooLarge_IsHalvedAndGrowsAgain) {
  std::vector<Event> events;
  std::vector<std::string> ids;
  for (char id = 'a'; id < 'a' + 12; ++id) events.push_back(large_event(ids.emplace_back(1, id)));
  mock_.refuse_as_too_large(2);
  EXPECT_THAT(publish_all(events), ElementsAre(3, 3, 3, 3));
  events.resize(8);
  EXPECT_THAT(publish_all(events), ElementsAre(4, 4));
  for (std::size_t i = 0; i < 8; ++i) ids.push_back(events[i].id);
  EXPECT_EQ(stored_ids(), ids);
}

TEST_F(KafkaSinkTest, EventTooLarge_IsGivenUpUnlessSmall) {
  const std::vector<Event> events{large_event("1"), large_event("2"), {.path = "a", .scan = 1, .id = "3"}};
  mock_.refuse_as_too_large(3);
  EXPECT_THAT(publish_all(events), ElementsAre(1, 1, 1));
  EXPECT_THAT(stored_ids(), ElementsAre("3"));
  mock_.refuse_as_too_large(1);
  const auto refused = sink_->publish(published_by_, std::span(events).last(1));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("too small for any event"));
}

}  // namespace
}  // namespace spoor::publish
