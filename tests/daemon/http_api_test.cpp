// The contract of docs/http-api.md, against a running spoord.
#include "peer/gather/cycle_frame.h"
#include "tests/daemon/spoord_fixture.h"
#include "tests/support/file_times.h"

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

TEST_F(HttpApiTest, PostMarks_AcknowledgesWithTheCycleAndIsCounted) {
  const auto response = request("POST", "/v1/marks", R"({"paths":["b/a","b/c",".spoor/x"]})");
  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(json::parse(response.body), json::parse(R"({"marked":2,"ignored":1,"cycle":1})"));
  for (const char* path : {"b", "b/a", "b/c"}) EXPECT_TRUE(is_dirty(path)) << path;
  EXPECT_FALSE(is_dirty("b/d"));
  request("POST", "/v1/marks", R"({"paths":["b/a"]})");
  for (int i = 0; i < 4; ++i)
    expect_problem(request("POST", "/v1/marks", R"({"paths":["b/d","../x"]})"), 400, "invalid_path");
  EXPECT_FALSE(is_dirty("b/d"));
  EXPECT_EQ(get("/v1/status")["marks"], json::parse(R"({"accepted":3,"ignored":1,"new":2,"rejected":4})"));
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
  EXPECT_EQ(json::parse(response.body), json::parse(R"({"marked":2,"ignored":2,"cycle":1})"));
  for (const char* path : {"b", "b/a", "b/a/new%20one", "b/a/new%20one__XLDIR__", "b/c%2Bd", "b/c%20d"}) {
    EXPECT_TRUE(is_dirty(path)) << path;
  }
  EXPECT_FALSE(is_dirty("b/read"));
  EXPECT_NE(daemon_->wait_for("S3 events named 's3:Nobody:Knows'"), "");
}

TEST_F(HttpApiTest, GetDirty_ReturnsLatestCycleAndAppliesSince) {
  request("POST", "/v1/marks", R"({"paths":["b/a"]})");
  request("POST", "/v1/peer/cycle", R"({"cluster":"default","current":5})");
  request("POST", "/v1/marks", R"({"paths":["b/c"]})");
  EXPECT_EQ(get("/v1/dirty?path=b/a")["latest_cycle"], 1);
  EXPECT_EQ(get("/v1/dirty?path=b")["latest_cycle"], 5);
  EXPECT_FALSE(get("/v1/dirty?path=b/a&since=2")["dirty"]);
  EXPECT_TRUE(get("/v1/dirty?path=b/a&since=2")["latest_cycle"].is_null());
}

TEST_F(HttpApiTest, PostPeerCycle_ReturnsAFrameAndAdvances) {
  request("POST", "/v1/marks", R"({"paths":["b/a"]})");
  request("POST", "/v1/peer/cycle", R"({"cluster":"default","current":0})");
  EXPECT_EQ(get("/v1/status")["cycle"]["current"], 1) << "0 advances nothing";
  const auto response =
      request("POST", "/v1/peer/cycle",
              R"({"cluster":"default","current":9,"oldest":1,"instance":"","start_level":2})");
  EXPECT_EQ(response.content_type, peer::cycle_frame_content_type);
  const auto frame = peer::decode_cycle_frame(response.body);
  ASSERT_TRUE(frame) << frame.error().message;
  EXPECT_EQ(frame->sender.node, "n1");
  EXPECT_EQ(frame->answer.current.value, 9U);
  EXPECT_TRUE(frame->answer.marks.filters_may_contain(tracker::hash_path("b/a")));
  request("POST", "/v1/marks", R"({"paths":["b/a"]})");
  EXPECT_EQ(get("/v1/status")["cycles"][0]["bits"], 6'142'336) << "of the level that was asked for";
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

TEST_F(HttpApiTest, PostSnapshot_WritesTheDriveBeforeResponding) {
  request("POST", "/v1/marks", R"({"paths":["b/a"]})");
  const auto response = request("POST", "/v1/snapshot");
  EXPECT_EQ(response.status, 200U);
  const auto file = directory_ / "drive/.spoor/.tracker.bin";
  EXPECT_EQ(std::filesystem::file_size(file), json::parse(response.body)["bytes"]);
}

TEST_F(HttpApiTest, GetUsageScansAndChanges_EqualTheCommandsOutput) {
  std::filesystem::create_directories(directory_ / "drive/b/a");
  std::ofstream(directory_ / "drive/b/a/file") << "12345";
  const auto printed = [&](const std::vector<std::string>& arguments) {
    const auto result = spoor(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  support::outlast_timestamp_step();
  printed({"scan"});
  auto usage = get("/v1/usage?path=b&depth=1");
  EXPECT_EQ(usage.erase("node") + usage.erase("fullest_drive"), 2U) << "of the node that responds";
  EXPECT_EQ(usage, json::parse(printed({"usage", "b", "--json"})));
  EXPECT_EQ(usage["bytes"], 5);
  const auto scans = get("/v1/scans?limit=1");
  EXPECT_EQ(scans, json::parse(printed({"scans", "--json"})));
  EXPECT_EQ(scans["scans"][0]["mode"], "full");
  EXPECT_EQ(scans["scans"][0]["bytes"], 5);
  std::ofstream(directory_ / "drive/b/a/more") << "123";
  printed({"mark", "b/a"});
  printed({"scan"});
  const auto changes = get("/v1/changes?since=1&limit=5");
  EXPECT_EQ(changes["changes"], json::array({json::parse(printed({"changes", "--since", "1", "--json"}))}));
  EXPECT_EQ(json::parse(printed({"changes", "--latest", "--json"})),
            (json{{"feed", changes["feed"]}, {"scan", changes["until"]}}));
}

}  // namespace
}  // namespace spoor::daemon
