// A scanner, and the peers that it knows.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "tests/peer/gather_fixture.h"

namespace spoor::peer {

using std::chrono::hours;

// Nodes "a" and "b", which were read once; "b" at the address "b1".
class KnownPeersTest : public GatherFixture {
 protected:
  KnownPeersTest() : GatherFixture({"a", "b"}) {
    cluster_.alias("b", "b1");
    listed_ = {"a", "b1"};
    pause_ = hours(6);
    options_.forget_after = hours(24);
    options_.since_last_scan = hours(6);
    scan();
  }

  void move_b() {
    cluster_.remove_alias("b1");
    cluster_.alias("b", "b2");
  }

  // Another data directory, or the old one.
  std::unique_ptr<tracker::Tracker> swap_tracker(const std::string& host,
                                                 std::unique_ptr<tracker::Tracker> other) {
    std::swap(cluster_[host].tracker, other);
    return other;
  }
  std::unique_ptr<tracker::Tracker> start_anew(const std::string& host) {
    auto old = swap_tracker(host, nullptr);
    cluster_.start_anew(cluster_[host]);
    return old;
  }

  // A node that no source lists, and that "a" has recorded.
  PeerId add_stranger(const std::string& host) {
    cluster_.add(host);
    cluster_.record("a", cluster_.id(host));
    return cluster_.id(host);
  }

  // It is expected for some scans, and then gone by one gap.
  void expect_gone_after_a_while(const PeerId& id) {
    for (int times = 0; times < 3; ++times) {
      const auto gathered = scan();
      EXPECT_FALSE(gathered.complete());
      EXPECT_THAT(gathered.gaps, IsEmpty());
      EXPECT_EQ(book_.at(id).standing, Standing::expected);
    }
    const auto gone = scan();
    EXPECT_TRUE(gone.complete());
    EXPECT_THAT(gone.gaps, ElementsAre("peer '" + id.name + "' is no longer among the peers"));
    EXPECT_EQ(book_.at(id).standing, Standing::gone);
  }
};

}  // namespace spoor::peer
