// Three real daemons, real trees, marks through any node, and after every scan totals that must equal
// an independent walk; with random changes in cluster_usage_rounds_test.cpp.
#include <gtest/gtest.h>

#include <fstream>

#include "peer/http/http_transport.h"
#include "peer/http/send_marks.h"
#include "tests/cluster/cluster.h"
#include "tests/support/random.h"
#include "tests/support/sanitizer.h"
#include "tests/support/tree_writer.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;

using support::TreeWriter;

class EndToEndTest : public testing::Test {
 protected:
  // Marks through any node that lives; a mark nobody acknowledges is tried at another.
  void mark(const std::string& lines, support::Random& random) {
    if (lines.empty()) return;
    for (;;) {
      const auto& node = random.pick(cluster_.nodes());
      if (cluster_.spoor(node, {"mark", "--timeout", "0", "-0"}, lines).code == 0) return;
    }
  }

  // As spoor-watch does: the daemon of the node, and the marks name the drive.
  void mark_on_drive(const Cluster::Node& node, const fs::path& drive, const std::string& lines) {
    if (lines.empty()) return;
    peer::HttpTransport transport({});
    base::Endpoint socket;
    socket.unix_path = cluster_.socket_of(node);
    const auto reply = peer::send_marks(transport, socket, "dir", lines, drive.native());
    EXPECT_TRUE(reply.is_acknowledged) << reply.problem;
  }

  Cluster cluster_{3, 2};
};

// #15 A1: such a scan was complete, and missed what the own daemon had acknowledged.
TEST_F(EndToEndTest, ScanAtAnotherNodesDaemon_IsRefusedAndMissesNothing) {
  const auto& node = cluster_.nodes()[0];
  const std::vector<std::string> wrong{"--url", "unix:" + cluster_.socket_of(cluster_.nodes()[1]).native()};
  const auto scan_wrong = [&] {
    auto arguments = wrong;
    arguments.insert(arguments.end(), {"scan", "--json"});
    const auto result = cluster_.spoor(node, arguments);
    EXPECT_EQ(result.code, 1) << result.out << result.err;
    return result.err;
  };
  fs::create_directory(node.drives[0] / "bucket");
  EXPECT_NE(scan_wrong().find("this is instance "), std::string::npos);
  cluster_.scan(node);
  scan_wrong();
  std::ofstream(node.drives[0] / "bucket/object") << "content";
  ASSERT_EQ(cluster_.spoor(node, {"mark", "--kind", "file", "bucket/object"}).code, 0);
  scan_wrong();
  EXPECT_EQ(cluster_.scan(node)["mode"], "incremental");
  cluster_.expect_truth(node);
}

// As after a copy of another node's configuration: the name is right, the daemon is not the one of
// node.data_dir.
TEST_F(EndToEndTest, Scan_DaemonDoesNotMatchInstanceFile_IsRefused) {
  const auto& node = cluster_.nodes()[0];
  cluster_.scan(node);
  cluster_.spoor(node, {"mark", "bucket"});
  const auto record = cluster_.data_dir_of(node) / "instance.json";
  fs::copy_file(cluster_.data_dir_of(cluster_.nodes()[1]) / "instance.json", record,
                fs::copy_options::overwrite_existing);
  const auto refused = cluster_.spoor(node, {"scan"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("a scan and its daemon must use the same node.data_dir"), std::string::npos);
  fs::remove(record);
  const auto without = cluster_.spoor(node, {"scan"});
  EXPECT_EQ(without.code, 1);
  EXPECT_NE(without.err.find("has no instance.json"), std::string::npos) << without.err;
}

TEST_F(EndToEndTest, Cluster_StopsKillsAndOutages_LoseNoMarks) {
  SPOOR_RANDOM(random);
  std::vector<TreeWriter> writers;
  for (const auto& node : cluster_.nodes()) writers.emplace_back(random, node.drives[0]).fill(40);
  for (const auto& node : cluster_.nodes()) cluster_.scan(node);

  for (int round = 0; round < (support::is_sanitized ? 3 : 8) && !HasFailure(); ++round) {
    for (TreeWriter& writer : writers) {
      writer.change();
      mark(writer.take_changed(), random);
    }
    auto& victim = cluster_.nodes()[random.below(3)];
    const bool killed = random.one_in(2);
    if (killed) {
      cluster_.kill_hard(victim);
    } else {
      EXPECT_EQ(cluster_.stop(victim), 0);
    }
    const bool lost = killed && random.one_in(2);
    if (lost) fs::remove_all(cluster_.data_dir_of(victim) / "journal");
    // While it is away: what it was told is pending, and everybody says so.
    const auto& other = cluster_.nodes()[random.below(3)];
    if (&other == &victim) {
      const auto refused = cluster_.spoor(other, {"scan"});
      EXPECT_EQ(refused.code, 1) << "its own daemon gathers for it";
      EXPECT_NE(refused.err.find("does spoord run?"), std::string::npos) << refused.err;
    } else {
      const auto partial = cluster_.scan(other, 3);
      EXPECT_EQ(partial["partial"], true);
      EXPECT_EQ(partial["mode"], "incremental") << "an absent peer costs no full walk";
    }

    cluster_.start(victim);
    for (const auto& node : cluster_.nodes()) {
      EXPECT_EQ(cluster_.scan(node)["mode"], lost ? "full" : "incremental") << "a kill alone costs nothing";
      cluster_.expect_truth(node);
      EXPECT_EQ(cluster_.scan(node)["mode"], "incremental") << "a loss costs one full walk, once";
    }
  }
}

TEST_F(EndToEndTest, MarkThatNamesADrive_IsReadOnThatDriveAlone) {
  const auto& node = cluster_.nodes()[0];
  const auto& other = cluster_.nodes()[1];
  for (const auto* each : {&node, &other}) {
    for (const auto& drive : each->drives) fs::create_directories(drive / "bucket/a");
    cluster_.scan(*each);
  }
  std::ofstream(node.drives[0] / "bucket/a/file") << "12345";
  const std::string path("bucket/a\0", 9);
  mark_on_drive(node, node.drives[0], path);
  EXPECT_EQ(cluster_.scan(node)["dirs_walked"], 4U) << "the roots, and two below one of them";
  cluster_.expect_truth(node);
  EXPECT_EQ(cluster_.scan(other)["dirs_walked"], 2U) << "the roots alone";
  const auto dirty = support::run_command({"curl", "-s", "--unix-socket", cluster_.socket_of(node).native(),
                                           "http://spoor/v1/dirty?path=bucket/a"});
  EXPECT_NE(dirty.out.find("\"dirty\":true"), std::string::npos) << dirty.out;
}

// A disk mounted in another's location, with files of its own, is neither walked nor written to.
TEST_F(EndToEndTest, SwappedDrive_IsNotScannedUntilAccepted) {
  auto& node = cluster_.nodes()[0];
  const fs::path drive = node.drives[1];
  fs::create_directories(drive / "bucket/a");
  std::ofstream(drive / "bucket/a/file") << "12345";
  cluster_.scan(node);
  cluster_.expect_truth(node);

  const fs::path unplugged = drive.native() + "-unplugged";
  fs::rename(drive, unplugged);
  fs::create_directories(drive / "bucket/other");
  std::ofstream(drive / "bucket/other/file") << "1";
  cluster_.spoor(node, {"mark", "bucket/other"});
  const auto before = cluster_.usage(node);
  const auto refused = cluster_.scan(node, 3);
  EXPECT_NE(refused["error_details"][0]["message"].get<std::string>().find("carries no identity"),
            std::string::npos);
  EXPECT_EQ(cluster_.usage(node), before) << "it keeps its totals";
  EXPECT_FALSE(fs::exists(drive / ".spoor"));

  const auto accepted = cluster_.spoor(node, {"drives", "accept", drive.native(), "--json"});
  EXPECT_EQ(accepted.code, 0) << accepted.err;
  EXPECT_TRUE(nlohmann::json::parse(accepted.out)["drives"][1]["ok"]);
  cluster_.scan(node);
  cluster_.expect_truth(node);

  // And back: the first disk is the other one now.
  fs::rename(drive, drive.native() + "-second");
  fs::rename(unplugged, drive);
  const auto back = cluster_.scan(node, 3);
  EXPECT_NE(back["error_details"][0]["message"].get<std::string>().find("another drive's identity"),
            std::string::npos);
  EXPECT_EQ(cluster_.spoor(node, {"drives", "accept", drive.native()}).code, 0);
  cluster_.scan(node);
  cluster_.expect_truth(node);
  EXPECT_EQ(cluster_.spoor(node, {"drives", "accept", "/not/a/drive"}).code, 1);
  const auto shown = cluster_.spoor(node, {"drives"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_NE(shown.out.find(drive.native()), std::string::npos);
}

// ancestor 24: self-healing marked what it healed and so fed its own next scan.
TEST_F(EndToEndTest, Scan_AddsNoMarks) {
  const auto& node = cluster_.nodes()[0];
  fs::create_directories(node.drives[0] / "bucket/a");
  cluster_.spoor(node, {"mark", "bucket/a"});
  cluster_.scan(node);
  cluster_.scan(node);
  const auto status = cluster_.status(node);
  EXPECT_EQ(status["marks"]["accepted"], 1);
  EXPECT_EQ(status["cycles"][0]["items"], 0);
}

TEST_F(EndToEndTest, DryRun_WalksNothingAndKeepsTheCycle) {
  const auto& node = cluster_.nodes()[0];
  cluster_.scan(node);
  cluster_.spoor(node, {"mark", "bucket/a"});
  const auto before = cluster_.status(node)["cycle"]["current"];
  const auto dry = cluster_.scan(node, 0, {"--dry-run"});
  EXPECT_EQ(dry["dirs_walked"], 0);
  EXPECT_GT(dry["filter"]["items"], 0);
  EXPECT_EQ(cluster_.status(node)["cycle"]["current"], before);
  EXPECT_GT(cluster_.scan(node)["filter"]["items"], 0) << "the dry run took nothing away";
}

// ancestor: merged filters got saturated, and stayed so.
TEST_F(EndToEndTest, ScanOfManyMarks_NextCycles_OpenAtALargerLevel) {
  const auto& node = cluster_.nodes()[0];
  std::string paths;
  for (int i = 0; i < 130'000; ++i) paths += "bucket/" + std::to_string(i) + '\n';
  ASSERT_EQ(cluster_.spoor(node, {"mark"}, paths).code, 0);
  EXPECT_EQ(cluster_.scan(node)["filter"]["start_level"], 1) << "130,000 are over half of level 0";
  cluster_.scan(node);
  for (const auto& other : cluster_.nodes()) {
    cluster_.spoor(other, {"mark", "bucket/a"});
    const auto status = cluster_.status(other);
    EXPECT_EQ(status["cycles"][0]["bits"], 2'494'090) << other.name;
    EXPECT_EQ(status["cycles"][0]["levels"], 1) << other.name;
  }
}

TEST_F(EndToEndTest, DryRun_BeforeTheFirstScan_LeavesNoDatabase) {
  const auto& node = cluster_.nodes()[0];
  EXPECT_EQ(cluster_.scan(node, 0, {"--dry-run"})["mode"], "full");
  EXPECT_EQ(cluster_.spoor(node, {"usage"}).code, 1) << "there is nothing to ask yet";
}

TEST_F(EndToEndTest, Scan_NamespaceRulesDifferFromTheDaemons_IsAGap) {
  const auto& node = cluster_.nodes()[0];
  const std::vector<std::string> other{"--set", R"(namespace.exclude=["x"])"};
  cluster_.scan(node, 0, other);
  EXPECT_EQ(cluster_.scan(node, 0, other)["gaps"].size(), 3U)
      << "a daemon may have dropped what is needed here";
  cluster_.scan(node);
  EXPECT_EQ(cluster_.scan(node)["gaps"].size(), 0U);
}

// What a shell completes: it would be marked, and help nobody.
// A writer that named a wrong mount point lost its changes.
TEST_F(EndToEndTest, MarkCommand_AbsolutePath_IsMarkedBelowItsDriveOrRefused) {
  const auto& node = cluster_.nodes()[0];
  EXPECT_EQ(cluster_.spoor(node, {"mark", (node.drives[0] / "mapped/a").native()}).code, 0);
  const auto found = support::run_command({"curl", "-s", "--unix-socket", cluster_.socket_of(node).native(),
                                           "http://spoor/v1/dirty?path=mapped/a"});
  EXPECT_EQ(nlohmann::json::parse(found.out)["dirty"], true) << found.out;
  const std::string other = node.drives[0].native() + "-other/bucket";
  const auto refused = cluster_.spoor(node, {"mark", node.drives[1], other, "/bucket/a"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.out, "0 marked, 0 ignored\n");
  EXPECT_NE(refused.err.find("is a drive"), std::string::npos) << refused.err;
  for (const std::string& path : {other, std::string("/bucket/a")}) {
    EXPECT_NE(refused.err.find("'" + path + "' is on none of the drives"), std::string::npos) << refused.err;
  }
}

TEST_F(EndToEndTest, DuplicateNodeName_NoOtherPeerUp_ScanIsPartial) {
  auto& nodes = cluster_.nodes();
  auto& node = nodes[0];
  cluster_.stop(nodes[1]);
  cluster_.stop(nodes[2]);
  const std::string url = "unix:" + cluster_.socket_of(nodes[1]).native();
  support::Daemon twin({SPOORD, "--config", cluster_.config_of(nodes[1]).native(), "--set", "node.name=n0"});
  ASSERT_FALSE(twin.wait_for("listening on unix:").empty()) << twin.log();
  cluster_.configure(node, [&](nlohmann::json& config) { config["peers"]["static"] = {url}; });
  const auto scan = cluster_.scan(node, 3);
  EXPECT_EQ(scan["mode"], "full");
  EXPECT_EQ(scan["gaps"].size(), 0U);
}

TEST_F(EndToEndTest, RequireAll_PeerDown_ScanIsRefused) {
  const auto& node = cluster_.nodes()[0];
  cluster_.scan(node);
  cluster_.stop(cluster_.nodes()[2]);
  const auto result = cluster_.spoor(node, {"scan", "--json", "--set", "scan.require=all"});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("scan.require"), std::string::npos) << result.err;
}

TEST_F(EndToEndTest, PeerRemovedFromConfiguration_IsReadWhileItResponds) {
  auto& node = cluster_.nodes()[0];
  cluster_.scan(node);
  cluster_.spoor(cluster_.nodes()[2], {"mark", "bucket/only-n2-was-told"});
  cluster_.configure(node,
                     [](nlohmann::json& config) { config["peers"]["static"] = nlohmann::json::array(); });
  EXPECT_EQ(cluster_.scan(node)["peers"].size(), 3U);
  cluster_.stop(cluster_.nodes()[1]);
  cluster_.stop(cluster_.nodes()[2]);
  EXPECT_EQ(cluster_.scan(node, 3)["mode"], "incremental");
  const std::vector<std::string> at_once{"--set", "peers.forget_after=0s"};
  EXPECT_EQ(cluster_.scan(node, 0, at_once)["mode"], "full");
  EXPECT_EQ(cluster_.scan(node, 0, at_once)["mode"], "incremental");
}

}  // namespace
}  // namespace spoor::cluster
