// The contract of docs/http-api.md, against a running spoord.
#include "peer/gather/cycle_frame.h"
#include "tests/daemon/spoord_fixture.h"
#include "tests/support/file_times.h"
#include "tests/support/raw_client.h"

namespace spoor::daemon {
namespace {

using nlohmann::json;

class HttpApiTest : public SpoordTest {
 protected:
  HttpApiTest() { start(); }

  void expect_problem(const peer::HttpResponse& response, unsigned status, const std::string& code) {
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_EQ(response.content_type, "application/problem+json");
    const auto problem = json::parse(response.body);
    EXPECT_EQ(problem["code"], code);
    EXPECT_EQ(problem["status"], status);
    for (const char* member : {"type", "title", "detail"}) EXPECT_TRUE(problem[member].is_string()) << member;
  }

  bool is_dirty(const std::string& path) { return get("/v1/dirty?path=" + path)["dirty"]; }
};

TEST_F(HttpApiTest, PostMarks_AcknowledgesWithTheCycle) {
  const auto response = request("POST", "/v1/marks", R"({"paths":["b/a","b/c",".spoor/x"]})");
  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(json::parse(response.body), json::parse(R"({"marked":2,"ignored":1,"cycle":1})"));
  for (const char* path : {"b", "b/a", "b/c"}) EXPECT_TRUE(is_dirty(path)) << path;
  EXPECT_FALSE(is_dirty("b/d"));
}

TEST_F(HttpApiTest, PostTextMarks_KindAndDelimiter_AreApplied) {
  EXPECT_EQ(request("POST", "/v1/marks?kind=file", "t/file", "text/plain").status, 200U);
  EXPECT_TRUE(is_dirty("t"));
  EXPECT_FALSE(is_dirty("t/file"));
  EXPECT_EQ(
      request("POST", "/v1/marks?kind=tree&delimiter=nul", std::string("t/r\0t/s", 7), "text/plain").status,
      200U);
  EXPECT_TRUE(is_dirty("t/s/anything/below"));
}

TEST_F(HttpApiTest, PostMarks_OneInvalidPath_RefusesTheWholeRequest) {
  const auto response = request("POST", "/v1/marks", R"({"paths":["half/applied","x/../y"]})");
  expect_problem(response, 400, "invalid_path");
  EXPECT_EQ(json::parse(response.body)["index"], 1);
  EXPECT_EQ(json::parse(response.body)["path"], "x/../y");
  EXPECT_FALSE(is_dirty("half/applied"));
}

TEST_F(HttpApiTest, PostMarks_EachError_HasItsStatusAndCode) {
  expect_problem(request("POST", "/v1/marks", "{nope"), 400, "invalid_json");
  expect_problem(request("POST", "/v1/marks", R"({"paths":1})"), 400, "invalid_request");
  expect_problem(request("POST", "/v1/marks", R"({"paths":[""]})"), 400, "invalid_path");
  expect_problem(request("POST", "/v1/marks", std::string(300, 'x'), "text/plain"), 400, "path_too_long");
  expect_problem(request("POST", "/v1/marks", "a", "text/html"), 415, "unsupported_media_type");
  expect_problem(request("POST", "/v1/marks?kind=tree", R"({"paths":["a"]})"), 400, "invalid_request");
  expect_problem(request("POST", "/v1/marks?knid=tree", "a", "text/plain"), 400, "invalid_request");
  expect_problem(request("GET", "/v1/marks"), 405, "method_not_allowed");
  expect_problem(request("POST", "/v1/nothing", "a"), 404, "not_found");
  expect_problem(request("POST", "/v1/marks", std::string((8U << 20U) + 1, 'x'), "text/plain"), 413,
                 "body_too_large");
  support::RawClient client(port());
  client.send(
      "POST /v1/marks HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n");
  EXPECT_NE(client.receive_all().find("\"code\":\"length_required\""), std::string::npos);
  EXPECT_EQ(get("/v1/status")["marks"]["accepted"], 0);
  EXPECT_EQ(get("/v1/status")["cycles"][0]["items"], 0);
}

TEST_F(HttpApiTest, PostS3Events_MarksTheObjects) {
  const auto response =
      request("POST", "/v1/events/s3",
              R"({"EventName":"s3:ObjectCreated:Put","Records":[)"
              R"({"eventSource":"minio:s3","eventName":"s3:ObjectCreated:Put",)"
              R"("s3":{"bucket":{"name":"b"},"object":{"key":"a%2Fnew+one%2F"}}},)"
              R"({"eventSource":"ceph:s3","eventName":"ObjectRemoved:Delete",)"
              R"("s3":{"bucket":{"name":"b"},"object":{"key":"c+d"}}},)"
              R"({"eventName":"s3:ObjectAccessed:Get","s3":{"bucket":{"name":"b"},"object":{"key":"read"}}},)"
              R"({"eventName":"s3:Nobody:Knows"}]})");
  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(json::parse(response.body), json::parse(R"({"marked":2,"ignored":2,"cycle":1})"));
  for (const char* path : {"b", "b/a", "b/a/new%20one", "b/a/new%20one__XLDIR__", "b/c%2Bd", "b/c%20d"}) {
    EXPECT_TRUE(is_dirty(path)) << path;
  }
  EXPECT_FALSE(is_dirty("b/read"));
  EXPECT_EQ(get("/v1/status")["marks"], json::parse(R"({"accepted":2,"ignored":2,"new":4,"rejected":0})"));
  EXPECT_NE(daemon_->wait_for("S3 events named 's3:Nobody:Knows'"), "");
}

TEST_F(HttpApiTest, PostS3Events_KindFile_MarksTheParents) {
  const std::string body =
      R"({"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":"a/file"}}}]})";
  EXPECT_EQ(request("POST", "/v1/events/s3?kind=file", body).status, 200U);
  EXPECT_TRUE(is_dirty("b/a"));
  EXPECT_FALSE(is_dirty("b/a/file"));
}

// Its sender would have repeated it for ever, and nothing behind it would have come.
TEST_F(HttpApiTest, PostS3Events_InvalidKey_IsAcknowledgedAndMarksTheTreeAbove) {
  const auto body = [](const std::string& key) {
    return R"({"Records":[{"eventSource":"ceph:s3","eventName":"ObjectCreated:Put",)"
           R"("s3":{"bucket":{"name":"b"},"object":{"key":")" +
           key + R"("}}}]})";
  };
  const std::string answer = R"({"marked":1,"ignored":0,"cycle":1})";
  auto response = request("POST", "/v1/events/s3?kind=file", body("d/" + std::string(256, 'k')));
  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(json::parse(response.body), json::parse(answer));
  EXPECT_TRUE(is_dirty("b/d/anything/below"));
  EXPECT_FALSE(is_dirty("b/other"));
  response = request("POST", "/v1/events/s3?prefix=tenant", body("a/../x\\n\\u001b[2J"));
  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(json::parse(response.body), json::parse(answer));
  EXPECT_TRUE(is_dirty("tenant/b/anything/below"));
  EXPECT_FALSE(is_dirty("b/other"));
  EXPECT_NE(request("GET", "/metrics").body.find("\nspoor_s3_events_invalid_key_total 2\n"),
            std::string::npos);
  EXPECT_NE(daemon_->wait_for("S3 events name objects that can be no path").find("b/d"), std::string::npos);
  EXPECT_EQ(daemon_->log().find('\x1b'), std::string::npos);
}

TEST_F(HttpApiTest, PostS3Events_OneInvalidRecord_RefusesAllEvents) {
  const auto records = [](const std::string& key) {
    return R"({"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":"half"}}},)"
           R"({"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":)" +
           key + "}}}]}";
  };
  const auto response = request("POST", "/v1/events/s3", records("7"));
  expect_problem(response, 400, "invalid_request");
  EXPECT_EQ(json::parse(response.body)["index"], 1);
  expect_problem(request("POST", "/v1/events/s3?kind=tree", records("\"a\"")), 400, "invalid_request");
  expect_problem(request("POST", "/v1/events/s3", records("\"a\""), "text/plain"), 415,
                 "unsupported_media_type");
  expect_problem(request("POST", "/v1/events/s3", "{nope"), 400, "invalid_json");
  expect_problem(request("GET", "/v1/events/s3"), 405, "method_not_allowed");
  EXPECT_FALSE(is_dirty("b"));
  EXPECT_EQ(get("/v1/status")["marks"]["rejected"], 4);
  support::RawClient client(port());
  client.send(
      "POST /v1/events/s3 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: "
      "close\r\n\r\n");
  EXPECT_NE(client.receive_all().find("\"code\":\"length_required\""), std::string::npos);
}

// A page in a browser on this machine could mark, and save, and take drives in.
TEST_F(HttpApiTest, CrossSiteRequests_AreRefused) {
  for (const std::string path : {"/v1/marks", "/v1/events/s3", "/v1/peer/cycle", "/v1/snapshot",
                                 "/v1/drives/accept", "/v1/drives/stamp", "/v1/watch", "/v1/watch/sync"}) {
    const auto answer = [&](const std::string& headers) {
      support::RawClient client(port());
      client.send("POST " + path +
                  " HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 0\r\nConnection: close\r\n" +
                  headers + "\r\n");
      return client.receive_all();
    };
    EXPECT_NE(answer("Host: localhost\r\nOrigin: http://evil.example\r\n").find(R"("code":"foreign_origin")"),
              std::string::npos)
        << path;
    const std::string rebound = answer("Host: evil.example:7420\r\n");
    EXPECT_EQ(rebound.rfind("HTTP/1.1 403 ", 0), 0U) << rebound;
    EXPECT_NE(rebound.find("application/problem+json"), std::string::npos) << rebound;
    EXPECT_NE(rebound.find(R"("code":"foreign_host")"), std::string::npos) << rebound;
    EXPECT_EQ(answer("Host: n1\r\n").find("\"foreign_"), std::string::npos) << "its own name";
  }
}

TEST_F(HttpApiTest, GetDirty_ReturnsLatestCycleAndAppliesSince) {
  request("POST", "/v1/marks", R"({"paths":["b/a"]})");
  request("POST", "/v1/peer/cycle", R"({"cluster":"default","current":5})");
  request("POST", "/v1/marks", R"({"paths":["b/c"]})");
  EXPECT_EQ(get("/v1/dirty?path=b/a")["latest_cycle"], 1);
  EXPECT_EQ(get("/v1/dirty?path=b")["latest_cycle"], 5);
  EXPECT_FALSE(get("/v1/dirty?path=b/a&since=2")["dirty"]);
  EXPECT_TRUE(get("/v1/dirty?path=b/a&since=2")["latest_cycle"].is_null());
  expect_problem(request("GET", "/v1/dirty"), 400, "invalid_request");
  expect_problem(request("GET", "/v1/dirty?path=a/../b"), 400, "invalid_path");
  expect_problem(request("GET", "/v1/dirty?path=a&since=x"), 400, "invalid_request");
}

TEST_F(HttpApiTest, GetStatus_HasEveryDocumentedMember) {
  const auto status = get("/v1/status");
  for (const char* member : {"node", "cluster", "instance", "version", "uptime_s", "cycle", "cycles", "marks",
                             "snapshot", "journal", "peers"}) {
    EXPECT_TRUE(status.contains(member)) << member;
  }
  for (const char* member :
       {"cycle", "items", "bits", "density", "fp_rate", "levels", "saturated", "tree_marks"}) {
    EXPECT_TRUE(status["cycles"][0].contains(member)) << member;
  }
  EXPECT_EQ(status["snapshot"]["drives"][0]["ok"], true);
}

TEST_F(HttpApiTest, GetStatus_CountsMarksAcceptedIgnoredAndRejected) {
  request("POST", "/v1/marks", R"({"paths":["a","b",".spoor/x"]})");
  request("POST", "/v1/marks", R"({"paths":["a"]})");
  request("POST", "/v1/marks", R"({"paths":["a","../x"]})");
  EXPECT_EQ(get("/v1/status")["marks"], json::parse(R"({"accepted":3,"ignored":1,"new":2,"rejected":1})"));
}

TEST_F(HttpApiTest, PostPeerCycle_ReturnsAFrameAndAdvances) {
  request("POST", "/v1/marks", R"({"paths":["b/a"]})");
  const auto response =
      request("POST", "/v1/peer/cycle", R"({"cluster":"default","current":9,"oldest":1,"instance":""})");
  EXPECT_EQ(response.content_type, peer::cycle_frame_content_type);
  const auto frame = peer::decode_cycle_frame(response.body);
  ASSERT_TRUE(frame) << frame.error().message;
  EXPECT_EQ(frame->sender.node, "n1");
  EXPECT_EQ(frame->answer.current.value, 9U);
  EXPECT_TRUE(frame->answer.marks.filters_may_contain(tracker::hash_path("b/a")));
  expect_problem(request("POST", "/v1/peer/cycle", R"({"cluster":"other"})"), 409, "wrong_cluster");
  expect_problem(request("POST", "/v1/peer/cycle", R"({"cluster":"default","current":-1})"), 400,
                 "invalid_request");
  expect_problem(request("POST", "/v1/peer/cycle", std::string(100'000, '[')), 400, "invalid_request");
}

TEST_F(HttpApiTest, PostPeerCycle_CycleOutOfReach_IsRefused) {
  const auto ask = [&](std::uint64_t cycle) {
    return request("POST", "/v1/peer/cycle",
                   R"({"cluster":"default","current":)" + std::to_string(cycle) + "}");
  };
  for (const std::uint64_t times : {1U, 2U}) {
    expect_problem(ask(1 + times * (std::uint64_t{1} << 32U)), 409, "cycle_out_of_reach");
    EXPECT_EQ(get("/v1/status")["cycle"]["current"], 1);
  }
  EXPECT_EQ(ask(5'000'000).status, 200U) << "a new node in an old cluster";
  EXPECT_EQ(get("/v1/status")["cycle"]["current"], 5'000'000);
}

TEST_F(HttpApiTest, PostPeerCycle_StartLevel_SinksByAtMostOnePerCycle) {
  const auto bits_after = [&](const std::string& query) {
    EXPECT_EQ(request("POST", "/v1/peer/cycle", query).status, 200U);
    request("POST", "/v1/marks", R"({"paths":["b/a"]})");
    return get("/v1/status")["cycles"][0]["bits"];
  };
  EXPECT_EQ(bits_after(R"({"cluster":"default","current":2,"start_level":2})"), 6'142'336);
  EXPECT_EQ(bits_after(R"({"cluster":"default","current":3,"start_level":0})"), 2'494'090);
  EXPECT_EQ(bits_after(R"({"cluster":"default","current":4})"), 958'506);
  expect_problem(request("POST", "/v1/peer/cycle", R"({"cluster":"default","start_level":64})"), 400,
                 "invalid_request");
}

TEST_F(HttpApiTest, PostPeerCycle_CurrentZero_DoesNotAdvance) {
  request("POST", "/v1/peer/cycle", R"({"cluster":"default","current":0})");
  EXPECT_EQ(get("/v1/status")["cycle"]["current"], 1);
}

TEST_F(HttpApiTest, PostSnapshot_WritesTheDriveBeforeResponding) {
  request("POST", "/v1/marks", R"({"paths":["b/a"]})");
  const auto response = request("POST", "/v1/snapshot");
  EXPECT_EQ(response.status, 200U);
  const auto file = directory_ / "drive/.spoor/.tracker.bin";
  EXPECT_EQ(std::filesystem::file_size(file), json::parse(response.body)["bytes"]);
}

TEST_F(HttpApiTest, GetUsageScansAndChanges_EqualTheCommandsOutput) {
  expect_problem(request("GET", "/v1/usage"), 404, "no_scan");
  expect_problem(request("GET", "/v1/scans"), 404, "no_scan");
  expect_problem(request("POST", "/v1/usage"), 405, "method_not_allowed");
  std::filesystem::create_directories(directory_ / "drive/b/a");
  std::ofstream(directory_ / "drive/b/a/file") << "12345";
  const std::string config = (directory_ / "spoor.json").native();
  const auto spoor = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {SPOOR, "--config", config});
    if (arguments[3] != "changes") arguments.insert(arguments.begin() + 3, {"--url", url_});
    const auto result = support::run_command(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  support::outlast_timestamp_step();
  spoor({"scan"});
  auto usage = get("/v1/usage?path=b&depth=1");
  EXPECT_EQ(usage.erase("node") + usage.erase("fullest_drive"), 2U) << "of the node that responds";
  EXPECT_EQ(usage, json::parse(spoor({"usage", "b", "--json"})));
  EXPECT_EQ(usage["path"], "b");
  EXPECT_EQ(usage["bytes"], 5);
  EXPECT_EQ(usage["children"][0]["path"], "b/a");
  EXPECT_EQ(usage["complete"], true);
  const auto scans = get("/v1/scans?limit=1");
  EXPECT_EQ(scans, json::parse(spoor({"scans", "--json"})));
  EXPECT_EQ(scans["scans"][0]["mode"], "full");
  EXPECT_EQ(scans["scans"][0]["bytes"], 5);
  std::ofstream(directory_ / "drive/b/a/more") << "123";
  spoor({"mark", "b/a"});
  spoor({"scan"});
  const auto changes = get("/v1/changes?since=1&limit=5");
  EXPECT_EQ(changes["changes"], json::array({json::parse(spoor({"changes", "--since", "1", "--json"}))}));
  EXPECT_EQ(json::parse(spoor({"changes", "--latest", "--json"})),
            (json{{"feed", changes["feed"]}, {"scan", changes["until"]}}));
  expect_problem(request("GET", "/v1/changes?since=0"), 410, "reset");
}

TEST_F(HttpApiTest, HealthRoutes_Return200) {
  for (const char* path : {"/livez", "/healthz", "/readyz"})
    EXPECT_EQ(request("GET", path).status, 200U) << path;
}

}  // namespace
}  // namespace spoor::daemon
