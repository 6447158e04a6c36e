// A member of the cluster that responds to GET /v1/usage with anything. Which JSON is none of a usage is
// asserted in tests/scanner/report_json_test.cpp, what is in no sum in tests/scanner/usage_sum_test.cpp.
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

  // A copy of the text: the server may still send when the daemon has given up.
  static Respond sends(const std::string& text) {
    return [text](const auto& connection) { connection.send(text); };
  }
  static Respond sends_without_end(const std::string& begin, const std::string& more) {
    return [begin, more](const auto& connection) {
      connection.send(begin);
      while (connection.send(more)) {
      }
    };
  }

  Answer ask_with(Respond respond) {
    {
      const std::scoped_lock lock(mutex_);
      respond_ = std::move(respond);
    }
    return ask(node(0));
  }
  Answer ask_with_body(const std::string& body) { return ask_with(sends(CannedServer::response(body))); }

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

TEST_F(HostileMemberTest, OtherThanAUsageObject_IsMissing) {
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += R"({"children":[)";
  std::vector<std::string> bodies{"",
                                  "not JSON",
                                  "[]",
                                  "{}",
                                  std::string(5'000'000, '['),
                                  deep,
                                  "\xff",
                                  honest().dump() + honest().dump()};
  // The time to parse a response is linear in its size.
  for (const std::string element : {"{},", "[],", "0,", "{\"\":0},"}) {
    std::string& body = bodies.emplace_back("{\"children\":[");
    while (body.size() < (4U << 20U)) body += element;
    body += "0]}";
  }
  const auto add = [&](const char* member, const json& value) {
    json body = honest();
    (body.contains(member) ? body : body["node"])[member] = value;
    bodies.push_back(body.dump());
  };
  add("bytes", "5");
  add("as_of", "yesterday");
  add("path", "bucket");
  for (const json& name :
       {json(""), json(std::string(10'000'000, 'n')), json("a\x1b[2J"), json("a b"), json(5), json("n0")})
    add("name", name);
  add("cluster", std::string(10'000'000, 'c'));
  for (const auto& body : bodies) expect_missing_with_body(body, body.substr(0, 40));
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

TEST_F(HostileMemberTest, ChildListedTwice_LeavesTheOthersSums) {
  json body = honest();
  body["children"] = json::array({entry("its"), entry("its")});
  Totals totals = ask_with_body(body.dump()).totals();
  totals.erase("its");
  Totals expected = truth();
  expected[""] = {expected[""].files + 1, expected[""].dirs + 2, expected[""].bytes + 5};
  EXPECT_EQ(totals, expected);
}

TEST_F(HostileMemberTest, NameOfAnotherMember_OneOfThemIsMissing) {
  json body = honest();
  body["node"]["name"] = "n1";
  const Answer answer = ask_with_body(body.dump());
  EXPECT_EQ(answer.code, 3);
  EXPECT_EQ(answer.json["complete"], false);
  EXPECT_EQ(answer.missing(cluster_).size(), 1U) << "no one knows which of them is right";
  EXPECT_THAT(answer.err, testing::HasSubstr("two daemons call themselves 'n1'"));
}

TEST_F(HostileMemberTest, ResponseOfAnyStatusOrSize_IsMissingAndItsTextIsBounded) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const std::string detail = json{{"detail", std::string(5'000'000, 'd') + "\x1b[2J\n"}}.dump();
  for (const char* const status : {"400 Bad", "404 Not Found", "500 Error", "302 Found", "204 No"})
    expect_missing(ask_with(sends(CannedServer::response(detail, status))), status);
  json body = honest();
  body["padding"] = std::string(20U << 20U, 'x');
  expect_missing_with_body(body.dump(), "20 MiB");
  expect_missing(ask_with(sends(ok + "Content-Length: 18446744073709551615\r\n\r\n{")), "2^64 bytes");
  expect_missing(ask_with(sends_without_end(ok + "Transfer-Encoding: chunked\r\n\r\n",
                                            "10000\r\n" + std::string(0x10000, ' ') + "\r\n")),
                 "chunks without end");
  expect_missing(ask_with(sends_without_end(ok, "X: " + std::string(1000, 'x') + "\r\n")),
                 "header without end");
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
  expect_missing(ask_with(sends("HTTP/1.1 200 OK\r\n")), "half");
  expect_missing(ask_with(sends("\r\n\r\nnot HTTP\xff")), "not HTTP");
  expect_missing(ask_with([](const auto& connection) { connection.wait_until_closed(); }), "never");
  expect_missing(ask_with([](const auto& connection) {
                   const std::string response = CannedServer::response(honest().dump());
                   for (std::size_t at = 0; at < response.size(); ++at) {
                     if (!connection.send(response.substr(at, 1))) return;
                     std::this_thread::sleep_for(std::chrono::milliseconds(at < 20 ? 10 : 1000));
                   }
                 }),
                 "a byte at a time");
  const Answer honestly = ask_with_body(honest().dump());
  EXPECT_EQ(honestly.code, 0) << "the next response is as good as ever: " << honestly.err;
  Totals expected = truth();
  expected[""] = {expected[""].files + 1, expected[""].dirs + 2, expected[""].bytes + 5};
  EXPECT_EQ(honestly.totals(), expected);
}

}  // namespace
}  // namespace spoor::cluster
