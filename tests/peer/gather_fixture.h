// A scanner that gathers from a cluster of trackers without a network.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "peer/gather/gather.h"
#include "tests/fakes/fake_cluster.h"
#include "tests/fakes/manual_clock.h"

namespace spoor::peer {

using fakes::FakeCluster;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using tracker::PeerId;
using tracker::Standing;

class GatherFixture : public testing::Test {
 protected:
  // Nodes of the names of their hosts, which are all listed.
  explicit GatherFixture(std::vector<std::string> hosts) : listed_(std::move(hosts)) {
    for (const std::string& host : listed_) cluster_.add(host);
    options_.cluster = "c";
  }

  Gathered gather() {
    clock_.advance(pause_);
    options_.members.endpoints = FakeCluster::endpoints(listed_);
    return peer::gather(cluster_, book_, options_);
  }

  // A scan that commits: what it gathered was walked.
  Gathered scan() {
    auto gathered = gather();
    book_ = gathered.book;
    return gathered;
  }

  void mark(const std::string& host, const std::string& path) {
    const tracker::Mark mark{path, tracker::MarkKind::dir};
    cluster_[host].tracker->mark({&mark, 1});
  }
  void mark_many(const std::string& host) {
    for (int number = 0; number < 200; ++number) mark(host, "bucket/" + std::to_string(number));
  }

  void advance(const std::string& host, std::uint64_t cycle) { cluster_[host].tracker->advance({cycle}); }
  std::uint64_t cycle_of(const std::string& host) { return cluster_[host].tracker->status().current.value; }

  // The host's tracker goes on from this state.
  void restart(const std::string& host, tracker::TrackerState state) {
    cluster_[host].tracker =
        std::make_unique<tracker::Tracker>(FakeCluster::tracker_options(), clock_, std::move(state));
  }
  tracker::TrackerState state(const std::string& host) { return cluster_[host].tracker->state(); }

  // Calls `act` before the response of the host to this request, counted from 1, of the next scan.
  void before_request(const std::string& host, int number, std::function<void(FakeCluster::Node&)> act) {
    FakeCluster::Node& node = cluster_[host];
    node.before_answer = [&node, number, act = std::move(act), count = 0]() mutable {
      if (++count == number) act(node);
    };
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

  // Of the peer with this name, or of all that failed.
  static std::string error_of(const Gathered& gathered, const std::string& name = {}) {
    std::string text;
    for (const auto& peer : gathered.peers) {
      if (!peer.ok && (name.empty() || peer.name == name)) text += peer.name + ": " + peer.error + "\n";
    }
    return text;
  }

  fakes::ManualClock clock_;
  FakeCluster cluster_{clock_};
  std::vector<std::string> listed_;
  std::chrono::hours pause_{0};  // before each scan
  tracker::PeerBook book_;
  GatherOptions options_;
};

}  // namespace spoor::peer
