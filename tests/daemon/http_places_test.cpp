#include "daemon/http/http_places.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>

namespace spoor::daemon {
namespace {

Caller at(const std::string& address) { return {.address = address}; }
Caller user(uid_t uid) { return {.unix_peer = UnixPeer{uid, {}}}; }

TEST(PeerOfTest, Addresses_AreGroupedByWhatOneMachineCanUse) {
  EXPECT_EQ(peer_of(at("10.0.0.1")), "10.0.0.1");
  EXPECT_NE(peer_of(at("10.0.0.1")), peer_of(at("10.0.0.2")));
  EXPECT_EQ(peer_of(at("2001:db8:0:1::1")), peer_of(at("2001:db8:0:1:ffff::2")));
  EXPECT_NE(peer_of(at("2001:db8:0:1::1")), peer_of(at("2001:db8:0:2::1")));
  EXPECT_EQ(peer_of(at("::ffff:10.0.0.1")), "10.0.0.1") << "all of IPv4 is one network there";
  EXPECT_NE(peer_of(user(0)), peer_of(user(1)));
}

class HttpPlacesTest : public testing::Test {
 protected:
  static constexpr std::chrono::hours never{1};

  // A connection with its two ends.
  struct Connection {
    Connection(HttpPlaces& places, const Caller& caller) {
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      place.emplace(places, caller, ends[0]);
    }
    ~Connection() {
      place.reset();
      for (const int end : ends) ::close(end);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    bool is_shut_down() const {
      pollfd client{ends[1], POLLIN, 0};
      return ::poll(&client, 1, 0) == 1;
    }

    int ends[2] = {-1, -1};
    std::optional<HttpPlace> place;
  };

  Connection& connect(const Caller& caller) { return connections_.emplace_back(places_, caller); }

  // A connection that has been waiting since the one before, and a little less.
  Connection& served(const Caller& caller) {
    Connection& connection = connect(caller);
    EXPECT_TRUE(connection.place->serve(100, never));
    connection.place->wait(time_ += std::chrono::milliseconds(1));
    return connection;
  }

  bool serve(const Caller& caller, std::size_t most, std::chrono::milliseconds yield_after = never) {
    return connect(caller).place->serve(most, yield_after);
  }

  HttpTotals totals_;
  HttpPlaces places_{totals_};
  HttpPlace::Clock::time_point time_ = HttpPlace::Clock::now() - std::chrono::minutes(1);
  std::list<Connection> connections_;
};

TEST_F(HttpPlacesTest, Full_ThePeerWithTheMostLosesTheOneThatWaitedLongest) {
  Connection& old = served(at("10.0.0.1"));
  Connection& lone = served(at("10.0.0.2"));
  lone.place->wait(time_ - std::chrono::seconds(30));
  Connection& second = served(at("10.0.0.1"));
  Connection& third = served(at("10.0.0.1"));
  second.place->wait(time_ - std::chrono::seconds(10));
  EXPECT_TRUE(serve(at("10.0.0.3"), 4));
  EXPECT_TRUE(second.is_shut_down());
  for (Connection* each : {&old, &lone, &third}) EXPECT_FALSE(each->is_shut_down());
  EXPECT_EQ(places_.served(), 4U);
  EXPECT_EQ(totals_.served, 4U);
  EXPECT_EQ(totals_.ending(), 1U);
}

TEST_F(HttpPlacesTest, Full_PeersWithTheirShareLoseNone) {
  served(at("10.0.0.1"));
  served(at("10.0.0.1"));
  served(at("10.0.0.2"));
  EXPECT_FALSE(serve(at("10.0.0.1"), 3)) << "a peer does not make room for itself";
  EXPECT_FALSE(serve(at("10.0.0.2"), 3)) << "or the two would evict each other's for ever";
  EXPECT_TRUE(serve(at("10.0.0.3"), 3));
}

TEST_F(HttpPlacesTest, Full_ConnectionThatWorks_IsNotEvicted) {
  Connection& first = served(at("10.0.0.1"));
  Connection& second = served(at("10.0.0.1"));
  for (Connection* each : {&first, &second}) EXPECT_TRUE(each->place->work());
  served(at("10.0.0.1")).place->work();
  Connection& other = served(at("10.0.0.2"));
  served(at("10.0.0.2"));
  EXPECT_TRUE(serve(at("10.0.0.3"), 5)) << "one of the next peer";
  EXPECT_TRUE(other.is_shut_down());
  EXPECT_FALSE(serve(at("10.0.0.3"), 5));
}

TEST_F(HttpPlacesTest, Full_ConnectionThatWaitedForLong_IsEvictedByPeersWithNoMore) {
  Connection& lone = served(at("10.0.0.1"));
  Connection& old = served(at("10.0.0.2"));
  Connection& recent = served(at("10.0.0.2"));
  recent.place->wait(HttpPlace::Clock::now() + never);
  EXPECT_FALSE(serve(at("10.0.0.2"), 3, std::chrono::hours(2)));
  EXPECT_TRUE(serve(at("10.0.0.2"), 3, std::chrono::milliseconds(0)));
  EXPECT_TRUE(old.is_shut_down());
  EXPECT_FALSE(lone.is_shut_down()) << "of one with fewer";
  EXPECT_FALSE(recent.is_shut_down());
}

TEST_F(HttpPlacesTest, Full_UnixSocketsHaveAReserve) {
  for (int i = 0; i < 32; ++i) served(at("10.0.0." + std::to_string(i)));
  EXPECT_FALSE(serve(at("10.0.1.1"), 32)) << "each has one";
  EXPECT_TRUE(serve(user(0), 32));
  EXPECT_TRUE(serve(user(1000), 32));
  EXPECT_FALSE(serve(user(1001), 32));
}

// One that was found to wait may have read its request by the time that it is evicted, and one that is
// evicted does not know it yet.
TEST_F(HttpPlacesTest, EvictedConnection_DoesNotBeginToWork) {
  Connection& first = served(at("10.0.0.1"));
  served(at("10.0.0.1"));
  EXPECT_TRUE(serve(at("10.0.0.2"), 2));
  EXPECT_TRUE(first.is_shut_down());
  first.place->wait(time_);
  EXPECT_FALSE(first.place->work());
  EXPECT_FALSE(serve(at("10.0.0.3"), 2)) << "nor is it evicted again";
}

TEST_F(HttpPlacesTest, ClientThatClosesItsEnd_IsGone) {
  Connection& connection = served(at("10.0.0.1"));
  EXPECT_FALSE(connection.place->is_client_gone());
  ::shutdown(connection.ends[1], SHUT_WR);
  EXPECT_TRUE(connection.place->is_client_gone());
}

TEST_F(HttpPlacesTest, ConnectionThatEnds_FreesItsPlace) {
  served(at("10.0.0.1"));
  EXPECT_FALSE(serve(at("10.0.0.2"), 1));
  connections_.clear();
  EXPECT_EQ(totals_.open, 0U);
  EXPECT_EQ(totals_.served, 0U);
  EXPECT_TRUE(serve(at("10.0.0.2"), 1));
}

class HttpBodiesTest : public HttpPlacesTest {
 protected:
  static constexpr std::uint64_t small = 10;
  static constexpr std::uint64_t most = 300;

  static bool hold(Connection& connection, std::uint64_t bytes) {
    return connection.place->hold_body(bytes, small, most);
  }
};

TEST_F(HttpBodiesTest, MemoryIsUsed_ThePeerThatUsesTheMostLosesBodies) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(hold(served(at("10.0.0.1")), 20));
  Connection& idle = served(at("10.0.0.2"));
  Connection& tiny = served(at("10.0.0.2"));
  EXPECT_TRUE(hold(tiny, small));
  Connection& first = served(at("10.0.0.2"));
  Connection& second = served(at("10.0.0.2"));
  Connection& third = served(at("10.0.0.2"));
  for (Connection* each : {&first, &second, &third}) EXPECT_TRUE(hold(*each, 70));
  third.place->work();
  first.place->wait(time_);
  Connection& other = served(at("10.0.0.3"));
  tiny.place->wait(time_);
  EXPECT_TRUE(hold(other, 60));
  EXPECT_TRUE(second.is_shut_down()) << "it waited longest";
  for (Connection* each : {&idle, &first, &third}) EXPECT_FALSE(each->is_shut_down());
  EXPECT_EQ(places_.body_bytes(), 3 * 20 + small + 2 * 70 + 60);
  EXPECT_TRUE(hold(other, 100)) << "as many as it takes";
  EXPECT_TRUE(first.is_shut_down());
  EXPECT_EQ(places_.body_bytes(), 3 * 20 + small + 70 + 100);
  connections_.clear();
  EXPECT_EQ(places_.body_bytes(), 0U);
}

TEST_F(HttpBodiesTest, LargeBody_TakesTheMemoryOfSeveral) {
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(hold(served(at("10.0.0.1")), 30));
  EXPECT_TRUE(hold(served(at("10.0.0.2")), 140));
  EXPECT_EQ(places_.body_bytes(), 5 * 30 + 140);
}

TEST_F(HttpBodiesTest, MemoryIsUsed_PeerThatUsesMoreItself_TakesNone) {
  Connection& first = served(at("10.0.0.1"));
  EXPECT_TRUE(hold(first, 70));
  EXPECT_TRUE(hold(served(at("10.0.0.1")), 70));
  EXPECT_TRUE(hold(served(at("10.0.0.2")), 110));
  EXPECT_FALSE(hold(first, 130));
  EXPECT_EQ(places_.body_bytes(), 2 * 70 + 110);
}

TEST_F(HttpBodiesTest, MemoryIsUsed_PeersWithTheirShareLoseNone) {
  Connection& first = served(at("10.0.0.1"));
  Connection& second = served(at("10.0.0.2"));
  Connection& third = served(at("10.0.0.3"));
  for (Connection* each : {&first, &second, &third}) EXPECT_TRUE(hold(*each, 100));
  Connection& other = served(at("10.0.0.4"));
  EXPECT_TRUE(hold(other, small));
  EXPECT_FALSE(hold(other, 20));
  EXPECT_FALSE(hold(first, 101)) << "nor has it room for more itself";
  EXPECT_EQ(places_.body_bytes(), 300 + small) << "unchanged";
  for (const Connection& each : connections_) EXPECT_FALSE(each.is_shut_down());
}

}  // namespace
}  // namespace spoor::daemon
