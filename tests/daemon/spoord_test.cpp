// The life of a spoord: how it starts, stops, what it remembers, and what it responds to scans.
#include <fmt/format.h>

#include <thread>

#include "peer/gather/cycle_frame.h"
#include "tests/daemon/spoord_fixture.h"
#include "tests/support/file_times.h"
#include "tests/support/sanitizer.h"
#include "tests/support/umask.h"

namespace spoor::daemon {
namespace {

// Started by hand, where no unit sets a umask.
TEST_F(SpoordTest, DataDirAndDrives_AnyUmask_AreClosedToOtherUsers) {
  const support::Umask umask(0);
  start();
  request("POST", "/v1/marks", R"({"paths":["b/a"]})");
  EXPECT_EQ(request("POST", "/v1/snapshot").status, 200U);
  const auto scanned = spoor({"scan"});
  EXPECT_EQ(scanned.code, 0) << scanned.err;
  const auto changes = spoor({"changes", "--consumer", "c", "--commit"});
  EXPECT_EQ(changes.code, 4) << changes.err;
  std::size_t seen = 0;
  for (const auto& top : {directory_ / "data", directory_ / "drive" / ".spoor"}) {
    EXPECT_EQ(std::filesystem::status(top).permissions(), std::filesystem::perms(0750)) << top;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
      const auto mode = std::filesystem::perms(entry.is_directory() ? 0750 : 0640);
      EXPECT_EQ(entry.status().permissions(), mode) << entry.path();
      ++seen;
    }
  }
  EXPECT_GT(seen, 8U);
}

// Side by side on several threads; what is counted is counted once.
TEST_F(SpoordTest, ConcurrentMarks_AreAllKeptAndCounted) {
  config_["limits"]["threads"] = 4;
  start();
  constexpr int writers = 8;
  constexpr int requests = 50;
  {
    std::vector<std::jthread> threads;
    for (int writer = 0; writer < writers; ++writer) {
      threads.emplace_back([this, writer] {
        for (int i = 0; i < requests; ++i) {
          const std::string body = fmt::format(R"({{"paths":["w{}/{}","w{}/.."]}})", writer, i, writer);
          const std::string good = fmt::format(R"({{"paths":["w{}/{}",".spoor/x"]}})", writer, i);
          EXPECT_EQ(request("POST", "/v1/marks", body).status, 400U);
          EXPECT_EQ(request("POST", "/v1/marks", good).status, 200U);
          EXPECT_EQ(request("GET", "/v1/dirty?path=w").status, 200U);
        }
      });
    }
  }
  for (int writer = 0; writer < writers; ++writer) {
    for (int i = 0; i < requests; ++i) {
      EXPECT_TRUE(get(fmt::format("/v1/dirty?path=w{}/{}", writer, i))["dirty"]) << writer << ' ' << i;
    }
  }
  constexpr int all = writers * requests;
  const auto marks = [](int accepted, int ignored, int added, int rejected) {
    return nlohmann::json{
        {"accepted", accepted}, {"ignored", ignored}, {"new", added}, {"rejected", rejected}};
  };
  EXPECT_EQ(get("/v1/status")["marks"], marks(all, all, all, all));
  const std::string metrics = request("GET", "/metrics").body;
  for (const char* status : {"200", "400"}) {
    EXPECT_NE(metrics.find(fmt::format(R"(spoor_http_requests_total{{route="/v1/marks",status="{}"}} {})",
                                       status, all)),
              std::string::npos)
        << metrics;
  }
  request("POST", "/v1/marks", R"({"paths":["w0/0","w0/1","w0/2",".spoor/x",".spoor/y"]})");
  request("POST", "/v1/marks", R"({"paths":["..","w0/0"]})");
  EXPECT_EQ(get("/v1/status")["marks"], marks(all + 3, all + 2, all, all + 1));
}

// A sanitizer's memory is its own.
#if !SPOOR_IS_SANITIZED
TEST_F(SpoordTest, SixteenFullCycles_UseLittleMemory) {
  config_["limits"]["threads"] = 1;             // how much malloc keeps differs from thread to thread
  config_["tracker"]["durability"] = "memory";  // what the journal does is the same for few marks and many
  start();
  constexpr int cycles = 17;
  for (int cycle = 1; cycle <= cycles; ++cycle) {
    request("POST", "/v1/peer/cycle",
            fmt::format(R"({{"cluster":"default","marks":false,"current":{}}})", cycle));
    for (int body = 0; body < 199; ++body) {
      std::string paths;
      for (int i = 0; i < 1000; ++i) paths += fmt::format("{}-{}-{}\n", cycle, body, i);
      ASSERT_EQ(request("POST", "/v1/marks", paths, "text/plain").status, 200U);
    }
  }
  // As a first scan asks, and a save.
  EXPECT_EQ(request("POST", "/v1/peer/cycle", R"({"cluster":"default"})").status, 200U);
  EXPECT_EQ(request("POST", "/v1/snapshot").status, 200U);
  const auto status = get("/v1/status");
  ASSERT_EQ(status["cycles"].size(), cycles);
  // 3.4 million paths that are all different: later cycles open at larger levels.
  EXPECT_LE(status["filters"]["bytes"], 20'000'000);
  // 28 to 34 MiB, by the arenas that threads of the allocator take.
  EXPECT_LT(daemon_->resident_bytes(), std::uint64_t{48} << 20U);
}
#endif

// ancestor 6: a crash lost marks, and the answers still said complete.
TEST_F(SpoordTest, Kill_WithoutJournal_IsANewInstanceWithAGap) {
  config_["tracker"]["durability"] = "memory";
  start();
  const auto instance = get("/v1/status")["instance"];
  request("POST", "/v1/marks", R"({"paths":["b/lost"]})");
  daemon_->signal(SIGKILL);
  EXPECT_EQ(daemon_->wait(), 128 + SIGKILL);
  start();
  EXPECT_NE(get("/v1/status")["instance"], instance);
  EXPECT_TRUE(get("/v1/dirty?path=b/lost")["dirty"]);
}

// ancestor 2: a damaged file was taken for nothing there, unlogged.
TEST_F(SpoordTest, SnapshotDamaged_IsSetAsideAndIsAGap) {
  start();
  EXPECT_EQ(stop(), 0);
  std::ofstream(directory_ / "drive/.spoor/.tracker.bin") << "\x08 begins like one, and is none";
  start();
  EXPECT_NE(daemon_->log().find(".tracker.bin.corrupt"), std::string::npos) << daemon_->log();
  EXPECT_TRUE(std::filesystem::exists(directory_ / "drive/.spoor/.tracker.bin.corrupt"));
  EXPECT_TRUE(get("/v1/dirty?path=anything")["dirty"]);
}

// What one node ignored, others may count: after a change of the rules it must be walked.
TEST_F(SpoordTest, NamespaceExcludeChanged_IsAGap) {
  config_["namespace"] = {{"exclude", {"*.tmp"}}};
  start();
  const auto instance = get("/v1/status")["instance"];
  request("POST", "/v1/marks", R"({"paths":["b/ignored.tmp"]})");
  EXPECT_EQ(stop(), 0);
  config_["namespace"] = {{"exclude", nlohmann::json::array()}};
  start();
  EXPECT_NE(get("/v1/status")["instance"], instance);
  EXPECT_TRUE(get("/v1/dirty?path=b/ignored.tmp")["dirty"]);
}

TEST_F(SpoordTest, NoDrive_ServesButIsNotReady) {
  config_["drives"] = {directory_ / "absent"};
  start();
  const auto ready = request("GET", "/readyz");
  EXPECT_EQ(ready.status, 503U);
  EXPECT_EQ(nlohmann::json::parse(ready.body)["reasons"].size(), 1U);
  EXPECT_EQ(request("GET", "/livez").status, 200U);
  EXPECT_EQ(request("POST", "/v1/snapshot").status, 503U);
  EXPECT_TRUE(get("/v1/status")["snapshot"]["saved_at"].is_null()) << "nothing was ever saved";
  EXPECT_FALSE(std::filesystem::exists(directory_ / "absent"));
  EXPECT_EQ(stop(), 1) << "the marks could not be saved";
}

TEST_F(SpoordTest, SnapshotFailed_StatusKeepsTheLastGoodOne) {
  start();
  const auto before = get("/v1/status")["snapshot"];
  EXPECT_EQ(std::filesystem::file_size(directory_ / "drive/.spoor/.tracker.bin"), before["bytes"]);
  std::filesystem::rename(directory_ / "drive", directory_ / "unplugged");
  EXPECT_EQ(request("POST", "/v1/snapshot").status, 503U);
  const auto after = get("/v1/status")["snapshot"];
  EXPECT_EQ(after["generation"], before["generation"]);
  EXPECT_EQ(after["saved_at"], before["saved_at"]);
  EXPECT_EQ(after["drives"][0]["ok"], false);
  const std::string metrics = request("GET", "/metrics").body;
  EXPECT_NE(metrics.find("\nspoor_ready 0\n"), std::string::npos) << metrics;
  EXPECT_EQ(metrics.find("\nspoor_snapshot_failures_total 0\n"), std::string::npos) << metrics;
  std::filesystem::rename(directory_ / "unplugged", directory_ / "drive");
  // By itself, though nothing was marked and the next save is minutes away.
  while (request("GET", "/readyz").status != 200) std::this_thread::yield();
  EXPECT_EQ(get("/v1/status")["snapshot"]["drives"][0]["ok"], true);
}

TEST_F(SpoordTest, Drives_AreCheckedWhenTheyAreListed) {
  config_["drives"].push_back(directory_ / "second");
  std::filesystem::create_directory(directory_ / "second");
  start();
  const auto second = [this] { return get("/v1/drives")["drives"][1]; };
  EXPECT_EQ(second()["ok"], true);
  std::filesystem::rename(directory_ / "second", directory_ / "unplugged");
  EXPECT_EQ(second()["ok"], false) << "no save has found it out yet";
  EXPECT_EQ(get("/v1/status")["snapshot"]["drives"][1]["ok"], true);
  EXPECT_EQ(request("POST", "/v1/snapshot").status, 200U);
  std::filesystem::rename(directory_ / "unplugged", directory_ / "second");
  EXPECT_EQ(second()["ok"], true);
  while (get("/v1/status")["snapshot"]["drives"][1]["ok"] != true) std::this_thread::yield();
  const auto generation = get("/v1/status")["snapshot"]["generation"];
  EXPECT_EQ(second()["ok"], true);
  EXPECT_EQ(get("/v1/status")["snapshot"]["generation"], generation) << "to look saves nothing";
}

TEST_F(SpoordTest, CycleAdvance_SavesASnapshotAtOnce) {
  config_["log"]["level"] = "debug";
  start();
  request("POST", "/v1/peer/cycle", R"({"cluster":"default","current":9})");
  EXPECT_FALSE(daemon_->wait_for("saved snapshot 2 ").empty());
}

TEST_F(SpoordTest, PortInUse_StartFailsAndWritesNoInstance) {
  start();
  const auto instance = get("/v1/status")["instance"];
  const auto taken = port();
  auto second = config_;
  second["node"]["data_dir"] = directory_ / "data2";
  second["listen"][0]["port"] = taken;
  std::ofstream(directory_ / "second.json") << second;
  const auto result = support::run_command({SPOORD, "--config", (directory_ / "second.json").native()});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("cannot listen on " + support::own_loopback()), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "data2/instance.json"));
}

TEST_F(SpoordTest, SecondDaemonOnTheSameDataDir_IsRefused) {
  start();
  const auto result = run_spoord();
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("another spoord"), std::string::npos) << result.err;
}

TEST_F(SpoordTest, CheckOrInvalidConfiguration_ExitsAtOnce) {
  std::ofstream(config_file()) << config_;
  EXPECT_EQ(run_spoord({"--check"}).code, 0);
  EXPECT_EQ(run_spoord({"--set", "tracker.item=1", "--check"}).code, 2);
  const auto missing_drive = run_spoord({"--set", R"(drives=["/no/such/drive"])", "--check"});
  EXPECT_EQ(missing_drive.code, 0) << missing_drive.err;
  EXPECT_NE(missing_drive.err.find("there is no directory /no/such/drive"), std::string::npos)
      << missing_drive.err;
  EXPECT_EQ(support::run_command({SPOORD, "--config", (directory_ / "none.json").native()}).code, 2);
  EXPECT_EQ(support::run_command({SPOORD, "--version"}).code, 0);
}

TEST_F(SpoordTest, JsonLog_StartFailure_IsAJsonLineToo) {
  config_["auth"]["unix"] = {{{"user", "no-such-user"}, {"role", "read"}}};
  write_config();
  const auto failed = run_spoord({"--set", "log.format=json"});
  EXPECT_EQ(failed.code, 1);
  std::istringstream lines(failed.err);
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  EXPECT_NE(failed.err.find("auth.unix[0]: this machine knows no user 'no-such-user'"), std::string::npos)
      << failed.err;
}

TEST_F(SpoordTest, PostPeerCycle_ReturnsAFrameAndAdvances) {
  start();
  request("POST", "/v1/marks", R"({"paths":["b/a"]})");
  request("POST", "/v1/peer/cycle", R"({"cluster":"default","current":0})");
  EXPECT_EQ(request("POST", "/v1/peer/cycle", R"({"cluster":"default","current":4294967297})").status, 409U);
  EXPECT_EQ(get("/v1/status")["cycle"]["current"], 1) << "0 advances nothing, nor does one out of reach";
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

TEST_F(SpoordTest, GetUsageScansAndChanges_EqualTheCommandsOutput) {
  start();
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
  EXPECT_EQ(usage, nlohmann::json::parse(printed({"usage", "b", "--json"})));
  EXPECT_EQ(usage["bytes"], 5);
  const auto scans = get("/v1/scans?limit=1");
  EXPECT_EQ(scans, nlohmann::json::parse(printed({"scans", "--json"})));
  EXPECT_EQ(scans["scans"][0]["mode"], "full");
  EXPECT_EQ(scans["scans"][0]["bytes"], 5);
  std::ofstream(directory_ / "drive/b/a/more") << "123";
  printed({"mark", "b/a"});
  printed({"scan"});
  const auto changes = get("/v1/changes?since=1&limit=5");
  EXPECT_EQ(changes["changes"],
            nlohmann::json::array({nlohmann::json::parse(printed({"changes", "--since", "1", "--json"}))}));
  EXPECT_EQ(nlohmann::json::parse(printed({"changes", "--latest", "--json"})),
            (nlohmann::json{{"feed", changes["feed"]}, {"scan", changes["until"]}}));
}

}  // namespace
}  // namespace spoor::daemon
