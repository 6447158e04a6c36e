#include "peer/http/watch_report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/answering_transport.h"
#include "tests/support/random.h"

namespace spoor::peer {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

WatchedDrive full_report() {
  return {.drive = "/mnt/disk 1",
          .is_watched = true,
          .error = "the daemon is busy",
          .gap = {"id", "the queue was full", base::WallTime(std::chrono::seconds(1'700'000'000))},
          .cookie = new_cookie(),
          .figures = {.events = 1,
                      .marks = 2,
                      .coalesced = 3,
                      .gaps = 4,
                      .queue_bytes_max = 5,
                      .pending_marks = 6,
                      .lag_seconds = 0.5}};
}

std::vector<DriveSync> synchronise_with(base::Result<HttpResponse> response) {
  fakes::AnsweringTransport transport([&](const HttpRequest&) { return response; });
  return synchronise(
      transport, {},
      {.cluster = "c", .node = "n", .drives = {"/a", "/b"}, .timeout = std::chrono::seconds(1)});
}

HttpResponse ok(const json& body) { return {.status = 200, .content_type = {}, .body = body.dump()}; }

TEST(WatchReportTest, Report_ComesBackAsItWas) {
  for (const WatchedDrive& report : {full_report(), WatchedDrive{.drive = "/d"}}) {
    const auto read = parse_watched_drive(watched_drive_json(report).dump());
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, report);
  }
}

TEST(WatchReportTest, ReportWithoutAMember_IsRefused) {
  const json whole = json::parse(watched_drive_json(full_report()).dump());
  for (const auto& [name, value] : whole.items()) {
    json without = whole;
    without.erase(name);
    EXPECT_FALSE(parse_watched_drive(without.dump())) << name;
    without[name] = json::array();
    EXPECT_FALSE(parse_watched_drive(without.dump())) << name;
  }
}

TEST(WatchReportTest, DamagedReport_IsAnErrorOrAnother) {
  SPOOR_RANDOM(random);
  const std::string text = watched_drive_json(full_report()).dump();
  for (int count = 0; count < 2000; ++count) {
    std::string damaged = text;
    damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    static_cast<void>(parse_watched_drive(damaged));
    static_cast<void>(parse_sync_request(damaged));
    static_cast<void>(parse_watched_drive(damaged.substr(0, random.below(damaged.size()))));
  }
}

TEST(WatchReportTest, Cookies_AreOfTheirFormAndDiffer) {
  EXPECT_TRUE(is_cookie(new_cookie()));
  EXPECT_NE(new_cookie(), new_cookie());
  for (const std::string name :
       {"cookie-", "cookie-0123", "drive.json", "cookie-0123456789ABCDEF0123456789ABCDEF",
        "cookie-0123456789abcdef0123456789abcdef0", "xookie-0123456789abcdef0123456789abcdef"})
    EXPECT_FALSE(is_cookie(name)) << name;
}

TEST(WatchReportTest, SyncRequest_IsBounded) {
  EXPECT_TRUE(parse_sync_request(R"({"cluster":"c","node":"n","drives":["/a"],"timeout_ms":10})"));
  EXPECT_EQ(parse_sync_request(R"({"cluster":"c","node":"n","drives":[],"timeout_ms":18446744073709551615})")
                ->timeout,
            std::chrono::hours(1));
  json many{
      {"cluster", "c"}, {"node", "n"}, {"drives", std::vector<std::string>(1025, "/a")}, {"timeout_ms", 1}};
  EXPECT_FALSE(parse_sync_request(many.dump()));
  const std::string begin = R"({"cluster":"c","node":"n","drives":)";
  for (const std::string& bad :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"),
        std::string(R"({"drives":[],"timeout_ms":1})"), begin + R"("/a","timeout_ms":1})",
        begin + R"([1],"timeout_ms":1})", begin + R"([],"timeout_ms":-1})", begin + R"([],"timeout_ms":1.5})",
        begin + R"(["/a","/a"],"timeout_ms":1})"})
    EXPECT_FALSE(parse_sync_request(bad)) << bad;
}

TEST(WatchReportTest, Synchronise_OneResultForEachDrive) {
  const DriveGap gap{"id", "why", base::WallTime(std::chrono::seconds(5))};
  const auto results =
      synchronise_with(ok(json::parse(sync_json({{"/b", "hangs", {}}, {"/a", "", gap}}).dump())));
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].drive, "/a");
  EXPECT_EQ(results[0].error, "");
  EXPECT_EQ(results[0].gap, gap);
  EXPECT_EQ(results[1].error, "hangs");
}

// Nothing but a whole confirmation is one: an empty answer must not look like it.
TEST(WatchReportTest, Synchronise_AnythingElse_ConfirmsNothing) {
  const json unnamed{{"drives", {{{"path", "/a"}, {"error", nullptr}, {"gap", nullptr}}}}};
  for (const json& body : {json::object(), json::array(), json(nullptr), json{{"drives", json::array()}},
                           json{{"drives", {{{"path", "/a"}}}}}, unnamed}) {
    for (const DriveSync& result : synchronise_with(ok(body))) EXPECT_NE(result.error, "") << body;
  }
  for (const DriveSync& result :
       synchronise_with(HttpResponse{.status = 404, .content_type = {}, .body = {}}))
    EXPECT_THAT(result.error, HasSubstr("404"));
  for (const DriveSync& result :
       synchronise_with(base::Error(std::make_error_code(std::errc::connection_refused), "spoord is down")))
    EXPECT_THAT(result.error, HasSubstr("spoord is down"));
}

}  // namespace
}  // namespace spoor::peer
