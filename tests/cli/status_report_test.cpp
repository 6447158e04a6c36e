#include "cli/status_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/json_mutations.h"
#include "tests/support/process.h"
#include "tests/support/temp_directory.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

// Of a daemon that has a peer, marks and a snapshot.
ordered_json status_of_daemon() {
  const support::TempDirectory directory;
  const auto write_config = [&](const std::string& name, const ordered_json& peers) {
    const std::string base = directory / name;
    std::filesystem::create_directories(base + "/drive");
    std::ofstream(base + ".json") << ordered_json{{"node", {{"name", name}, {"data_dir", base + "/data"}}},
                                                  {"drives", {base + "/drive"}},
                                                  {"listen", {{{"unix", base + ".sock"}}}},
                                                  {"peers", {{"static", peers}}}};
    return base + ".json";
  };
  const std::string config = write_config("node1", {"unix:" + std::string(directory / "node2.sock")});
  support::Daemon other({SPOORD, "--config", write_config("node2", ordered_json::array())});
  EXPECT_FALSE(other.wait_for("listening on unix:").empty()) << other.log();
  support::Daemon daemon({SPOORD, "--config", config});
  EXPECT_FALSE(daemon.wait_for("listening on unix:").empty()) << daemon.log();
  EXPECT_EQ(support::run_command({SPOOR, "--config", config, "mark", "a/b"}).code, 0);
  return ordered_json::parse(support::run_command({SPOOR, "--config", config, "status", "--json"}).out);
}

// With the sections that need etcd, a DNS, spoor-watch and further writers.
ordered_json whole_status() {
  ordered_json status = status_of_daemon();
  status["membership"] = ordered_json::parse(R"({
    "etcd": {"ok": false, "error": "no answer", "registered": false, "members": 2},
    "dns": [{"source": "x.example:7420", "ok": true, "error": null, "members": 1}]})");
  status["watch"] = ordered_json::parse(R"({"reported_at": "2026-01-01T00:00:00Z", "drives": [
    {"path": "/d", "ok": true, "error": null, "last_gap": {"at": "2026-01-01T00:00:00Z", "reason": "r"},
     "events": 3, "marks": 2, "gaps": 1},
    {"path": "/e", "ok": false, "error": "overlayfs", "failing_since": "2026-01-02T00:00:00Z", "last_gap": null,
     "events": 0, "marks": 0, "gaps": 0}]})");
  status["writers"] = ordered_json::parse(R"([
    {"identity": "one", "accepted": 1, "last_at": "2026-01-01T00:00:00Z"},
    {"identity": "two", "accepted": 2, "last_at": "2026-01-01T00:00:00Z"}])");
  status["limits"] = ordered_json::parse(R"([
    {"path": "a", "scope": "cluster", "bytes": 3, "files": 1, "growth_per_day": 1024, "exceeded": ["bytes"],
     "current": {"bytes": 5, "files": 1, "complete": true, "growth_per_day": 2048}, "scan": 1, "notified": []}])");
  status["snapshot"] =
      ordered_json::parse(R"({"saved_at": "2026-01-01T00:00:00Z", "bytes": 5, "generation": 6,
    "drives": [{"path": "/d", "ok": false, "error": "no space", "id": null}], "failures": 0})");
  return status;
}

TEST(StatusTextTest, AnyMemberMissingOrOfAnotherType_ShowsTheOthers) {
  const ordered_json status = whole_status();
  std::size_t mutations = 0;
  support::for_each_mutation<ordered_json>(status, [&](const ordered_json& mutated, const std::string& what) {
    ++mutations;
    SCOPED_TRACE(what);
    std::string text;
    ASSERT_NO_THROW(text = status_text(mutated));
    // One of them may be the one that is missing.
    EXPECT_THAT(text, testing::AnyOf(HasSubstr("node1"),
                                     HasSubstr("instance   " + status["instance"].get<std::string>())));
  });
  EXPECT_GT(mutations, 500U);
}

TEST(StatusTextTest, WhatTheDaemonDoesNotSend_IsAQuestionMark) {
  EXPECT_EQ(status_text(ordered_json::object()),
            "node       ? of cluster ?, version ?, up ?\n"
            "instance   ?\n"
            "cycle      ?, open for ?\n"
            "marks      ? accepted, ? of them new, ? ignored; ? requests rejected\n"
            "snapshot   none yet\n"
            "durability ?, journal ?\n"
            "\n"
            "cycle  items  density  false positives  levels  tree marks\n");
}

TEST(StatusTextTest, WholeStatus_ShowsEachSection) {
  ordered_json status = whole_status();
  status["journal"] = {{"bytes", 1}, {"durability", "disk"}, {"ok", false}, {"error", "no space"}};
  const std::string text = status_text(status);
  for (const char* const part :
       {"node       node1 of cluster default, version ",
        "marks      1 accepted, 1 of them new, 0 ignored; 0 requests",
        "snapshot   saved 2026-01-01T00:00:00Z, 5 B, generation 6\n           /d: no space\n",
        "marks are NOT acknowledged: no space\n",
        "etcd       NOT registered, 2 members known\n           failing: no answer\n",
        "dns        x.example:7420: 1 member known\n", "not watched since 2026-01-02T00:00:00Z: overlayfs",
        "marks from", "node2.sock",
        "limit      a exceeds its limit in the cluster: 5 B (limit 3 B), grew 2.0 KiB in 24 h (limit 1.0 "
        "KiB)\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  status["limits"][0]["current"] = {
      {"bytes", 3}, {"files", 1}, {"complete", true}, {"growth_per_day", nullptr}};
  EXPECT_THAT(status_text(status), HasSubstr("limits     1, none is exceeded\n"));
}

}  // namespace
}  // namespace spoor::cli
