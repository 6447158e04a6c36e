// A scanner, and the peers that it knows.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "peer/gather/gather.h"
#include "tests/fakes/fake_cluster.h"
#include "tests/fakes/manual_clock.h"

namespace spoor::peer {

using fakes::FakeCluster;
using std::chrono::hours;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using tracker::PeerId;
using tracker::Standing;

// Nodes "a" and "b", which were read once; "b" at the address "b1".
class KnownPeersTest : public testing::Test {
 protected:
  KnownPeersTest() {
    for (const char* host : {"a", "b"}) cluster_.add(host);
    cluster_.alias("b", "b1");
    options_.cluster = "c";
    options_.forget_after = hours(24);
    options_.since_last_scan = hours(6);
    scan();
  }

  Gathered scan() {
    clock_.advance(hours(6));
    options_.members.endpoints = FakeCluster::endpoints(listed_);
    auto gathered = gather(cluster_, book_, options_);
    book_ = gathered.book;
    return gathered;
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

  void mark(const std::string& host, const std::string& path) {
    const tracker::Mark mark{path, tracker::MarkKind::dir};
    cluster_[host].tracker->mark({&mark, 1});
  }

  // A node that no source lists, and that "a" has recorded.
  PeerId add_stranger(const std::string& host) {
    cluster_.add(host);
    cluster_.record("a", cluster_.id(host));
    return cluster_.id(host);
  }

  // Until the peer is gone: the scan that finds it so.
  Gathered scan_until_gone(const PeerId& id) {
    for (int times = 0; times < 3; ++times) {
      const auto gathered = scan();
      EXPECT_FALSE(gathered.complete());
      EXPECT_THAT(gathered.gaps, IsEmpty());
      EXPECT_EQ(book_.at(id).standing, Standing::expected);
    }
    return scan();
  }

  static bool holds(const Gathered& gathered, std::string_view path) {
    return gathered.marks.may_contain(path, tracker::hash_path(path));
  }

  static void expect_complete(const Gathered& gathered) {
    EXPECT_TRUE(gathered.complete());
    EXPECT_THAT(gathered.gaps, IsEmpty());
  }

  static std::vector<std::string> failed(const Gathered& gathered) {
    std::vector<std::string> names;
    for (const auto& peer : gathered.peers) {
      if (!peer.ok) names.push_back(peer.name);
    }
    return names;
  }

  fakes::ManualClock clock_;
  FakeCluster cluster_{clock_};
  std::vector<std::string> listed_{"a", "b1"};
  tracker::PeerBook book_;
  GatherOptions options_;
};

}  // namespace spoor::peer
