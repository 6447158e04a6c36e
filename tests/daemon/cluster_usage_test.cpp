#include "daemon/api/cluster_usage.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scanner/report_json.h"
#include "tests/daemon/reports_fixture.h"
#include "tests/fakes/answering_transport.h"
#include "tests/support/json_mutations.h"
#include "tests/support/sanitizer.h"

namespace spoor::daemon {
namespace {

using nlohmann::json;

base::Error refused() { return {std::make_error_code(std::errc::connection_refused), "refused"}; }

json answer_of(const std::string& node, std::uint64_t bytes, const std::string& path = "") {
  return {{"path", path},
          {"files", 1},
          {"dirs", 0},
          {"bytes", bytes},
          {"allocated", 0},
          {"complete", true},
          {"as_of", "2026-01-02T03:04:05Z"},
          {"truncated", false},
          {"children", json::array()},
          {"node", {{"name", node}, {"cluster", "c"}, {"instance", "instance of " + node}}}};
}

class ClusterUsageTest : public testing::Test {
 protected:
  ClusterUsageTest() {
    own_.usage = scanner::Usage();
    own_.usage->total.bytes = 1;
    own_.usage->saw_everything = true;
    own_.usage->as_of = base::WallTime(std::chrono::hours(24 * 365 * 60));
  }

  void member(const std::string& host, const json& answer) { respond_with(host, {200, "", answer.dump()}); }
  void respond_with(const std::string& host, const peer::HttpResponse& response) {
    members_.endpoints.push_back({host, 7420, {}});
    members_.names.emplace_back();
    answers_.emplace(members_.endpoints.back().to_string(), response);
  }

  json ask(const std::string& path = "") {
    UsageTarget target{path, "size", {}};
    const auto response = cluster_.ask(target, own_, members_);
    EXPECT_EQ(response.status, 200U) << response.body;
    return json::parse(response.body);
  }

  base::Result<peer::HttpResponse> answer(const peer::HttpRequest& request) {
    asked_.push_back(request.target);
    const auto found = answers_.find(request.endpoint.to_string());
    return found == answers_.end() ? refused() : found->second;
  }

  // The names of the nodes that are missing.
  static std::vector<std::string> missing(const json& answer) {
    std::vector<std::string> names;
    for (const json& node : answer["nodes"]) {
      if (!node["ok"].get<bool>()) names.push_back(node["name"]);
    }
    EXPECT_EQ(answer["complete"], names.empty() && answer["unknown_sources"].empty());
    return names;
  }

  static std::string error_of(const json& answer, std::size_t node) { return answer["nodes"][node]["error"]; }

  OwnUsage own_{refused(), {}};
  ClusterMembers members_;
  std::map<std::string, base::Result<peer::HttpResponse>> answers_;  // by URL; others refuse
  std::vector<std::string> asked_;
  peer::HttpTransport::Options limits_;  // of what members respond
  ClusterUsage cluster_{{.own = {"n0", "c", "instance of n0", "1.0.0"},
                         .timeout = std::chrono::milliseconds(1),
                         .make_transport = [this](const peer::HttpTransport::Options& options) {
                           limits_ = options;
                           return std::make_unique<fakes::AnsweringTransport>(
                               [this](const auto& request) { return answer(request); });
                         }}};
};

using Names = std::vector<std::string>;

// A directory may be among the largest of the cluster, and not among those of this node.
TEST_F(ReportsTest, UsageOfTheCluster_AddsUpWhatIsBeyondTheLimitHere) {
  store({"a", "b"});
  json child = answer_of("n1", 0, "a");
  child["files"] = 10;
  json other = answer_of("n1", 0);
  other["children"].push_back(child);
  ReportsOptions options;
  options.cluster = {.own = {"n0", "c", "instance of n0", "1.0.0"},
                     .timeout = std::chrono::milliseconds(1),
                     .make_transport = [&](const peer::HttpTransport::Options&) {
                       return std::make_unique<fakes::AnsweringTransport>([&](const peer::HttpRequest&) {
                         return peer::HttpResponse{200, "", other.dump()};
                       });
                     }};
  options.members = [] {
    ClusterMembers members;
    members.endpoints = {{"other", 7420, {}}};
    members.names = {""};
    return members;
  };
  Reports reports{file_, pool_, clock_, waits_, options};
  HttpRequest request;
  request.query = {{"scope", "cluster"}, {"limit", "1"}, {"sort", "files"}};
  const auto response = SteppedTest::begin(reports.usage(request, "anyone"));
  finish();
  const auto answer = json::parse((*response)->body);
  ASSERT_EQ(answer["children"].size(), 1U) << answer;
  EXPECT_EQ(answer["children"][0]["path"], "a");
  EXPECT_EQ(answer["children"][0]["files"], 11);
  EXPECT_EQ(answer["children"][0]["complete"], true);
}

TEST_F(ClusterUsageTest, AllNodes_AreAddedAndNamed) {
  member("b", answer_of("n2", 100));
  member("a", answer_of("n1", 10));
  const auto answer = ask();
  EXPECT_EQ(answer["bytes"], 111);
  EXPECT_EQ(answer["as_of"], "2026-01-02T03:04:05Z") << "the oldest";
  EXPECT_EQ(missing(answer), Names());
  ASSERT_EQ(answer["nodes"].size(), 3U);
  EXPECT_EQ(answer["nodes"][0]["name"], "n0");
  EXPECT_EQ(answer["nodes"][0]["url"], nullptr);
  EXPECT_EQ(answer["nodes"][1]["name"], "n1");
  EXPECT_EQ(answer["nodes"][1]["url"], "http://a:7420");
  EXPECT_EQ(answer["nodes"][1]["complete"], true);
}

TEST_F(ClusterUsageTest, EachNode_HasItsVersionGrowthAndFullestDrive) {
  const json space{{"file_system", "xfs\n"}, {"bytes", 100}, {"used_bytes", 60}, {"free_bytes", 40}};
  json report = answer_of("n1", 10);
  report["node"]["version"] = "1.2.3";
  report["fullest_drive"] = space;
  member("a", report);
  report = answer_of("n2", 10);
  report["node"]["version"] = 7;  // no text
  report["fullest_drive"] = space;
  report["fullest_drive"]["used_bytes"] = -1;
  member("b", report);
  own_.usage->total.growth.emplace().bytes = -5;
  own_.fullest_drive = base::DiskSpace{.bytes = 9, .free_bytes = 2, .used_bytes = 7, .type = "ext4"};
  const auto answer = ask();
  const auto& nodes = answer["nodes"];
  EXPECT_EQ(nodes[0]["fullest_drive"], answer["fullest_drive"]);
  EXPECT_EQ(nodes[0]["fullest_drive"]["used_bytes"], 7);
  EXPECT_EQ(nodes[1]["fullest_drive"]["file_system"], "xfs\\x0a") << "printable";
  EXPECT_EQ(nodes[1]["fullest_drive"]["free_bytes"], 40);
  EXPECT_EQ(nodes[2]["fullest_drive"], nullptr);
  EXPECT_EQ(nodes[0]["version"], "1.0.0");
  EXPECT_EQ(nodes[0]["growth_bytes"], -5);
  EXPECT_EQ(nodes[1]["version"], "1.2.3");
  EXPECT_EQ(nodes[1]["growth_bytes"], nullptr) << "it keeps no history";
  EXPECT_EQ(nodes[2]["version"], nullptr);
}

TEST_F(ClusterUsageTest, Members_AreAskedForTheSamePathDepthAndOrder) {
  member("a", answer_of("n1", 1, "a b/&"));
  UsageTarget target{"a b/&", "files", {}};
  target.options.depth = 3;
  target.options.children_max = 5;
  target.options.owners = true;
  EXPECT_EQ(cluster_.ask(target, own_, members_).status, 200U);
  EXPECT_EQ(asked_, Names{"/v1/usage?absent=empty&path=a%20b%2F%26&depth=3&sort=files&limit=10000&owners=1"});
  for (const auto timeout : {limits_.timeout, limits_.total_timeout})
    EXPECT_EQ(timeout, std::chrono::milliseconds(1));
  EXPECT_LE(limits_.body_bytes_max, 16U << 20U);
  EXPECT_LE(limits_.bodies_bytes_max, 64U << 20U);
}

TEST_F(ClusterUsageTest, MemberThatDoesNotRespond_IsMissing) {
  member("a", answer_of("n1", 10));
  members_.endpoints.push_back({"down", 7420, {}});
  members_.names.emplace_back("n9");
  const auto answer = ask();
  EXPECT_EQ(answer["bytes"], 11);
  EXPECT_EQ(missing(answer), Names{"n9"});
  EXPECT_EQ(error_of(answer, 2), "refused");
}

TEST_F(ClusterUsageTest, MemberThatStopsResponding_CountsWithWhatItReportedLast) {
  member("a", answer_of("n1", 10));
  member("b", answer_of("n2", 100));
  ask();
  answers_.erase("http://b:7420");
  const auto answer = ask();
  EXPECT_EQ(answer["bytes"], 111);
  EXPECT_EQ(missing(answer), Names{"n2"});
  const json& node = answer["nodes"][2];
  EXPECT_EQ(node["name"], "n2") << "its address is all that the members say";
  EXPECT_EQ(node["last_known"], true);
  EXPECT_EQ(node["as_of"], "2026-01-02T03:04:05Z");
  EXPECT_EQ(node["complete"], false);
  EXPECT_EQ(node["error"], "refused");
  EXPECT_EQ(answer["nodes"][1]["last_known"], false);
  EXPECT_EQ(ask("other")["bytes"], 1) << "nothing was reported of that directory";
}

TEST_F(ClusterUsageTest, PeerThatNoSourceListsAnyMore_CountsWithWhatItReportedLast) {
  member("a", answer_of("n1", 10));
  ask();
  members_.endpoints.clear();
  members_.names.clear();
  EXPECT_EQ(ask()["bytes"], 1) << "it has left";
  own_.known_peers = {{"n1", ""}};
  EXPECT_EQ(ask()["bytes"], 11);
}

TEST_F(ClusterUsageTest, MemberThatMoved_CountsOnce) {
  member("a", answer_of("n1", 10));
  ask();
  answers_.clear();
  member("b", answer_of("n1", 12));
  const auto answer = ask();
  EXPECT_EQ(answer["bytes"], 13);
  EXPECT_EQ(missing(answer), Names{""}) << "what is at its former address is not known";
}

TEST_F(ClusterUsageTest, LastReport_HasNoGrowthOfItsOwn) {
  const base::WallTime since(std::chrono::hours(24 * 365 * 55));
  UsageTarget target{"", "size", {}};
  target.options.since = since;
  own_.usage->history_since = since;
  own_.usage->total.growth.emplace().bytes = 1;
  json report = answer_of("n1", 10);
  report["history_since"] = "2025-01-01T00:00:00Z";
  report["growth"] = {{"files", 0},
                      {"dirs", 0},
                      {"bytes", 10},
                      {"allocated", 0},
                      {"since", base::iso_time(since)},
                      {"change", "grown"},
                      {"complete", true}};
  member("a", report);
  const auto growth = [&] {
    const auto response = cluster_.ask(target, own_, members_);
    return json::parse(response.body)["growth"];
  };
  EXPECT_EQ(growth()["bytes"], 11);
  answers_.clear();
  EXPECT_EQ(growth()["bytes"], 1);
  EXPECT_EQ(growth()["complete"], false);
}

TEST_F(ClusterUsageTest, OwnersThatWereNotReported_AreNotTakenForNone) {
  member("a", answer_of("n1", 10));
  ask();
  answers_.clear();
  UsageTarget target{"", "size", {}};
  target.options.owners = true;
  own_.usage->owners.emplace();
  const auto answer = json::parse(cluster_.ask(target, own_, members_).body);
  EXPECT_EQ(answer["bytes"], 1);
  EXPECT_TRUE(answer["owners"].is_object());
}

TEST_F(ClusterUsageTest, MemberThatWasRenamed_CountsOnce) {
  member("a", answer_of("n1", 10));
  ask();
  answers_.clear();
  members_.endpoints.clear();
  members_.names.clear();
  member("a", answer_of("n1b", 12));
  own_.known_peers = {{"n1", ""}};
  EXPECT_EQ(ask()["bytes"], 13);
}

TEST_F(ClusterUsageTest, OwnAddressAmongTheMembers_IsNamedOnce) {
  own_.usage = refused();
  member("a", answer_of("n1", 10));
  members_.endpoints.push_back({"self", 7420, {}});
  members_.names.emplace_back("n0");
  members_.own_urls = {"http://self:7420"};
  EXPECT_EQ(missing(ask()), Names{"n0"}) << "once, where it was never scanned";
  answers_.emplace("http://self:7420", peer::HttpResponse{200, "", answer_of("n2", 100).dump()});
  EXPECT_EQ(ask()["bytes"], 110) << "another node has the address by now";
}

TEST_F(ClusterUsageTest, DirectoryOfNoNode_IsEmptyIfThatIsAskedFor) {
  own_.usage->is_absent = true;
  own_.usage->total.bytes = 0;
  UsageTarget target{"", "size", {}};
  EXPECT_EQ(cluster_.ask(target, own_, members_).status, 404U);
  target.options.absent_is_empty = true;
  EXPECT_EQ(cluster_.ask(target, own_, members_).status, 200U);
}

TEST(LastUsageTest, ReportOfTheTotalAlone_DoesNotReplaceADeeperOne) {
  LastUsage last;
  scanner::Usage usage;
  usage.total.bytes = 7;
  usage.total.is_open = true;
  usage.total.children.resize(2);
  usage.total.children[0].path = "there";
  usage.total.children[1].path = "deleted";
  usage.total.children[1].growth.emplace().change = scanner::UsageGrowth::Change::deleted;
  last.keep({.path = "", .depth = 2, .owners = false}, {"n", "u", usage});
  last.keep({.path = "", .depth = 0, .owners = false}, {"n", "u", scanner::Usage()});
  const auto* const found = last.find("", "u", {.path = "", .depth = 1, .owners = false});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->usage.total.bytes, 7U);
  ASSERT_EQ(found->usage.total.children.size(), 1U);
  EXPECT_EQ(found->usage.total.children[0].path, "there");
  EXPECT_EQ(last.find("n", "", {.path = "", .depth = 0, .owners = false})->usage.total.bytes, 0U);
  EXPECT_EQ(last.find("n", "", {.path = "", .depth = 0, .owners = true}), nullptr);
}

TEST(LastUsageTest, Memory_IsBounded) {
  LastUsage last;
  scanner::Usage usage;
  usage.total.bytes = 1'000;
  usage.total.is_open = true;
  for (int number = 0; number < 1'000; ++number) {
    scanner::UsageEntry child;
    child.path = fmt::format("directory-{}", number);
    child.depth = 1;
    child.bytes = 1;
    usage.total.children.push_back(child);
  }
  constexpr int nodes = 1'000;
  for (int node = 0; node < nodes; ++node) last.keep({}, {fmt::format("n{}", node), "", usage});
  EXPECT_EQ(last.find("n0", "", {}), nullptr) << "the oldest is dropped";
  const auto* const newest = last.find("n999", "", {});
  ASSERT_NE(newest, nullptr);
  EXPECT_EQ(newest->usage.total.bytes, 1'000U);
  EXPECT_EQ(newest->usage.total.children.size(), LastUsage::entries_each);
  EXPECT_EQ(newest->usage.total.rest.count, 1'000 - LastUsage::entries_each);
}

TEST_F(ClusterUsageTest, OwnTotalsMissing_OwnNodeIsMissing) {
  own_.usage = refused();
  member("a", answer_of("n1", 10));
  EXPECT_EQ(missing(ask()), Names{"n0"});
}

TEST_F(ClusterUsageTest, PeerOfTheLastScanThatIsNoMemberNow_IsMissing) {
  member("a", answer_of("n1", 10));
  own_.known_peers = {{"n0", ""}, {"n1", ""}, {"n7", ""}, {"n7", "http://n7:7420"}};
  EXPECT_EQ(missing(ask()), Names{"n7"}) << "once, if two instances of it are expected";
}

TEST_F(ClusterUsageTest, UnknownSource_NothingIsComplete) {
  members_.unknown_sources = {"dns x: it timed out"};
  const auto answer = ask();
  EXPECT_EQ(answer["unknown_sources"], json::array({"dns x: it timed out"}));
  EXPECT_EQ(answer["complete"], false);
  EXPECT_EQ(missing(answer), Names());
}

TEST_F(ClusterUsageTest, NodeAtTwoAddresses_IsAddedOnce) {
  member("a", answer_of("n1", 10));
  member("b", answer_of("n1", 10));
  member("itself", answer_of("n0", 1));
  const auto answer = ask();
  EXPECT_EQ(answer["bytes"], 11);
  EXPECT_EQ(answer["nodes"].size(), 2U);
  EXPECT_EQ(missing(answer), Names());
}

TEST_F(ClusterUsageTest, TwoDaemonsWithOneName_OneIsMissing) {
  member("a", answer_of("n1", 10));
  auto other = answer_of("n1", 10);
  other["node"]["instance"] = "another";
  member("b", other);
  const auto answer = ask();
  EXPECT_EQ(answer["bytes"], 11);
  EXPECT_EQ(missing(answer), Names{"n1"});
  EXPECT_NE(answer["nodes"].dump().find("two daemons call themselves 'n1'"), std::string::npos);
}

// The totals that it has not counted yet would be missed, and the sum be called complete.
TEST_F(ClusterUsageTest, TwoDaemonsWithOneName_OneWithoutAScan_IsMissing) {
  const peer::HttpResponse no_scan{404, "application/problem+json", R"({"code":"no_scan","detail":"none"})"};
  for (const char* name : {"n1", "n0"}) {
    members_ = {};
    answers_.clear();
    member("a", answer_of("n1", 10));
    respond_with("b", no_scan);
    members_.names.back() = name;
    const auto answer = ask();
    EXPECT_EQ(answer["bytes"], 11);
    EXPECT_EQ(missing(answer), Names{name});
  }
}

TEST_F(ClusterUsageTest, NameOfTheNodeThatIsAsked_IsNotAddedEvenIfItsOwnTotalsAreMissing) {
  own_.usage = refused();
  auto other = answer_of("n0", 10);
  other["node"]["instance"] = "another";
  member("a", other);
  const auto answer = ask();
  EXPECT_EQ(answer["bytes"], 0);
  EXPECT_EQ(answer["as_of"], nullptr);
  EXPECT_EQ(missing(answer), (Names{"n0", "n0"}));
}

TEST_F(ClusterUsageTest, CertificateOfAnotherNode_IsMissing) {
  respond_with("a", {200, "", answer_of("n1", 10).dump(), {"n2.example"}});
  const auto answer = ask();
  EXPECT_EQ(answer["bytes"], 1);
  EXPECT_NE(error_of(answer, 0).find("was issued for 'n2.example'"), std::string::npos);
}

TEST_F(ClusterUsageTest, UnusableResponses_AreMissingNodes) {
  auto without_node = answer_of("n1", 10);
  without_node.erase("node");
  auto of_another_cluster = answer_of("n1", 10);
  of_another_cluster["node"]["cluster"] = "d";
  auto negative = answer_of("n1", 10);
  negative["node"] = 7;
  auto without_figures = answer_of("n1", 10);
  without_figures.erase("bytes");
  std::vector<peer::HttpResponse> responses{
      {200, "", ""},
      {200, "", answer_of("n1", 10).dump() + answer_of("n1", 10).dump()},
      {200, "", "no JSON"},
      {200, "", "[]"},
      {200, "", fmt::format("{{\"a\":{}{}}}", std::string(100'000, '['), std::string(100'000, ']'))},
      {200, "", without_node.dump()},
      {200, "", of_another_cluster.dump()},
      {200, "", negative.dump()},
      {200, "", without_figures.dump()},
      {200, "", answer_of("n1", 10, "elsewhere").dump()},
      {403, "application/problem+json", R"({"detail":"not allowed"})"},
      {404, "application/problem+json", R"({"code":"no_scan","detail":"there was no scan"})"},
  };
  for (const char* const member : {"name", "cluster"}) {
    for (const json& word :
         {json(""), json(5), json("a b"), json("a\x1b[2J"), json(std::string(100'000, 'n'))}) {
      auto misnamed = answer_of("n1", 10);
      misnamed["node"][member] = word;
      responses.push_back({200, "", misnamed.dump()});
    }
  }
  for (const auto& response : responses) {
    members_ = {};
    answers_.clear();
    respond_with("a", response);
    const auto answer = ask();
    EXPECT_EQ(answer["bytes"], 1) << response.body.substr(0, 100);
    EXPECT_EQ(answer["complete"], false) << response.body.substr(0, 100);
    EXPECT_FALSE(answer["nodes"][0]["ok"]) << response.body.substr(0, 100);
    EXPECT_NE(error_of(answer, 0), "") << response.body.substr(0, 100);
    EXPECT_LT(error_of(answer, 0).size(), 1'000U);
  }
  answers_.at("http://a:7420").value().body = of_another_cluster.dump();
  EXPECT_EQ(error_of(ask(), 0), "node 'n1' belongs to cluster 'd', not to 'c'");
}

TEST_F(ClusterUsageTest, SumsBeyondTheirType_SaturateAndSayThat) {
  auto huge = answer_of("n1", std::uint64_t(-1));
  huge["children"] = {answer_of("n1", std::uint64_t(-1), "a"), answer_of("n1", 1, "b")};
  member("a", huge);
  member("b", [] {
    auto other = answer_of("n2", 5);
    other["children"] = {answer_of("n2", 5, "a")};
    return other;
  }());
  UsageTarget target{"", "name", {}};
  target.options.depth = 1;
  const auto answer = json::parse(cluster_.ask(target, own_, members_).body);
  for (const json& entry : {answer, answer["children"][0]}) {
    EXPECT_EQ(entry["bytes"], std::uint64_t(-1));
    EXPECT_EQ(entry["saturated"], true);
  }
  EXPECT_FALSE(answer["children"][1].contains("saturated"));
}

// Parsed, they would take many times the memory of the response.
TEST_F(ClusterUsageTest, MoreValuesThanANodeReturns_IsMissing) {
  auto padded = answer_of("n1", 10);
  padded["padding"] = std::vector<int>(peer::json_values_max, 0);
  member("a", padded);
  const auto answer = ask();
  EXPECT_EQ(answer["bytes"], 1);
  EXPECT_EQ(error_of(answer, 0), "its response is not a JSON object of at most 1000000 values");
}

// Each of its entries has all members that there are.
TEST_F(ClusterUsageTest, LargestResponseOfANode_IsAdded) {
  scanner::Usage usage;
  usage.saw_everything = usage.has_copy_rules = true;
  usage.since = base::WallTime();
  const auto fill = [](scanner::UsageFigures& figures) {
    figures.bytes = 1;
    figures.growth.emplace().from = "before";
    for (int factor = 2; factor <= 6; ++factor) figures.copied[factor] = 1;
  };
  for (int i = 0; i < (support::is_sanitized ? 1'000 : 10'000); ++i) {
    scanner::UsageEntry& child = usage.total.children.emplace_back();
    child.path = "\xff" + std::to_string(i);
    child.depth = 1;
    child.is_open = child.is_unread = true;
    child.rest.count = 1;
    fill(child);
    fill(child.rest);
  }
  fill(usage.total);
  usage.total.is_open = true;
  auto body = scanner::usage_json(usage);
  body["node"] = answer_of("n1", 0)["node"];
  respond_with("a", {200, "", body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)});
  const auto answer = ask();
  EXPECT_EQ(answer["bytes"], 2);
  EXPECT_EQ(missing(answer), Names()) << answer["nodes"];
}

TEST_F(ClusterUsageTest, OlderSpoor_IsNamedAsSuch) {
  respond_with("a", {400, "application/problem+json", R"({"detail":"there is no parameter 'absent'"})"});
  EXPECT_EQ(error_of(ask(), 0), "it may run an older Spoor: there is no parameter 'absent'");
}

TEST_F(ClusterUsageTest, AnyMemberMissingOrOfAnotherType_IsAddedOrMissing) {
  member("b", answer_of("n2", 100));
  json answer = answer_of("n1", 10);
  answer["children"] = json::array({answer_of("n1", 5, "a")});
  member("a", answer);
  support::for_each_mutation<json>(answer, [&](const json& mutated, const std::string& what) {
    answers_.at("http://a:7420").value().body = mutated.dump();
    SCOPED_TRACE(what);
    const auto sum = ask();
    const auto absent = missing(sum);
    std::uint64_t old = 0;
    for (const json& node : sum["nodes"])
      old += node["last_known"].get<bool>() ? node["bytes"].get<std::uint64_t>() : 0;
    EXPECT_TRUE(absent.empty() || sum["bytes"] == scanner::saturating_add(101, old))
        << "of the others: " << sum;
    EXPECT_TRUE(mutated.contains("node") || absent.size() == 1);
  });
}

TEST_F(ClusterUsageTest, DirectoryThatNoNodeHas_IsNotFoundOnlyIfAllNodesAreThere) {
  own_.usage->total.path = "a";
  own_.usage->total.bytes = 0;
  own_.usage->is_absent = true;
  auto absent = answer_of("n1", 0, "a");
  absent["absent"] = true;
  member("a", absent);
  UsageTarget target{"a", "size", {}};
  EXPECT_EQ(cluster_.ask(target, own_, members_).status, 404U);
  own_.known_peers = {{"n7", ""}};
  const auto answer = ask("a");
  EXPECT_EQ(answer["path"], "a");
  EXPECT_EQ(missing(answer), Names{"n7"});
}

TEST_F(ClusterUsageTest, ErrorsOfPeers_ArePrintableAndShort) {
  member("a",
         {500, "application/problem+json", json{{"detail", "\x1b[31m" + std::string(5'000, 'x')}}.dump()});
  const std::string error = error_of(ask(), 0);
  EXPECT_LT(error.size(), 1'000U);
  EXPECT_EQ(error.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace spoor::daemon
