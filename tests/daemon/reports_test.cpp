#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scanner/store/usage_database.h"
#include "tests/daemon/reports_fixture.h"

namespace spoor::daemon {
namespace {

using nlohmann::json;

TEST_F(ReportsTest, BeforeTheFirstScan_ReturnsNoScan) {
  expect_problem(usage(), 404, "no_scan");
  expect_problem(scans(), 404, "no_scan");
  expect_problem(changes({{"since", "0"}}), 404, "no_scan");
  EXPECT_FALSE(std::filesystem::exists(file_)) << "the daemon must not make the scanner's database";
}

TEST_F(ReportsTest, Unread_IsTheCycleOfTheLastScan) {
  const tracker::PeerId id{"n2", tracker::InstanceId::random()};
  const auto ask = [&](const std::string& cluster, const tracker::PeerId& of) {
    return unread(peer::unread_request({}, cluster, of).body);
  };
  EXPECT_EQ(ask("", id).body, R"({"unread_from":null})") << "its first scan walks everything";
  peers_[id].cycle = {7};
  store({"a"});
  EXPECT_EQ(ask("", id).body, R"({"unread_from":7})");
  EXPECT_EQ(ask("", {"n2", tracker::InstanceId::random()}).body, R"({"unread_from":0})");
  const auto read_alone = [&](const std::string& node) {
    auto database = scanner::UsageDatabase::open(file_).value();
    auto transaction = database.begin_scan().value();
    transaction->set_setting(scanner::own_marks_key, node);
    transaction->commit({});
  };
  read_alone("n1");
  EXPECT_EQ(ask("", id).body, R"({"unread_from":null})") << "they read n1 alone";
  read_alone("n2");
  EXPECT_EQ(ask("", id).body, R"({"unread_from":7})");
  expect_problem(ask("another", id), 409, "wrong_cluster");
  expect_problem(unread(R"({"cluster":""})"), 400, "invalid_request");
  expect_problem(unread("garbage"), 400, "invalid_json");
  std::ofstream(file_) << "garbage";
  expect_problem(ask("", id), 500, "database_failed");
}

TEST_F(ReportsTest, Usage_ReturnsTheDirectoryAndItsChildren) {
  store({"a", "b"});
  const auto root = json::parse(usage({{"path", "/"}}).body);
  EXPECT_EQ(root["path"], "");
  EXPECT_EQ(root["files"], 3);
  EXPECT_EQ(root["complete"], true);
  EXPECT_TRUE(root["as_of"].is_string());
  EXPECT_EQ(json::parse(usage({{"sort", "files"}}).body)["children"][0]["path"], "b");
  EXPECT_EQ(json::parse(usage({{"sort", "name"}}).body)["children"][0]["path"], "a");
  EXPECT_EQ(json::parse(usage({{"path", "b"}}).body)["files"], 2);
  EXPECT_EQ(json::parse(usage({{"depth", "0"}}).body)["children"], json::array());
  const auto first = json::parse(usage({{"sort", "name"}, {"limit", "1"}}).body);
  EXPECT_EQ(first["children"].size(), 1U);
  EXPECT_EQ(first["rest"]["files"], 2);
  EXPECT_EQ(first["truncated"], false);
}

TEST_F(ReportsTest, Usage_UnknownDirectory_ReturnsNotFound) {
  store({"a"});
  expect_problem(usage({{"path", "b"}}), 404, "not_found");
}

TEST_F(ReportsTest, Usage_ManyChildren_IsLimitedInCount) {
  std::vector<std::string> names;
  names.reserve(10'500);
  for (int i = 0; i < 10'500; ++i) names.push_back(std::to_string(i));
  store(names);
  const auto some = json::parse(usage().body);
  EXPECT_EQ(some["children"].size(), 1'000U);
  EXPECT_EQ(some["rest"]["count"], 9'500);
  EXPECT_EQ(some["truncated"], false);
  const auto most = json::parse(usage({{"limit", "10000"}}).body);
  EXPECT_EQ(most["children"].size(), 10'000U);
  EXPECT_EQ(most["rest"]["count"], 500);
}

TEST_F(ReportsTest, Usage_LongNames_IsLimitedInBytes) {
  std::vector<std::string> names;
  names.reserve(9'000);
  for (int i = 0; i < 9'000; ++i) names.push_back(std::to_string(10'000 + i) + std::string(250, '\x01'));
  store(names);
  const auto response = usage({{"limit", "10000"}});
  EXPECT_LT(response.body.size(), std::size_t{16} << 20U) << "six bytes for one, where names are so";
  EXPECT_EQ(json::parse(response.body)["truncated"], true);
}

TEST_F(ReportsTest, NonUtf8Names_ResponseIsValidJson) {
  store({"a\xff", "b\x1b\n"});
  const auto found = json::parse(usage({{"sort", "name"}}).body);
  EXPECT_EQ(found["children"][0]["path"], "a\xEF\xBF\xBD");
  EXPECT_EQ(found["children"][1]["path"], "b\x1b\n");
  EXPECT_EQ(json::parse(usage({{"path", "a\xff"}}).body)["files"], 1) << "it can be asked for";
}

TEST_F(ReportsTest, Scans_ReturnsTheLastScansNewestFirst) {
  reason_ = std::string(5'000, 'x');
  store({"a"});
  reason_ = "it was asked for";
  for (int i = 0; i < 30; ++i) {
    auto database = scanner::UsageDatabase::open(file_).value();
    database.begin_scan().value()->commit({});
  }
  const auto last = json::parse(scans().body)["scans"];
  EXPECT_EQ(last.size(), 20U);
  EXPECT_EQ(last[0]["scan"], 31);
  const auto all = json::parse(scans({{"limit", "1000"}}).body)["scans"];
  EXPECT_EQ(all.size(), 31U);
  EXPECT_EQ(all[30]["reason"], std::string(1'000, 'x') + "...");
  EXPECT_EQ(json::parse(scans({{"limit", "1"}}).body)["scans"].size(), 1U);
}

TEST_F(ReportsTest, StartScan_RespondsOnceAUnitHasTakenTheRequest) {
  begin_start_scan();
  settle();
  const auto request = directory_ / "scan.request";
  EXPECT_TRUE(std::filesystem::exists(request));
  EXPECT_TRUE(answers_.empty());
  std::filesystem::remove(request);
  pass(std::chrono::seconds(1));
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].status, 200U);
}

TEST_F(ReportsTest, StartScanThatNoUnitTakes_IsWithdrawnAndReported) {
  begin_start_scan();
  settle();
  pass(std::chrono::seconds(9));
  EXPECT_TRUE(answers_.empty());
  pass(std::chrono::seconds(1));
  ASSERT_EQ(answers_.size(), 1U);
  expect_problem(answers_[0], 503, "not_started");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "scan.request"));
}

TEST_F(ReportsTest, RequestWaitedTooLong_ReturnsOverloaded) {
  store({"a"});
  std::promise<void> go_on;
  boost::asio::post(pool_, [blocked = go_on.get_future().share()] { blocked.wait(); });
  begin_usage({});
  context_.poll();  // begun, and its time runs
  clock_.advance(std::chrono::seconds(11));
  go_on.set_value();
  expect_problem(finish(), 503, "overloaded");
  EXPECT_EQ(usage().status, 200U);
}

// The requests of one caller took all places.
TEST_F(ReportsTest, TooManyRequestsWaiting_ReturnsOverloaded) {
  store({"a"});
  std::promise<void> go_on;
  boost::asio::post(pool_, [blocked = go_on.get_future().share()] { blocked.wait(); });
  for (int i = 0; i < 8; ++i) begin_scans({}, "many");
  context_.poll();
  EXPECT_TRUE(answers_.empty());
  begin_scans({}, "many");
  context_.poll();
  ASSERT_EQ(answers_.size(), 1U);
  expect_problem(answers_[0], 503, "overloaded");
  for (int i = 0; i < 8; ++i) begin_scans({}, "one of " + std::to_string(i));
  context_.poll();
  ASSERT_EQ(answers_.size(), 1U) << "there were places for these";
  begin_scans({}, "one more");
  context_.poll();
  ASSERT_EQ(answers_.size(), 2U);
  expect_problem(answers_[1], 503, "overloaded");
  go_on.set_value();
  finish();
  ASSERT_EQ(answers_.size(), 18U);
  for (std::size_t i = 2; i < answers_.size(); ++i) EXPECT_EQ(answers_[i].status, 200U);
  EXPECT_EQ(usage().status, 200U) << "their places are free again";
}

TEST_F(ReportsTest, RequestThatThrows_ReleasesItsPlace) {
  const ClusterUsage::Options cluster{
      .own = {"n0", "c", "i"},
      .timeout = std::chrono::milliseconds(1),
      .make_transport = [](const peer::HttpTransport::Options&) -> std::unique_ptr<peer::Transport> {
        throw std::bad_alloc();
      }};
  Reports reports(file_, pool_, clock_, waits_, {.cluster = cluster});
  HttpRequest request;
  request.query["scope"] = "cluster";
  for (int i = 0; i < 20; ++i) {
    boost::asio::co_spawn(context_, reports.usage(request, "anyone"),
                          [](const std::exception_ptr& failure, HttpResponse) {
                            EXPECT_THROW(rethrow(failure), std::bad_alloc);
                          });
    context_.restart();
    context_.run();
  }
}

}  // namespace
}  // namespace spoor::daemon
