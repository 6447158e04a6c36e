// The `spoor` program itself, as far as it needs no daemon.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scanner/store/change_log.h"
#include "scanner/store/usage_database.h"
#include "tests/golden/golden.h"
#include "tests/support/file_times.h"
#include "tests/support/process.h"
#include "tests/support/temp_directory.h"
#include "tracker/filter/level_schedule.h"
#include "tracker/storage/snapshot.h"

namespace spoor::cli {
namespace {

using nlohmann::json;
using support::run_command;

const std::string minio_file = std::string(SPOOR_GOLDEN_UNPACKED) + "/tracker.v7.bin";

json inspect(const std::vector<std::string>& more) {
  std::vector<std::string> command{SPOOR, "inspect", "--json", minio_file};
  command.insert(command.end(), more.begin(), more.end());
  const auto result = run_command(command);
  EXPECT_EQ(result.code, 0) << result.err;
  return json::parse(result.out);
}

TEST(CliTest, WrongUsage_IsExplainedAndExitsWithTwo) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"usgae"}, "there is no command 'usgae': did you mean 'usage'?"},
      {{}, "no command given"},
      {{"--unknown"}, "--unknown"},
      {{"mark", "--kind", "x", "a"}, "--kind"},
      {{"--config", "/nonexistent/spoor.json", "scan"}, "/nonexistent/spoor.json"},
      {{"--url", "ftp://x", "mark", "a"}, "ftp://x"}};
  for (const auto& [arguments, why] : cases) {
    std::vector<std::string> command{SPOOR};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const auto result = run_command(command);
    EXPECT_EQ(result.code, 2);
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
  }
  const auto missing = run_command({SPOOR});
  EXPECT_NE(missing.out.find("\n  usage "), std::string::npos) << missing.out;
}

TEST(NoDaemonTest, Status_SaysWhatToDo) {
  const support::TempDirectory directory;
  const auto result = run_command(
      {SPOOR, "--url", "unix:" + (directory / "none.sock").native(), "--set", "node.name=n", "status"});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("does spoord run? systemctl status spoord"), std::string::npos) << result.err;
}

TEST(InspectTest, MinioFile_ShowsSixteenCycles) {
  const auto inspected = inspect({});
  EXPECT_EQ(inspected["format"], "minio");
  EXPECT_EQ(inspected["version"], 7);
  EXPECT_EQ(inspected["saved_at"], "2023-02-23T16:29:14Z");
  ASSERT_EQ(inspected["cycles"].size(), 16U);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(inspected["cycles"][i]["cycle"], 5 + i);
    EXPECT_EQ(inspected["cycles"][i]["m"], 958506);
    EXPECT_EQ(inspected["cycles"][i]["k"], 4);
  }
}

TEST(InspectTest, ContainsFrom_GoldenProbes_MatchExactly) {
  std::ifstream file(std::string(SPOOR_GOLDEN_UNPACKED) + "/tracker.v7.json");
  const auto golden = json::parse(file);
  json expected = json::array();
  const support::TempDirectory directory;
  std::ofstream paths(directory / "paths");
  for (const auto& probe : golden["probes"]) {
    const auto path = probe["path"].get<std::string>();
    if (path.find('\n') != std::string::npos) continue;  // no line of a file
    paths << path << '\n';
    json& entry = expected.emplace_back(json{{"path", path}, {"cycles", json::array()}});
    for (std::size_t cycle = 0; cycle < 16; ++cycle) {
      if (probe["mask"].get<std::string>()[cycle] == '1') entry["cycles"].push_back(5 + cycle);
    }
  }
  paths.close();
  EXPECT_EQ(inspect({"--contains-from", (directory / "paths").native()})["contains"], expected);
}

// A cycle of three levels, the third of a shape of its own, and one without marks.
tracker::Snapshot snapshot_of_levels() {
  const tracker::LevelSchedule levels(100, 1e-6);
  tracker::MarkSet marks;
  marks.add(tracker::hash_path("first"), levels.shape(0));
  marks.add(tracker::hash_path("second"), levels.shape(1));
  marks.add(tracker::hash_path("foreign"), {9'973, 11});
  tracker::Snapshot snapshot;
  snapshot.owner = {"cluster", "node"};
  snapshot.generation = 1;
  snapshot.state.instance = tracker::InstanceId::random();
  snapshot.state.current = {2};
  snapshot.state.history = {{{1}, std::make_shared<const tracker::MarkSet>(marks)}};
  return snapshot;
}

TEST(InspectTest, CycleOfSeveralLevels_ShowsAndQueriesEachLevel) {
  const support::TempDirectory directory;
  const std::string file = (directory / "snapshot").native();
  std::ofstream(file, std::ios::binary) << tracker::encode_snapshot(snapshot_of_levels());
  std::vector<std::string> command{SPOOR, "inspect", file};
  for (const char* path : {"first", "second", "foreign", "none"})
    command.insert(command.end(), {"--contains", path});
  const auto text = run_command(command);
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* found :
       {"first: may be in 1\n", "second: may be in 1\n", "foreign: may be in 1\n", "none: in no"})
    EXPECT_NE(text.out.find(found), std::string::npos) << text.out;

  command.emplace_back("--json");
  const auto inspected = json::parse(run_command(command).out);
  const tracker::LevelSchedule levels(100, 1e-6);
  const auto& cycle = inspected["cycles"][0];
  EXPECT_EQ(cycle["m"], levels.shape(0).bits);
  EXPECT_EQ(cycle["k"], levels.shape(0).hashes);
  EXPECT_EQ(cycle["items"], 3);
  ASSERT_EQ(cycle["levels"].size(), 3U);
  EXPECT_EQ(cycle["levels"][1]["m"], levels.shape(1).bits);
  EXPECT_EQ(cycle["levels"][2]["k"], 11);
  for (const auto& level : cycle["levels"]) {
    EXPECT_EQ(level["items"], 1);
    EXPECT_GT(level["density"], 0);
  }
  EXPECT_EQ(inspected["cycles"][1]["levels"], json::array());
  EXPECT_EQ(inspected["contains"][1]["cycles"], json({1}));
  EXPECT_EQ(inspected["contains"][3]["cycles"], json::array());
}

TEST(InspectTest, FileThatIsNoSnapshot_IsAnError) {
  const support::TempDirectory directory;
  std::ofstream(directory / "file") << "hello";
  const auto result = run_command({SPOOR, "inspect", (directory / "file").native()});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("format version"), std::string::npos) << result.err;
  EXPECT_EQ(run_command({SPOOR, "inspect", (directory / "absent").native()}).code, 1);
}

TEST(CliTest, HelpAndVersion_ExitWithZero) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{SPOOR, "--help"},
                                                  {SPOOR, "scan", "--help"},
                                                  {SPOOR, "help"},
                                                  {SPOOR, "--version"}})
    EXPECT_EQ(run_command(command).code, 0) << command.back();
}

TEST(CliTest, ConfigShow_PrintsWhatConfigCheckAccepts) {
  const support::TempDirectory directory;
  const auto file = directory / "spoor.json";
  std::ofstream(file) << R"({"node":{"name":"x"},"drives":["/srv/data"]})";
  EXPECT_EQ(run_command({SPOOR, "--config", file.native(), "config", "check"}).code, 0);
  const auto shown =
      run_command({SPOOR, "config", "show", "--config", file.native(), "--set", "scan.threads=2"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(json::parse(shown.out)["scan"]["threads"], 2);
  std::ofstream(file) << shown.out;
  EXPECT_EQ(run_command({SPOOR, "--config", file.native(), "config", "check"}).code, 0);
}

TEST(CliTest, ConfigCheck_RefusesDrivesThatAreOneDirectory) {
  const support::TempDirectory directory;
  std::filesystem::create_directories(directory / "disk/inner");
  std::filesystem::create_directory_symlink(directory / "disk", directory / "link");
  const auto file = directory / "spoor.json";
  const auto check = [&](const std::string& second) {
    const json config{{"node", {{"name", "x"}}},
                      {"drives", {(directory / "disk").native(), (directory / second).native()}}};
    std::ofstream(file) << config;
    return run_command({SPOOR, "--config", file.native(), "config", "check"});
  };
  const auto same = check("link");
  EXPECT_EQ(same.code, 2);
  EXPECT_NE(same.err.find("is the same directory as"), std::string::npos) << same.err;
  const auto inside = check("link/inner");
  EXPECT_EQ(inside.code, 2);
  EXPECT_NE(inside.err.find("is inside"), std::string::npos) << inside.err;
  EXPECT_EQ(check("not-mounted").code, 0);
}

TEST(CliTest, MarkWithoutDaemon_FailsAfterTimeout) {
  const auto result =
      run_command({SPOOR, "--url", "unix:/nonexistent/socket", "mark", "--timeout", "0", "a"});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("not marked"), std::string::npos) << result.err;
}

TEST(CliTest, UsageAndScansBeforeFirstScan_ErrorSuggestsScan) {
  const support::TempDirectory directory;
  const auto file = directory / "spoor.json";
  std::ofstream(file) << json{{"node", {{"name", "x"}, {"data_dir", directory.path()}}},
                              {"drives", {"/srv/data"}}};
  for (const char* command : {"usage", "scans"}) {
    const auto result = run_command({SPOOR, "--config", file.native(), command});
    EXPECT_EQ(result.code, 1);
    EXPECT_NE(result.err.find("spoor scan"), std::string::npos) << result.err;
  }
}

// On /dev/full, each write fails, as on a disk without space.
support::CommandResult run_with_full_output(std::vector<std::string> command) {
  command.insert(command.begin(), {"sh", "-c", "exec \"$@\" >/dev/full", "sh"});
  return run_command(command);
}

void expect_full_output_is_an_error(const std::vector<std::string>& command) {
  ASSERT_FALSE(run_command(command).out.empty()) << command.back();
  const auto result = run_with_full_output(command);
  EXPECT_EQ(result.code, 1) << command.back();
  EXPECT_NE(result.err.find("cannot write to"), std::string::npos) << command.back() << result.err;
}

TEST(CliTest, FullOutput_OfAnyProgram_IsAnError) {
  const support::TempDirectory directory;
  const auto file = directory / "spoor.json";
  std::ofstream(file) << json{{"node", {{"name", "x"}, {"data_dir", directory.path()}}},
                              {"drives", {directory.path()}}};
  for (const std::string option : {"--help", "--version"}) {
    expect_full_output_is_an_error({SPOOR, option});
    expect_full_output_is_an_error({SPOORD, option});
    expect_full_output_is_an_error({SPOOR_WATCH, option});
    expect_full_output_is_an_error({SPOOR_PUBLISH, option});
  }
  expect_full_output_is_an_error({SPOORD, "--config", file.native(), "--check"});
  expect_full_output_is_an_error({SPOOR, "inspect", minio_file});
}

class ScannedCliTest : public testing::Test {
 protected:
  ScannedCliTest() {
    std::filesystem::create_directory(directory_ / "drive");
    std::ofstream(config_) << json{{"node", {{"name", "x"}, {"data_dir", directory_.path()}}},
                                   {"drives", {directory_ / "drive"}},
                                   {"listen", {{{"unix", directory_ / "socket"}}}}};
    for (int i = 0; i < 25; ++i) std::filesystem::create_directory(directory_ / "drive" / std::to_string(i));
    scan();
  }

  support::CommandResult spoor(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {SPOOR, "--config", config_.native()});
    return run_command(arguments);
  }

  // There is no daemon to ask.
  void scan() const {
    support::outlast_timestamp_step();
    EXPECT_EQ(spoor({"scan", "--full"}).code, 3);
  }

  std::string out(const std::vector<std::string>& arguments) const {
    const auto result = spoor(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  }

  const support::TempDirectory directory_;
  const std::filesystem::path config_ = directory_ / "spoor.json";
};

TEST_F(ScannedCliTest, Usage_ShowsTwentyPerDirectoryByDefault) {
  EXPECT_NE(out({"usage"}).find("(5 more)\n"), std::string::npos);
  EXPECT_NE(out({"usage", "--limit", "24"}).find("(1 more)\n"), std::string::npos);
  EXPECT_EQ(out({"usage", "--limit", "0"}).find(" more)"), std::string::npos);
  EXPECT_EQ(json::parse(out({"usage", "--json"}))["children"].size(), 25U) << "programs get all";
  EXPECT_EQ(json::parse(out({"usage", "--json", "--limit", "2"}))["rest"]["count"], 23);
  const std::string csv = out({"usage", "--csv"});
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 1 + 25);
}

TEST_F(ScannedCliTest, Export_HasAllDirectoriesInTheOrderOfAWalk) {
  EXPECT_EQ(out({"usage", "--export", "csv"}), out({"usage", "--csv", "--sort", "name", "--depth", "9"}));
  std::istringstream lines(out({"usage", "--export", "json"}));
  std::string line;
  std::vector<std::string> paths;
  for (; std::getline(lines, line); paths.push_back(json::parse(line).at("path"))) {
    EXPECT_TRUE(json::parse(line).contains("as_of"));
  }
  EXPECT_EQ(paths.size(), 1 + 25U);
  EXPECT_TRUE(std::ranges::is_sorted(paths));
  EXPECT_EQ(out({"usage", "--export", "csv", paths.back()}), out({"usage", "--csv", paths.back()}));
  EXPECT_EQ(spoor({"usage", "--export", "csv", "nowhere"}).code, 1);
  EXPECT_EQ(spoor({"usage", "--export", "csv", "--json"}).code, 2);
  EXPECT_EQ(spoor({"--url", "http://127.0.0.1:1", "usage", "--export", "csv"}).code, 2);
}

TEST_F(ScannedCliTest, FullOutput_IsAnError) {
  support::Daemon daemon({SPOORD, "--config", config_.native()});
  ASSERT_FALSE(daemon.wait_for("listening on ").empty()) << daemon.log();
  const std::vector<std::vector<std::string>> commands{{"usage"},
                                                       {"usage", "--json"},
                                                       {"usage", "--csv"},
                                                       {"usage", "--export", "csv"},
                                                       {"scans"},
                                                       {"scans", "--json"},
                                                       {"status"},
                                                       {"status", "--json"},
                                                       {"config", "show"},
                                                       {"drives"},
                                                       {"members"},
                                                       {"mark", "a"},
                                                       {"changes", "--everything"},
                                                       {"changes", "--latest"},
                                                       {"scan"},
                                                       {"scan", "--json"}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.begin(), {SPOOR, "--config", config_.native()});
    expect_full_output_is_an_error(command);
  }
  EXPECT_EQ(run_with_full_output({SPOOR, "--config", config_.native(), "status", "--watch"}).code, 1)
      << "it ends";
}

// As while another program locks it: the consumer is not taken for absent, and its changes are not removed.
TEST_F(ScannedCliTest, ConsumersThatCannotBeRead_KeepTheirChanges) {
  EXPECT_EQ(spoor({"changes", "--consumer", "c", "--commit"}).code, 4) << "it starts over";
  for (std::uint64_t scan = 0; scan < scanner::ChangeLog::scans_kept; ++scan) spoor({"scan", "--full"});
  std::filesystem::rename(directory_ / "consumers.db", directory_ / "aside");
  std::filesystem::create_directory(directory_ / "consumers.db");
  const auto scanned = spoor({"scan", "--full"});
  EXPECT_EQ(scanned.code, 3) << "there is no daemon to ask";
  EXPECT_NE(scanned.out.find("no change was removed from the feed"), std::string::npos) << scanned.out;
  std::filesystem::remove(directory_ / "consumers.db");
  std::filesystem::rename(directory_ / "aside", directory_ / "consumers.db");
  EXPECT_EQ(spoor({"changes", "--consumer", "c"}).code, 0);
}

// As while the disk of a log is full: the command does what it does.
TEST_F(ScannedCliTest, StandardErrorFullOrClosed_ChangesNothingElse) {
  for (const char* const redirected : {"exec \"$0\" \"$@\" 2>/dev/full", "exec \"$0\" \"$@\" 2>&-"}) {
    const auto run = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), {"sh", "-c", redirected, SPOOR, "--config", config_.native()});
      return run_command(arguments).code;
    };
    EXPECT_EQ(run({"usage", "nowhere"}), 1) << redirected;
    EXPECT_EQ(run({"usage"}), 0) << redirected;
    EXPECT_EQ(run({"scan", "--full", "--exec", "echo printed; false"}), 3) << redirected;
  }
  EXPECT_EQ(std::filesystem::file_size(directory_ / "scan.lock"), 0U) << "it is no standard error";
}

TEST_F(ScannedCliTest, UsageOfAPlaceOnADrive_IsThatOfItsLogicalPath) {
  const std::filesystem::path drive = directory_ / "drive";
  const auto path_of = [&](const std::string& asked) {
    return json::parse(out({"usage", "--json", asked}))["path"].get<std::string>();
  };
  EXPECT_EQ(path_of(drive / "7"), "7");
  EXPECT_EQ(path_of(drive / "7/"), "7");
  EXPECT_EQ(path_of(drive / "7/../8/."), "8");
  EXPECT_EQ(path_of(drive), "");
  EXPECT_EQ(path_of("/"), "") << "everything";
  EXPECT_EQ(path_of("7"), "7");
  std::filesystem::create_directory_symlink(drive / "7", directory_ / "link");
  EXPECT_EQ(path_of(directory_ / "link"), "7");
  const auto from = [&](const std::string& place, const std::string& asked) {
    return run_command({"sh", "-c", "cd \"$0\" && exec \"$@\"", drive / place, SPOOR, "--config",
                        config_.native(), "usage", "--json", asked});
  };
  const auto path_from = [&](const std::string& place, const std::string& asked) {
    const auto result = from(place, asked);
    EXPECT_EQ(result.code, 0) << result.err;
    return json::parse(result.out)["path"].get<std::string>();
  };
  EXPECT_EQ(path_from("7", "."), "7");
  EXPECT_EQ(path_from("7", "../8"), "8");
  EXPECT_EQ(path_from("7", ".."), "");
  EXPECT_EQ(path_from("..", "./link"), "7");
  EXPECT_EQ(path_from("7", "8"), "8") << "a logical path";
  const auto elsewhere = from("..", ".");
  EXPECT_EQ(elsewhere.code, 2) << "not everything";
  EXPECT_NE(elsewhere.err.find("'.' is on no drive of this node"), std::string::npos) << elsewhere.err;
  EXPECT_EQ(spoor({"--url", "http://127.0.0.1:1", "usage", "."}).code, 2);
  const auto beside = spoor({"usage", drive.native() + "2/7"});
  EXPECT_EQ(beside.code, 1) << "the name of the drive is only the begin of another";
}

TEST_F(ScannedCliTest, UsageOfSeveralPaths_ShowsEach) {
  const auto result = spoor({"usage", "-s", "-h", "7", "nowhere", "8"});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.out.find("7:\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\n8:\n"), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("no directory 'nowhere'"), std::string::npos) << result.err;
  const std::string summary = out({"usage", "-s", "--csv"});
  EXPECT_EQ(std::count(summary.begin(), summary.end(), '\n'), 2);
  EXPECT_EQ(out({"usage", "-d", "0", "--csv"}), summary);
}

TEST_F(ScannedCliTest, Top_ListsTheLargestAtAnyDepth) {
  std::filesystem::create_directories(directory_ / "drive/7/below/deep");
  std::ofstream(directory_ / "drive/7/below/deep/file") << "12345";
  std::ofstream(directory_ / "drive/8/file") << "1234567";
  scan();
  const auto listed = json::parse(out({"usage", "--top", "4", "--json"}));
  std::vector<std::string> paths;
  for (const auto& child : listed["children"]) paths.push_back(child["path"]);
  EXPECT_EQ(paths, (std::vector<std::string>{"8", "7", "7/below", "7/below/deep"}));
  EXPECT_EQ(listed["bytes"], 12);
  EXPECT_EQ(json::parse(out({"usage", "--json"}))["children"][0]["path"], "8") << "the largest first";
  EXPECT_EQ(json::parse(out({"usage", "--json", "--sort", "name"}))["children"][0]["path"], "0");
  EXPECT_NE(out({"usage", "--top", "1", "7"}).find("  7/below\n"), std::string::npos);
  EXPECT_EQ(spoor({"usage", "--top", "3", "--cluster"}).code, 1) << "no daemon";
  EXPECT_EQ(spoor({"usage", "--top", "0"}).code, 2);
}

TEST_F(ScannedCliTest, History_HasALineForEachPoint) {
  std::ofstream(directory_ / "drive/7/file") << "12345";
  scan();
  const std::string text = out({"usage", "--history", "7"});
  EXPECT_NE(text.find(" 5 B "), std::string::npos) << text;
  EXPECT_EQ(text.find("▁"), std::string::npos) << "no terminal";
  EXPECT_EQ(json::parse(out({"usage", "--history", "7", "--json"}))["points"].back()["bytes"], 5);
  EXPECT_EQ(spoor({"usage", "--history", "nowhere"}).code, 1);
  for (const auto& [locale, is_drawn] : {std::pair{"LC_ALL=C.UTF-8", true}, {"LC_ALL=C", false}}) {
    const auto drawn = run_command(
        {"env", locale, "COLUMNS=60", SPOOR, "--config", config_.native(), "usage", "--history", "7"});
    EXPECT_EQ(drawn.out.find("▁") != std::string::npos, is_drawn) << drawn.out;
  }
}

TEST_F(ScannedCliTest, Changes_AreThoseOfTheLastScanOrSinceATime) {
  std::filesystem::create_directory(directory_ / "drive/first");
  scan();
  std::filesystem::create_directory(directory_ / "drive/second");
  scan();
  EXPECT_EQ(out({"changes"}), "./\nsecond/\n");
  EXPECT_EQ(out({"changes", "--after", "1"}), "./\nfirst/\nsecond/\n");
  EXPECT_EQ(out({"changes", "--since", "1"}), out({"changes", "--after", "1"})) << "as in 1.0.0";
  EXPECT_EQ(spoor({"changes", "--since", "yesterday"}).code, 4) << "the first scan has no changes";
  EXPECT_EQ(spoor({"changes", "--since", "2100-01-01"}).code, 2);
  // As after the clock was set back.
  scanner::UsageDatabase::open(directory_ / "scan.db")
      .value()
      .handle()
      .exec("UPDATE scans SET finished_at_ns = 1 WHERE id <> 2");
  EXPECT_EQ(out({"changes", "--since", "2h"}), out({"changes", "--after", "1"})) << "scan 2 ended since then";
  const auto refused = spoor({"changes", "--since", "lately"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("\"lately\" is not a time: expected a duration"), std::string::npos)
      << refused.err;
  EXPECT_EQ(spoor({"changes", "--since", "1h", "--after", "1"}).code, 2);
  for (const char* option : {"--since", "--after", "--until", "--consumer"})
    EXPECT_EQ(spoor({"changes", option, ""}).code, 2) << option << ": a variable of a shell that is not set";
}

TEST_F(ScannedCliTest, Scans_AreListedNewestFirst) {
  scan();
  EXPECT_EQ(json::parse(out({"scans", "--json"}))["scans"].size(), 2U);
  const auto last = json::parse(out({"scans", "--json", "--limit", "1"}))["scans"];
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0]["scan"], 2);
  EXPECT_NE(out({"scans"}).find("a full scan was asked for\n"), std::string::npos);
}

TEST_F(ScannedCliTest, ChangesWithControlBytes_AreEscapedOnATerminalOnly) {
  const std::string name = "a\x1b]0;title\x07\x9b";  // sets the title of a terminal; the last is no UTF-8
  std::filesystem::create_directory(directory_ / "drive" / name);
  scan();
  const auto on_terminal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command{SPOOR, "--config", config_.native(), "changes", "--since", "1"};
    command.insert(command.end(), more.begin(), more.end());
    const auto result = support::run_on_terminal(command);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(on_terminal({}), "./\na\\x1b]0;title\\x07\\x9b/\n");
  EXPECT_EQ(out({"changes", "--since", "1"}), "./\n" + name + "/\n");
  EXPECT_EQ(on_terminal({"-0"}), std::string("./\0", 3) + name + "/" + '\0') << "for programs";
  EXPECT_EQ(on_terminal({"--json"}), out({"changes", "--since", "1", "--json"}));
}

TEST_F(ScannedCliTest, WhatIsLeft_HasAColourOnATerminalOnly) {
  const auto on_terminal = [&](std::vector<std::string> command, const std::vector<std::string>& arguments) {
    command.insert(command.end(), {SPOOR, "--config", config_.native()});
    command.insert(command.end(), arguments.begin(), arguments.end());
    return support::run_on_terminal(command).out;
  };
  const std::string left = "  left for next time: ";
  EXPECT_NE(on_terminal({"env", "--unset=NO_COLOR"}, {"scan", "--full"}).find("\x1b[33m" + left),
            std::string::npos);
  const std::string plain = on_terminal({"env", "NO_COLOR=1"}, {"scan", "--full"});
  EXPECT_NE(plain.find('\n' + left), std::string::npos) << plain;
  EXPECT_EQ(plain.find('\x1b'), std::string::npos) << plain;
  EXPECT_EQ(spoor({"scan", "--full"}).out.find('\x1b'), std::string::npos);
  EXPECT_NE(on_terminal({}, {"usage"}).find(" ago"), std::string::npos);
  EXPECT_EQ(out({"usage"}).find(" ago"), std::string::npos);
}

TEST_F(ScannedCliTest, ErrorThatQuotesAnArgument_IsEscaped) {
  const auto result = spoor({"scans", "name\x1b[2J"});
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.err.find("name\\x1b[2J\n"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos) << result.err;
}

TEST_F(ScannedCliTest, UnknownDirectoryOrBadOption_IsAnError) {
  const auto result = spoor({"usage", "nowhere"});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("no directory 'nowhere'"), std::string::npos) << result.err;
  EXPECT_EQ(spoor({"usage", "a/../b"}).code, 2);
  EXPECT_EQ(spoor({"usage", "--json", "--csv"}).code, 2);
  EXPECT_EQ(spoor({"scans", "--limit", "0"}).code, 2);
}

}  // namespace
}  // namespace spoor::cli
