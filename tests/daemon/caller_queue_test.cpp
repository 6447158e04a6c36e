#include "daemon/api/caller_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <list>
#include <memory>

#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

using testing::ElementsAre;

class CallerQueueTest : public testing::Test {
 protected:
  using Place = CallerQueue::Place;

  // Returns false if there is no place.
  bool enter(const std::string& caller) {
    auto place = std::make_unique<Place>(queue_, caller);
    if (!place->is_held()) return false;
    boost::asio::co_spawn(context_, wait(caller, std::move(place)), rethrow);
    settle();
    return true;
  }

  // Ends the request whose turn it is.
  void end() {
    running_.reset();
    settle();
  }

  void settle() {
    context_.restart();
    context_.poll();
  }

  boost::asio::awaitable<void> wait(std::string caller, std::unique_ptr<Place> place) {
    co_await place->wait_for_turn();
    EXPECT_EQ(running_, nullptr) << "one at a time";
    turns_.push_back(caller);
    running_ = std::move(place);
  }

  CallerQueue queue_{8};
  boost::asio::io_context context_;
  std::vector<std::string> turns_;
  std::unique_ptr<Place> running_;
};

TEST_F(CallerQueueTest, OneCaller_GetsHalfOfThePlaces) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(enter("a"));
  EXPECT_FALSE(enter("a"));
  end();
  EXPECT_TRUE(enter("a"));
}

TEST_F(CallerQueueTest, CallersWithMany_LeavePlacesForThoseWithoutAny) {
  for (const std::string caller : {"a", "b", "c"}) {
    while (enter(caller)) {
    }
  }
  EXPECT_TRUE(enter("d"));
  EXPECT_FALSE(enter("e")) << "4, 2, 1 and 1 of 8";
}

TEST_F(CallerQueueTest, Callers_TakeTurns) {
  for (int i = 0; i < 4; ++i) enter("a");
  for (int i = 0; i < 2; ++i) enter("b");
  enter("c");
  for (int i = 0; i < 7; ++i) end();
  EXPECT_THAT(turns_, ElementsAre("a", "b", "c", "a", "b", "a", "a"));
  EXPECT_TRUE(enter("d"));
  EXPECT_EQ(turns_.back(), "d") << "at once, as no other waits";
}

TEST_F(CallerQueueTest, CallerThatAlwaysHasRequests_DoesNotDelayOthersForLonger) {
  for (int i = 0; i < 4; ++i) enter("a");
  enter("b");
  end();
  enter("a");
  EXPECT_EQ(turns_.back(), "b");
}

}  // namespace
}  // namespace spoor::daemon
