// A member of the cluster that responds to GET /v1/usage with anything.
#include <gmock/gmock.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "tests/cluster/cluster_usage.h"
#include "tests/support/canned_server.h"

namespace spoor::cluster {
namespace {

using nlohmann::json;
using support::CannedServer;

// Two real nodes, and the hostile one.
class HostileMemberTest : public ClusterUsageTest {
 protected:
  using Respond = std::function<void(const CannedServer::Connection&)>;

  HostileMemberTest() : ClusterUsageTest(2) {
    for (Cluster::Node& each : cluster_.nodes()) write(each, "bucket/" + each.name + "/file", 10);
    scan_all();
    configure(node(0), [this](json& config) {
      config["peers"]["static"] = json::array({url_of(node(1)), hostile_.url()});
      config["peers"]["timeout"] = timeout;
    });
  }

  // Long for an honest member on a busy machine.
  static constexpr const char* timeout = "4s";

  static json honest() {
    return {{"path", ""},
            {"files", 1},
            {"dirs", 2},
            {"bytes", 5},
            {"allocated", 0},
            {"complete", true},
            {"as_of", "2026-01-01T00:00:00Z"},
            {"truncated", false},
            {"children", json::array()},
            {"node", {{"name", "hostile"}, {"cluster", "test"}, {"instance", std::string(32, 'a')}}}};
  }
  static json entry(const std::string& path) {
    return {{"path", path}, {"files", 1}, {"dirs", 0}, {"bytes", 5}, {"allocated", 0}, {"complete", true}};
  }

  Answer ask_with(Respond respond) {
    {
      const std::scoped_lock lock(mutex_);
      respond_ = std::move(respond);
    }
    return ask(node(0));
  }
  Answer ask_with_body(const std::string& body) {
    return ask_with([body](const auto& connection) { connection.send(CannedServer::response(body)); });
  }

  Totals truth() { return count({&node(0), &node(1)}); }

  // It is missing, and the sums are those of the others.
  void expect_missing(const Answer& answer, const std::string& what) {
    SCOPED_TRACE(what);
    EXPECT_EQ(answer.code, 3) << answer.err;
    EXPECT_EQ(answer.totals(), truth());
    EXPECT_EQ(answer.json["complete"], false);
    EXPECT_EQ(answer.missing(cluster_), (std::multiset<std::string>{""})) << answer.json["nodes"];
    const std::string error = answer.error_of(hostile_.url());
    EXPECT_NE(error, "");
    EXPECT_LT(error.size(), 1000U);
  }
  void expect_missing_with_body(const std::string& body, const std::string& what) {
    expect_missing(ask_with_body(body), what);
  }

  // It counts as it responds, and the others' directories are exact.
  void expect_added(const Answer& answer, const support::TreeTotals& its, const std::string& what) {
    SCOPED_TRACE(what);
    EXPECT_EQ(answer.code, 0) << answer.err;
    Totals totals = answer.totals();
    Totals expected = truth();
    support::TreeTotals& all = expected[""];
    all = {all.files + its.files, all.dirs + its.dirs, all.bytes + its.bytes};
    EXPECT_EQ(totals, expected);
  }

  std::mutex mutex_;  // guards the next one
  Respond respond_;
  CannedServer hostile_{[this](const std::string& request_line, const CannedServer::Connection& connection) {
    if (!request_line.starts_with("GET /v1/usage?")) {
      connection.send(CannedServer::response("{}", "503 Service Unavailable"));
      return;
    }
    Respond respond;
    {
      const std::scoped_lock lock(mutex_);
      respond = respond_;
    }
    respond(connection);
  }};
};

TEST_F(HostileMemberTest, HonestResponse_IsAdded) {
  expect_added(ask_with_body(honest().dump()), {1, 2, 5}, "honest");
}

TEST_F(HostileMemberTest, OtherThanAUsageObject_IsMissing) {
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += R"({"children":[)";
  for (const auto& body :
       {std::string(), std::string("not JSON"), std::string("[]"), std::string("null"), std::string("{}"),
        std::string(5'000'000, '['), deep, std::string(1, '\0'), honest().dump() + honest().dump()}) {
    expect_missing_with_body(body, body.substr(0, 40));
  }
  const auto without = [](const char* member) {
    json body = honest();
    body.erase(member);
    return body.dump();
  };
  for (const char* const member : {"node", "path", "files", "bytes", "complete", "as_of", "truncated"})
    expect_missing_with_body(without(member), std::string("without ") + member);
  const auto with = [](const char* member, json value) {
    json body = honest();
    body[member] = std::move(value);
    return body.dump();
  };
  expect_missing_with_body(with("path", "bucket"), "another path");
  expect_missing_with_body(with("path_base64", "eA=="), "another path in base64");
  expect_missing_with_body(with("path_base64", "?"), "base64");
  expect_missing_with_body(with("as_of", "yesterday"), "time");
  expect_missing_with_body(with("as_of", 5), "number as time");
  expect_missing_with_body(with("complete", "no"), "complete");
  expect_missing_with_body(with("absent", "no"), "absent");
  expect_missing_with_body(with("children", 5), "children");
  expect_missing_with_body(with("children", json::array({5})), "a child");
}

TEST_F(HostileMemberTest, NumbersThatAreNoSums_AreMissing) {
  for (const std::string bad :
       {"18446744073709551616", "-1", "1e300", "1.5", "\"5\"", "true", "null", "[1]"}) {
    for (const std::string member : {"files", "dirs", "bytes", "allocated"}) {
      const std::string number = "\"" + member + "\":";
      json body = honest();
      body["children"] = json::array({entry("bucket")});
      std::string top = body.dump();
      top.insert(top.rfind(number) + number.size(), bad + ",\"x\":");  // the entry's own is the last one
      expect_missing_with_body(top, member + " " + bad);
      std::string child = body.dump();
      child.insert(child.find(number) + number.size(), bad + ",\"x\":");
      expect_missing_with_body(child, member + " of a child " + bad);
    }
    json body = honest();
    body["rest"] = {{"count", 1}, {"files", 1},     {"dirs", 0},
                    {"bytes", 1}, {"allocated", 0}, {"complete", true}};
    std::string rest = body.dump();
    rest.replace(rest.find("\"count\":1") + 8, 1, bad);
    expect_missing_with_body(rest, "rest " + bad);
    body = honest();
    body["copied"] = json::array({{{"factor", 3}, {"bytes", 1}}});
    std::string copied = body.dump();
    copied.replace(copied.find("\"bytes\":1}") + 8, 1, bad);
    expect_missing_with_body(copied, "copied " + bad);
  }
  for (const std::string factor : {"0", "-1", "0.5", "1e999", "\"3\"", "null"}) {
    json body = honest();
    body["copied"] = json::array({{{"bytes", 1}, {"factor", 3}}});
    std::string copied = body.dump();
    copied.replace(copied.find("\"factor\":3") + 9, 1, factor);
    expect_missing_with_body(copied, "factor " + factor);
  }
}

// A sum beyond 2^64 is marked, and nothing wraps.
TEST_F(HostileMemberTest, HugeSums_Saturate) {
  json body = honest();
  body["bytes"] = std::uint64_t(-1);
  body["children"] = json::array({entry("bucket")});
  body["children"][0]["files"] = std::uint64_t(-1);
  const Answer answer = ask_with_body(body.dump());
  EXPECT_EQ(answer.json["bytes"], std::uint64_t(-1));
  EXPECT_EQ(answer.json["saturated"], true);
  EXPECT_EQ(answer.json["children"][0]["files"], std::uint64_t(-1));
  EXPECT_EQ(answer.json["children"][0]["saturated"], true);
  EXPECT_EQ(answer.totals()["bucket/n0"], truth()["bucket/n0"]);
}

TEST_F(HostileMemberTest, ChildrenOutsideOfTheirParent_AreInNoSum) {
  for (const std::string path : {"", "/", "bucket/n0", "../bucket", "/bucket", "bucket/"}) {
    json body = honest();
    body["children"] = json::array({entry(path)});
    expect_added(ask_with_body(body.dump()), {1, 2, 5}, "child " + path);
  }
  json body = honest();
  body["children"] = json::array({entry("other")});
  body["children"][0]["children"] = json::array({entry("bucket"), entry("bucket/n0"), entry("other")});
  Totals expected = truth();
  expected[""] = {expected[""].files + 1, expected[""].dirs + 2, expected[""].bytes + 5};
  expected["other"] = {1, 0, 5};
  EXPECT_EQ(ask_with_body(body.dump()).totals(), expected);
}

TEST_F(HostileMemberTest, ChildListedTwice_LeavesTheOthersSums) {
  json body = honest();
  body["children"] = json::array({entry("its"), entry("its")});
  Totals totals = ask_with_body(body.dump()).totals();
  totals.erase("its");
  Totals expected = truth();
  expected[""] = {expected[""].files + 1, expected[""].dirs + 2, expected[""].bytes + 5};
  EXPECT_EQ(totals, expected);
}

TEST_F(HostileMemberTest, NameOfAnotherNode_OneIsMissing) {
  json body = honest();
  body["node"]["name"] = "n0";
  expect_missing_with_body(body.dump(), "the name of the node that asks");
  body["node"]["name"] = "n1";
  const Answer answer = ask_with_body(body.dump());
  EXPECT_EQ(answer.code, 3);
  EXPECT_EQ(answer.json["complete"], false);
  EXPECT_EQ(answer.missing(cluster_).size(), 1U) << "no one knows which of them is right";
  EXPECT_THAT(answer.err, testing::HasSubstr("two daemons call themselves 'n1'"));
}

TEST_F(HostileMemberTest, NamesThatNoNodeHas_AreMissing) {
  for (const json& name :
       {json(""), json(std::string(10'000'000, 'n')), json("a\x1b[2J"), json("a b"), json(5)}) {
    json body = honest();
    body["node"]["name"] = name;
    expect_missing_with_body(body.dump(), name.dump().substr(0, 40));
  }
  json body = honest();
  body["node"]["cluster"] = std::string(10'000'000, 'c');
  expect_missing_with_body(body.dump(), "cluster");
}

TEST_F(HostileMemberTest, ErrorStatus_IsMissingAndItsTextIsBounded) {
  const std::string detail = std::string(5'000'000, 'd') + "\x1b[2J\n";
  for (const char* const status : {"400 Bad", "404 Not Found", "500 Error", "302 Found", "204 No"}) {
    // A copy: the server may still send when the daemon has given up.
    expect_missing(ask_with([detail, status](const auto& connection) {
                     connection.send(CannedServer::response(json{{"detail", detail}}.dump(), status));
                   }),
                   status);
  }
}

TEST_F(HostileMemberTest, ResponseTooLarge_IsMissing) {
  json body = honest();
  body["padding"] = std::string(20U << 20U, 'x');
  expect_missing_with_body(body.dump(), "20 MiB");
  expect_missing(ask_with([](const auto& connection) {
                   connection.send("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n{");
                 }),
                 "2^64 bytes announced");
  expect_missing(ask_with([](const auto& connection) {
                   connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                   while (connection.send("10000\r\n" + std::string(0x10000, ' ') + "\r\n")) {
                   }
                 }),
                 "chunks without end");
  expect_missing(ask_with([](const auto& connection) {
                   connection.send("HTTP/1.1 200 OK\r\n");
                   while (connection.send("X: " + std::string(1000, 'x') + "\r\n")) {
                   }
                 }),
                 "header without end");
}

// The time to parse a response is linear in its size.
TEST_F(HostileMemberTest, ManySmallElements_AreParsedSoon) {
  for (const std::string element : {"{},", "[],", "0,", "{\"\":0},"}) {
    std::string body = "{\"children\":[";
    while (body.size() < (4U << 20U)) body += element;
    expect_missing_with_body(body + "0]}", element);
  }
}

// More directories than are held at a time.
TEST_F(HostileMemberTest, ManyDirectories_AreSummedInTheRest) {
  json body = honest();
  for (int i = 0; i < 120'000; ++i) body["children"].push_back(entry("d" + std::to_string(i)));
  const Answer answer = ask_with_body(body.dump());
  EXPECT_EQ(answer.code, 3) << answer.err;
  EXPECT_EQ(answer.json["truncated"], true);
  EXPECT_EQ(answer.json["bytes"], truth()[""].bytes + 5);
  EXPECT_LE(answer.json["children"].size(), 10'000U);
  EXPECT_EQ(answer.json["children"][0]["path"], "bucket") << "the largest";
}

TEST_F(HostileMemberTest, NoResponse_IsMissing) {
  expect_missing(ask_with([](const auto&) {}), "closes the connection");
  expect_missing(ask_with([](const auto& connection) { connection.send("HTTP/1.1 200 OK\r\n"); }), "half");
  expect_missing(ask_with([](const auto& connection) { connection.send("\r\n\r\nnot HTTP\xff"); }),
                 "not HTTP");
  expect_missing(ask_with([](const auto& connection) { connection.wait_until_closed(); }), "never");
  expect_missing(ask_with([](const auto& connection) {
                   const std::string response = CannedServer::response(honest().dump());
                   for (std::size_t at = 0; at < response.size(); ++at) {
                     if (!connection.send(response.substr(at, 1))) return;
                     std::this_thread::sleep_for(std::chrono::milliseconds(at < 20 ? 10 : 1000));
                   }
                 }),
                 "a byte at a time");
  EXPECT_EQ(ask_with_body(honest().dump()).code, 0) << "the next response is as good as ever";
}

}  // namespace
}  // namespace spoor::cluster
