// The daemon gathers for a scan: it answers itself within the process, and asks the others.
#include "daemon/api/scan_gather.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/daemon/api_fixture.h"
#include "tests/fakes/answering_transport.h"
#include "tests/fakes/fake_cluster.h"

namespace spoor::daemon {
namespace {

using fakes::FakeCluster;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class ScanGatherTest : public ApiTest {
 protected:
  ScanGatherTest() {
    cluster_.add("b", {}, "default");
    make_transport_ = fakes::transport_maker(cluster_, cluster_);
    start();
    peers_->set_peers(FakeCluster::endpoints({"b"}));
    query_.node = node_;
    query_.instance = persistence_->tracker().state().instance;
    query_.members_digest = members_digest_;
    query_.options.rules_digest = rules_.digest();
    query_.options.min_cycle_age = {};
    cluster_["b"].rules_digest = rules_.digest();
  }

  static void mark_in(tracker::Tracker& tracker, const std::string& path) {
    const tracker::Mark mark{path, tracker::MarkKind::dir};
    tracker.mark({&mark, 1});
  }

  HttpResponse ask_to_gather() {
    Asked& asked = ask("POST", "/v1/gather", peer::gather_request({}, query_).body);
    wait_for(asked);
    return *asked.answer;
  }

  // As a scan does, which stores the book.
  peer::Gathered gather() {
    auto response = ask_to_gather();
    auto gathered = peer::read_gathered(peer::HttpResponse{response.status, "", std::move(response.body)});
    EXPECT_TRUE(gathered) << gathered.error().message;
    query_.book = gathered->book;
    query_.options.has_scanned = true;
    return *std::move(gathered);
  }

  static bool holds(const peer::Gathered& gathered, const std::string& path) {
    return gathered.marks.may_contain(path, tracker::hash_path(path));
  }

  static std::vector<std::string> failed(const peer::Gathered& gathered) {
    std::vector<std::string> failed;
    for (const peer::PeerOutcome& peer : gathered.peers) {
      if (!peer.ok) failed.push_back(peer.url + ": " + peer.error);
    }
    return failed;
  }

  FakeCluster cluster_{clock_};
  peer::GatherQuery query_;
};

TEST_F(ScanGatherTest, Gather_ReadsThisNodeAndTheOthers) {
  EXPECT_TRUE(gather().complete());
  mark_in(persistence_->tracker(), "a/own");
  mark_in(*cluster_["b"].tracker, "a/other");
  const auto gathered = gather();
  EXPECT_TRUE(gathered.complete());
  EXPECT_THAT(gathered.gaps, testing::IsEmpty());
  EXPECT_TRUE(holds(gathered, "a/own"));
  EXPECT_TRUE(holds(gathered, "a/other"));
  EXPECT_FALSE(holds(gathered, "a/nothing"));
  EXPECT_EQ(gathered.peers[0].url, "http://b:7420");
  EXPECT_EQ(gathered.peers[1].url, "http://n1:7420");
  // Both cursors move: what was read is not read again, once its cycle is closed.
  gather();
  EXPECT_FALSE(holds(gather(), "a/other"));
}

TEST_F(ScanGatherTest, Gather_OtherNodeDown_IsPartialAndKeepsItsCursor) {
  const auto before = gather().book.at(cluster_.id("b"));
  cluster_["b"].is_down = true;
  const auto gathered = gather();
  EXPECT_FALSE(gathered.complete());
  EXPECT_THAT(failed(gathered), ElementsAre(HasSubstr("http://b:7420: ")));
  EXPECT_EQ(gathered.book.at(cluster_.id("b")).cycle, before.cycle);
}

// A member that only the new configuration lists would be missed, and the scan exit with 0.
TEST_F(ScanGatherTest, Gather_PeersOfTheConfigurationChanged_IsPartialUntilTheReload) {
  ++query_.members_digest;
  const auto gathered = gather();
  EXPECT_FALSE(gathered.complete());
  EXPECT_THAT(gathered.unknown_sources, ElementsAre(HasSubstr("systemctl reload spoord")));
  EXPECT_EQ(gathered.peers.size(), 2U) << "the known members are read";
  gather_->set_members(nullptr, query_.members_digest);
  EXPECT_TRUE(gather().complete());
}

TEST_F(ScanGatherTest, Gather_OwnOnly_AsksNoOther) {
  query_.options.own_only = true;
  ++query_.members_digest;
  const auto gathered = gather();
  EXPECT_TRUE(gathered.complete());
  EXPECT_EQ(gathered.peers.size(), 1U);
  EXPECT_TRUE(cluster_["b"].asked.empty());
}

TEST_F(ScanGatherTest, Gather_OfAnotherNodeOrDataDirectory_IsRefused) {
  for (const bool is_other_node : {true, false}) {
    query_.node.node = is_other_node ? "n2" : "n1";
    query_.instance = is_other_node ? query_.instance : tracker::InstanceId::random();
    const auto response = ask_to_gather();
    EXPECT_EQ(response.status, 409U);
    EXPECT_EQ(response.problem, "wrong_node");
    EXPECT_THAT(response.body, HasSubstr("must use the same node.data_dir"));
  }
  EXPECT_TRUE(cluster_["b"].asked.empty());
}

// The number of a cycle that a crash would undo must not be a cursor.
TEST_F(ScanGatherTest, Gather_JournalFails_ThisNodeIsNotRead) {
  gather();
  files_.fail_below("/data", EIO);
  fail_drives();
  mark_in(persistence_->tracker(), "a/own");
  const auto gathered = gather();
  EXPECT_FALSE(gathered.complete());
  EXPECT_THAT(failed(gathered), ElementsAre(HasSubstr("http://n1:7420: ")));
}

TEST_F(ScanGatherTest, Stop_EndsWhatIsUnderWay) {
  cluster_["b"].before_answer = [this] { gather_->stop(); };
  const auto response = ask_to_gather();
  EXPECT_EQ(response.status, 503U);
}

TEST_F(ScanGatherTest, ManyScansAtOnce_TheirNumberIsBounded) {
  std::vector<Asked*> all;
  for (int i = 0; i < 12; ++i) {
    Asked& asked = asked_.emplace_back();
    asked.request.method = "POST";
    asked.request.path = "/v1/gather";
    asked.request.body = peer::gather_request({}, query_).body;
    boost::asio::co_spawn(context_, api_->handle(asked.request),
                          [&asked](const std::exception_ptr& failure, auto answer) {
                            rethrow(failure);
                            asked.answer = std::move(answer);
                          });
    all.push_back(&asked);
  }
  std::vector<unsigned> statuses;
  for (Asked* asked : all) {
    wait_for(*asked);
    statuses.push_back(asked->answer->status);
  }
  EXPECT_EQ(std::ranges::count(statuses, 503U), 8) << "a client has half of the places";
  EXPECT_EQ(std::ranges::count(statuses, 200U), 4);
}

TEST_F(ScanGatherTest, Members_HaveTheirSourceAndState) {
  Asked& asked = ask("GET", "/v1/members");
  wait_for(asked);
  const json listed = json::parse(asked.answer->body);
  EXPECT_EQ(listed["members"],
            json::parse(R"([{"node":"n1","url":"http://n1:7420","source":"this node","state":"up"},
                            {"node":null,"url":"http://b:7420","source":"peers.static","state":"unknown"}])"));
  EXPECT_EQ(listed["problems"], json::array());
}

}  // namespace
}  // namespace spoor::daemon
