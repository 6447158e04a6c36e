// The programs of this version on the files of earlier ones: each directory of data was written by those of
// the commit of its name.
//
// scan.db holds inode numbers and times of creation, drives.json absolute paths. So the files are on a file
// system image, which is mounted where it was when they were written, and used as they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temp_directory.h"
#include "tests/support/tree_totals.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using support::CommandResult;
using support::Daemon;
using testing::HasSubstr;
using testing::Not;

// The mount and the ports of make.sh, in namespaces that end with the object. The id of the boot is that of
// make.sh, too: an upgrade restarts the programs, not the machine. Not thread-safe. Failures are exceptions.
class OldMachine {
 public:
  // Why it cannot be made here; empty if it can.
  static std::string why_none() {
    const auto tried =
        support::run_command({"unshare", "--mount", "--net", "sh", "-c",
                              "mount -t tmpfs none \"$1\" && losetup --find", "sh", mount_point});
    return tried.code == 0 ? "" : "needs namespaces, mounts and loop devices: " + tried.err;
  }

  explicit OldMachine(const std::string& image) {
    const auto unpacked = support::run_command({"sh", "-c", R"(exec gzip --decompress --stdout "$1" > "$2")",
                                                "sh", UPGRADE_IMAGES "/" + image, image_});
    if (unpacked.code != 0) throw std::runtime_error(unpacked.err);
    constexpr const char* script = R"(
        ip link set lo up
        mount -o loop "$1" "$2"
        mount --bind "$2/boot_id" /proc/sys/kernel/random/boot_id
        echo 'the machine is up' >&2
        exec sleep infinity)";
    // The process that keeps the namespaces.
    holder_ = std::make_unique<Daemon>(std::vector<std::string>{"unshare", "--mount", "--net", "sh", "-ec",
                                                                script, "sh", image_, mount_point});
    if (holder_->wait_for("the machine").empty()) throw std::runtime_error(holder_->log());
  }

  std::vector<std::string> inside(const std::vector<std::string>& command) const {
    std::vector<std::string> words{"nsenter", "--target", std::to_string(holder_->pid()), "--mount", "--net"};
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }

  // As a process of the test sees it.
  fs::path file(const std::string& name) const {
    return fs::path("/proc") / std::to_string(holder_->pid()) / "root" / (mount_point + 1) / name;
  }

  static constexpr const char* mount_point = "/media";

 private:
  support::TempDirectory directory_;
  const std::string image_ = directory_ / "image";
  std::unique_ptr<Daemon> holder_;
};

// What scans and peers see of a status.
json state_of(const json& status) {
  json state{{"instance", status["instance"]}, {"current", status["cycle"]["current"]}};
  for (const json& cycle : status["cycles"]) {
    for (const char* member : {"cycle", "items", "bits", "levels", "tree_marks"}) {
      state["cycles"][std::to_string(cycle["cycle"].get<std::uint64_t>())][member] = cycle[member];
    }
  }
  for (const json& drive : status["snapshot"]["drives"]) state["drives"][drive["id"]] = drive["ok"];
  return state;
}

// The name of an image: the commit, and whether it was left by a clean stop or by kill -9.
class UpgradeTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto why = OldMachine::why_none(); !why.empty()) GTEST_SKIP() << why;
    machine_ = std::make_unique<OldMachine>(std::string(GetParam()) + ".img.gz");
  }

  json reported(const std::string& name) const { return json::parse(content(report(name))); }
  fs::path report(const std::string& name) const { return machine_->file("reported/" + name + ".json"); }

  void start(const std::string& node) {
    // After 1.0.0, peers on loopback read each other only with this.
    const fs::path file = machine_->file(node + ".json");
    json config = json::parse(content(file));
    config["listen"][0]["insecure"] = true;
    std::ofstream(file) << config;
    auto& daemon = daemons_[node];
    daemon = std::make_unique<Daemon>(machine_->inside({SPOORD, "--config", config_of(node)}));
    ASSERT_FALSE(daemon->wait_for("listening on unix:").empty()) << daemon->log();
  }

  int stop(const std::string& node) {
    daemons_[node]->signal(SIGTERM);
    return daemons_[node]->wait();
  }

  // The nodes that the DNS lists, all of them running.
  void start_cluster(const std::vector<std::string>& nodes) {
    std::vector<std::string> dns{"dnsmasq",
                                 "--no-daemon",
                                 "--conf-file=/dev/null",
                                 "--no-resolv",
                                 "--no-hosts",
                                 "--local=/test/",
                                 "--listen-address=127.0.0.1",
                                 "--bind-interfaces",
                                 "--port=5353",
                                 "--host-record=node.test,127.0.0.1"};
    for (const std::string& node : nodes) {
      start(node);
      dns.push_back("--srv-host=_spoor._tcp.test,node.test,742" + node.substr(1));
    }
    dns_ = std::make_unique<Daemon>(machine_->inside(dns));
    ASSERT_FALSE(dns_->wait_for("dnsmasq: started, ").empty()) << dns_->log();
  }

  CommandResult spoor(const std::string& node, const std::vector<std::string>& arguments) const {
    std::vector<std::string> command{SPOOR, "--config", config_of(node)};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return support::run_command(machine_->inside(command));
  }

  std::string output_of(const std::string& node, const std::vector<std::string>& arguments) const {
    const auto result = spoor(node, arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  }

  json status(const std::string& node) const {
    return json::parse(output_of(node, {"status", "--json"}), nullptr, false);
  }

  json scan(int code = 0, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"scan", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = spoor("n0", arguments);
    EXPECT_EQ(result.code, code) << result.err << result.out;
    return json::parse(result.out, nullptr, false);
  }

  // The cycles of n0's last snapshot that may contain the path.
  json cycles_with(const std::string& path) const {
    const auto found =
        output_of("n0", {"inspect", "/media/n0-drive/.spoor/.tracker.bin", "--contains", path, "--json"});
    return json::parse(found, nullptr, false)["contains"][0]["cycles"];
  }

  // What changed since the last old scan, as the marks of the three nodes have it.
  void expect_changes_found(const json& scan) const {
    EXPECT_EQ(scan["gaps"], json::array());
    EXPECT_EQ(scan["partial"], false);
    EXPECT_EQ(scan["note"], nullptr);
    EXPECT_EQ(scan["dirs_changed"], 3);
    EXPECT_EQ(scan["dirs_new"], 0);
    EXPECT_EQ(scan["dirs_deleted"], 0);
    EXPECT_EQ(scan["missed_changes"], 0) << scan["missed"];
    EXPECT_EQ(output_of("n0", {"changes", "--since", "5"}), "bucket/c/y/\nbucket/e/x/\nbucket/f/x/\n");
    EXPECT_EQ(output_of("n0", {"changes", "--since", "5", "--files"}),
              "bucket/c/y/file\nbucket/e/x/file\nbucket/f/x/file\n");
    EXPECT_EQ(output_of("n0", {"changes", "--consumer", "copy"}),
              "bucket/a/x/\nbucket/b/y/\nbucket/c/\nbucket/c/y/\nbucket/d/x/\nbucket/e/x/\nbucket/f/x/\n")
        << "its position is kept";
    const json usage = json::parse(output_of("n0", {"usage", "--json"}));
    EXPECT_EQ((support::TreeTotals{usage["files"], usage["dirs"], usage["bytes"]}),
              support::walk_independently({machine_->file("n0-drive")}));
    EXPECT_EQ(json::parse(content(machine_->file("n0-data/usage.json")))["scan"], 6);
  }

 private:
  static std::string config_of(const std::string& node) {
    return std::string(OldMachine::mount_point) + "/" + node + ".json";
  }

 protected:
  std::unique_ptr<OldMachine> machine_;
  std::unique_ptr<Daemon> dns_;
  std::map<std::string, std::unique_ptr<Daemon>> daemons_;
};

INSTANTIATE_TEST_SUITE_P(From, UpgradeTest, testing::Values("1.0.0/clean", "1.0.0/crash"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace_if(
                               name, [](char each) { return each == '/' || each == '.'; }, '_');
                           return name;
                         });

TEST_P(UpgradeTest, Daemons_OfOldFiles_KeepInstancesCyclesAndDrives) {
  for (const std::string node : {"n0", "n1", "n2"}) {
    start(node);
    EXPECT_EQ(state_of(status(node)), state_of(reported("status-" + node))) << daemons_[node]->log();
    EXPECT_THAT(daemons_[node]->log(), Not(HasSubstr("may have been lost")));
  }
  json drives = json::parse(output_of("n0", {"drives", "--json"}));
  drives["drives"][0].erase("space");
  EXPECT_EQ(drives, reported("drives"));
}

TEST_P(UpgradeTest, Daemon_OtherDriveThanInOldFile_IsRefused) {
  std::ofstream(machine_->file("n0-drive/.spoor/drive.json")) << json{{"id", std::string(32, '1')}};
  start("n0");
  EXPECT_EQ(json::parse(output_of("n0", {"drives", "--json"}))["drives"][0]["ok"], false);
}

TEST_P(UpgradeTest, Daemon_OfOldJournal_WritesItsMarksToTheSnapshot) {
  const json current = json::array({reported("status-n0")["cycle"]["current"]});
  const bool is_in_journal_alone = std::string(GetParam()).ends_with("crash");
  EXPECT_EQ(cycles_with("bucket/f/x"), is_in_journal_alone ? json::array() : current);
  start("n0");
  EXPECT_EQ(stop("n0"), 0) << daemons_["n0"]->log();
  EXPECT_EQ(cycles_with("bucket/f/x"), current);
}

TEST_P(UpgradeTest, Queries_OfOldDatabases_PrintTheSame) {
  EXPECT_EQ(json::parse(output_of("n0", {"usage", "--depth", "9", "--sort", "name", "--json"})),
            reported("usage"));
  EXPECT_EQ(json::parse(output_of("n0", {"scans", "--json"})), reported("scans"));
  EXPECT_EQ(output_of("n0", {"changes", "--consumer", "copy", "--json"}), content(report("changes")));
  EXPECT_EQ(output_of("n0", {"changes", "--consumer", "copy", "--files", "--json"}),
            content(report("files")));
  const json consumers = json::parse(output_of("n0", {"changes", "--consumers", "--json"}));
  ASSERT_EQ(consumers["consumers"].size(), 1U) << consumers;
  EXPECT_EQ(consumers["consumers"][0]["consumer"], "copy");
  EXPECT_EQ(consumers["consumers"][0]["scan"], 1);
  EXPECT_EQ(consumers["consumers"][0]["behind"], 4);
}

TEST_P(UpgradeTest, Scan_OfOldDatabase_ReadsMarkedDirectoriesAlone) {
  start_cluster({"n0", "n1", "n2"});
  EXPECT_THAT(output_of("n0", {"mark", "bucket/f/x"}), HasSubstr("1 marked"));
  // The audit reads all others, and finds their signatures unchanged.
  const json incremental = scan(0, {"--set", "scan.audit_period=1s"});
  EXPECT_EQ(incremental["scan"], 6);
  EXPECT_EQ(incremental["mode"], "incremental") << incremental["reason"];
  // bucket/c/y, bucket/e/x, bucket/f/x, and on the way to them five, the top and the bucket included.
  EXPECT_EQ(incremental["dirs_walked"], 8);
  EXPECT_EQ(incremental["dirs_skipped"], 12);
  expect_changes_found(incremental);
  const json idle = scan();
  EXPECT_EQ(idle["mode"], "incremental") << idle["reason"];
  EXPECT_EQ(idle["gaps"], json::array());
  EXPECT_EQ(idle["dirs_changed"], 0);
}

TEST_P(UpgradeTest, DepartedMember_OfOldFile_IsStillRead) {
  start_cluster({"n0", "n1"});
  const json partial = scan(3);
  EXPECT_EQ(partial["mode"], "incremental") << partial["reason"];
  EXPECT_EQ(partial["gaps"], json::array());
  ASSERT_EQ(partial["peers"].size(), 3U) << partial;
  EXPECT_EQ(partial["peers"][0]["url"], "http://127.0.0.1:7422");
  EXPECT_EQ(partial["peers"][0]["ok"], false);
}

TEST_P(UpgradeTest, DepartedMember_OfOldFile_CanBeEvicted) {
  start_cluster({"n0", "n1"});
  EXPECT_EQ(scan(0, {"--set", "peers.forget_after=0s"})["reason"], "peer 'n2' is no longer among the peers");
}

}  // namespace
}  // namespace spoor::cluster
