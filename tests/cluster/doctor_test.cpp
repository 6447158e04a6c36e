// `spoor doctor` on real nodes: silent on healthy ones; with one fault at a time, exactly that problem, and a
// fix that works.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "base/file_system.h"
#include "peer/gather/cycle_frame.h"
#include "peer/http/http_transport.h"
#include "peer/http/watch_report.h"
#include "tests/cluster/cluster.h"
#include "tests/faults/mounts.h"
#include "tests/support/canned_server.h"
#include "tests/support/certificates.h"
#include "tests/support/file_times.h"
#include "tests/support/loopback.h"
#include "tracker/paths/namespace_rules.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using Options = std::vector<std::string>;

constexpr int valid_days = 90;

// What is expected of `spoor doctor` on the nodes of a cluster.
class Doctor {
 public:
  explicit Doctor(Cluster& cluster) : cluster_(cluster) {}

  json examine(const Cluster::Node& node, Options options = {}) {
    options.insert(options.begin(), {"doctor", "--json"});
    const auto result = cluster_.spoor(node, options);
    EXPECT_EQ(result.err, "");
    json examination = json::parse(result.out, nullptr, false);
    EXPECT_EQ(result.code, examination["problems"].empty() ? 0 : 1);
    return examination;
  }

  void expect_silence(const Cluster::Node& node, Options options = {}) {
    options.insert(options.begin(), "doctor");
    const auto result = cluster_.spoor(node, options);
    EXPECT_EQ(result.out + result.err, "no problem found\n");
    EXPECT_EQ(result.code, 0);
  }

  // The only problem, which this check finds.
  json find(const Cluster::Node& node, const std::string& check, const std::string& what,
            const Options& options = {}) {
    const json examination = examine(node, options);
    EXPECT_EQ(examination["problems"].size(), 1U) << examination["problems"].dump(1);
    if (examination["problems"].empty()) return {{"fix", "false"}};
    json problem = examination["problems"][0];
    EXPECT_EQ(problem["check"], check) << problem;
    EXPECT_THAT(problem["what"].get<std::string>(), HasSubstr(what));
    EXPECT_NE(problem["why"], "");
    return problem;
  }

  // Runs the fix of this only problem as it is printed, and expects that nothing is wrong any more.
  void fix(const Cluster::Node& node, const std::string& check, const std::string& what,
           const Options& options = {}) {
    const auto command = find(node, check, what, options)["fix"].get<std::string>();
    const auto path = fs::path(SPOOR).parent_path().native();
    const auto done =
        support::run_command({"env", "PATH=" + path + ":/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-c", command});
    EXPECT_EQ(done.code, 0) << command << '\n' << done.err;
    expect_silence(node, options);
  }

 private:
  Cluster& cluster_;
};

class DoctorTest : public testing::Test {
 protected:
  explicit DoctorTest(std::size_t nodes = 1, std::size_t drives = 1) : cluster_(nodes, drives) {
    for (const auto& node : cluster_.nodes()) cluster_.scan(node);
  }

  Cluster::Node& node(std::size_t index = 0) { return cluster_.nodes()[index]; }
  fs::path data_dir() { return cluster_.data_dir_of(node()); }

  void start_with(Cluster::Node& node, const Options& settings) {
    cluster_.stop(node);
    Options command{SPOORD, "--config", cluster_.config_of(node).native()};
    command.insert(command.end(), settings.begin(), settings.end());
    node.daemon = std::make_unique<support::Daemon>(command);
    ASSERT_FALSE(node.daemon->wait_for("listening on unix:").empty()) << node.daemon->log();
  }

  void restart(Cluster::Node& node) {
    cluster_.stop(node);
    cluster_.start(node);
  }

  peer::HttpResponse request(const std::string& method, const std::string& target,
                             const std::string& body = {}) {
    peer::HttpTransport transport({.timeout = std::chrono::minutes(2)});
    return peer::exchange(transport, {{{}, 0, cluster_.socket_of(node()).native()}, method, target, {}, body})
        .value();
  }

  Cluster cluster_;
  Doctor doctor_{cluster_};
};

// Two drives.
class DoctorDrivesTest : public DoctorTest {
 protected:
  DoctorDrivesTest() : DoctorTest(1, 2) {}
  fs::path identity() { return node().drives[1] / ".spoor/drive.json"; }
};

// Three nodes.
class DoctorClusterTest : public DoctorTest {
 protected:
  DoctorClusterTest() : DoctorTest(3) {}
};

TEST_F(DoctorTest, HealthyNode_IsSilent) {
  doctor_.expect_silence(node());
  const json examination = doctor_.examine(node());
  EXPECT_EQ(examination["checks"].size(), 24U);
  EXPECT_EQ(examination["not_checked"], json::array());
}

TEST_F(DoctorTest, UnusableConfigurationOrCommandLine_ExitsWith2) {
  EXPECT_EQ(cluster_.spoor(node(), {"doctor", "--set", "tracker.items=none"}).code, 2);
  EXPECT_EQ(cluster_.spoor(node(), {"doctor", "extra"}).code, 2);
}

TEST_F(DoctorDrivesTest, ForeignOrMissingIdentity_IsAccepted) {
  std::ofstream(identity()) << R"({"id":"00112233445566778899aabbccddeeff"})";
  doctor_.fix(node(), "drives", "has the identity of another drive");
  fs::remove(identity());
  doctor_.fix(node(), "drives", "has no identity");
}

TEST_F(DoctorDrivesTest, MissingDrive_IsFound_WithAndWithoutTheDaemon) {
  const fs::path aside = node().drives[1].native() + "-aside";
  fs::rename(node().drives[1], aside);
  EXPECT_THAT(doctor_.find(node(), "drives", "does not exist")["fix"].get<std::string>(),
              HasSubstr("mkdir -p"));
  cluster_.stop(node());
  const json examination = doctor_.examine(node());
  EXPECT_EQ(examination["problems"].size(), 2U) << examination["problems"].dump(1);
  EXPECT_EQ(examination["problems"][0]["check"], "drives");
  EXPECT_EQ(examination["problems"][1]["check"], "daemon");
  fs::rename(aside, node().drives[1]);
  cluster_.start(node());
  doctor_.expect_silence(node());
}

TEST_F(DoctorDrivesTest, DriveThatIsAnother_OverlapsAndIsForeign) {
  const fs::path aside = node().drives[1].native() + "-aside";
  fs::rename(node().drives[1], aside);
  fs::create_directory_symlink(node().drives[0], node().drives[1]);
  const json examination = doctor_.examine(node());
  ASSERT_EQ(examination["problems"].size(), 2U) << examination["problems"].dump(1);
  EXPECT_EQ(examination["problems"][0]["check"], "configuration");
  EXPECT_EQ(examination["problems"][1]["check"], "drives");
  fs::remove(node().drives[1]);
  fs::rename(aside, node().drives[1]);
  doctor_.expect_silence(node());
}

TEST_F(DoctorTest, DirectoryOfAnotherUser_IsGivenBack) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can change the owner of a file";
  constexpr uid_t nobody = 65'534;
  ASSERT_EQ(::chown((node().drives[0] / ".spoor").c_str(), nobody, nobody), 0);
  doctor_.fix(node(), "permissions", "belongs to user 65534, and the daemon runs as user 0");
  ASSERT_EQ(::chown((data_dir() / "scan.lock").c_str(), nobody, nobody), 0);
  doctor_.fix(node(), "permissions", "scan.lock belongs to user 65534");
}

TEST_F(DoctorTest, WhatIsOpenToAllUsers_IsClosed_AndAnUnusableTokenFound) {
  ASSERT_EQ(::chmod(data_dir().c_str(), 0755), 0);
  doctor_.fix(node(), "permissions", "is open to all users (mode 0755)");
  const fs::path token = data_dir().parent_path() / "token";
  const Options options{"--set", "peers.token_file=" + token.native()};
  std::ofstream(token) << "short\n";
  ASSERT_EQ(::chmod(token.c_str(), 0600), 0);
  doctor_.find(node(), "configuration", "peers.token_file: the token in", options);
  std::ofstream(token) << "0123456789abcdef\n";
  ASSERT_EQ(::chmod(token.c_str(), 0644), 0);
  doctor_.fix(node(), "secrets", "open to all users", options);
}

TEST_F(DoctorTest, Certificate_ExpiredOrSoon_IsReported) {
  const fs::path folder = data_dir().parent_path();
  const support::Certificates authority(folder, "authority", valid_days);
  const json tls{
      {"ca", authority.ca()}, {"certificate", authority.certificate("n0")}, {"key", authority.key("n0")}};
  const Options options{"--set", "peers.tls=" + tls.dump()};
  authority.issue("n0", "127.0.0.1", -1);
  EXPECT_EQ(doctor_.find(node(), "tls", "(peers.tls.certificate) has expired", options)["severity"], "error");
  authority.issue("n0", "127.0.0.1", 20);
  EXPECT_EQ(doctor_.find(node(), "tls", "(peers.tls.certificate) expires at", options)["severity"],
            "warning");
  authority.issue("n0", "127.0.0.1", valid_days);
  doctor_.expect_silence(node(), options);
}

TEST_F(DoctorTest, DaemonDownOrHanging_IsTheOnlyProblem) {
  node().daemon->freeze();
  doctor_.find(node(), "daemon", "no answer in time");
  node().daemon->signal(SIGCONT);
  doctor_.expect_silence(node());
  cluster_.kill_hard(node());
  const auto problem = doctor_.find(node(), "daemon", "does not respond at unix:");
  EXPECT_THAT(problem["fix"].get<std::string>(), HasSubstr("systemctl restart spoord"));
  cluster_.start(node());
  doctor_.expect_silence(node());
}

TEST_F(DoctorTest, JournalThatCannotBeWritten_IsReported) {
  fs::rename(data_dir() / "journal", data_dir() / "aside");
  std::ofstream(data_dir() / "journal") << "not a directory";
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "bucket/a"}).code, 0);
  request("POST", "/v1/snapshot");  // begins another file of the journal
  doctor_.find(node(), "journal", "the journal can't be written");
  fs::remove(data_dir() / "journal");
  fs::rename(data_dir() / "aside", data_dir() / "journal");
  ASSERT_EQ(request("POST", "/v1/snapshot").status, 200U);
  doctor_.expect_silence(node());
}

TEST_F(DoctorTest, SaturatedCycle_EndsWithAScan) {
  cluster_.configure(node(), [](json& config) {
    config["tracker"] = {{"items", 100}, {"history", 1}, {"memory_limit", "4KiB"}};
  });
  std::string paths;
  for (int i = 0; i < 20'000; ++i) paths += "d" + std::to_string(i) + '\n';
  ASSERT_EQ(cluster_.spoor(node(), {"mark"}, paths).code, 0);
  doctor_.fix(node(), "filters", "is saturated");
}

TEST_F(DoctorTest, ScanDatabaseThatIsDamagedOrMissing_IsMadeAnew) {
  fs::remove(data_dir() / "scan.db-wal");  // it has pages that can be read
  std::ofstream(data_dir() / "scan.db") << std::string(100'000, 'x');
  doctor_.fix(node(), "scan", "scan.db can't be read");
  for (const char* name : {"scan.db", "scan.db-wal", "scan.db-shm"}) fs::remove(data_dir() / name);
  doctor_.fix(node(), "scan", "never scanned");
}

TEST_F(DoctorTest, Watch_NotRunningOrWithAGap_IsReported) {
  const Options options{"--set", "watch.drives=all"};
  doctor_.find(node(), "watch", "spoord does not know that", options);
  start_with(node(), options);
  doctor_.find(node(), "watch", "spoor-watch has not reported", options);

  const base::SystemClock clock;
  peer::WatchedDrive drive{.drive = node().drives[0], .is_watched = true};
  const auto report = [&] { request("POST", "/v1/watch", peer::watched_drive_json(drive).dump()); };
  report();
  doctor_.expect_silence(node(), options);
  drive.is_watched = false;
  drive.error = "the kernel reports no changes there";
  report();
  doctor_.find(node(), "watch", ": the kernel reports no changes there", options);
  drive.is_watched = true;
  drive.error.clear();
  drive.gap = {"gap", "the queue was full",
               clock.wall_now() + std::chrono::seconds(5)};  // after the last scan
  report();
  const auto problem = doctor_.find(node(), "watch", "the queue was full", options);
  EXPECT_EQ(problem["severity"], "warning");
  EXPECT_THAT(problem["fix"].get<std::string>(), testing::EndsWith(" scan"));
  drive.gap.at = clock.wall_now() - std::chrono::hours(1);  // before it
  report();
  doctor_.expect_silence(node(), options);
}

TEST_F(DoctorTest, OtherUser_ChecksWhatItCan) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can run a program as another user";
  const fs::path folder = data_dir().parent_path();
  const fs::path program = folder / "spoor";
  fs::copy_file(SPOOR, program);
  for (const fs::path& each : {folder, program, cluster_.config_of(node())})
    ASSERT_EQ(::chmod(each.c_str(), 0755), 0);
  const auto result = support::run_command({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                            program, "--config", cluster_.config_of(node()), "doctor"});
  EXPECT_EQ(result.code, 3) << result.err;
  EXPECT_THAT(result.out, HasSubstr("not checked: daemon: unix:"));
  EXPECT_THAT(result.out, HasSubstr("not checked: permissions: "));
  EXPECT_THAT(result.out, testing::EndsWith("\nno problem found, but 11 of 24 checks did not run\n"));
}

TEST_F(DoctorClusterTest, PeerDownOrHanging_IsReported) {
  cluster_.stop(node(1));
  doctor_.find(node(), "peers", "n1.sock");
  cluster_.start(node(1));
  doctor_.expect_silence(node());
  node(2).daemon->freeze();
  doctor_.find(node(), "peers", "no answer in time");
  node(2).daemon->signal(SIGCONT);
  doctor_.expect_silence(node());
}

TEST_F(DoctorClusterTest, PeerWithOtherSettings_IsReported) {
  for (const auto& each : cluster_.nodes()) doctor_.expect_silence(each);
  start_with(node(2), {"--set", "node.cluster=other"});
  doctor_.find(node(), "peers", "belongs to another cluster");
  restart(node(2));
  start_with(node(2), {"--set", R"(namespace.exclude=["*.tmp"])"});
  doctor_.find(node(), "rules", "n2 (unix:");
  start_with(node(2), {"--set", "node.name=n1"});
  doctor_.find(node(), "names", "have one name");
  EXPECT_THAT(doctor_.examine(node(1))["problems"][0]["what"].get<std::string>(), HasSubstr("and this node"));
  restart(node(2));
  doctor_.expect_silence(node());
}

TEST_F(DoctorClusterTest, ScansThatStayPartial_AreReported) {
  cluster_.stop(node(1));
  for (int i = 0; i < 3; ++i) cluster_.scan(node(), 3);
  cluster_.start(node(1));
  doctor_.fix(node(), "scan", "the last 3 scans were partial");
}

// A peer of another version, whose clock is behind.
TEST_F(DoctorTest, PeerWithAnotherVersionAndClock_IsReported) {
  std::atomic<int> days_ago{0};
  std::string version = "0.0.1";
  peer::CycleFrame frame{{"test", "canned"}, 7, tracker::NamespaceRules().digest(), {}};
  frame.answer.instance = tracker::InstanceId::random();
  frame.answer.current = {1};
  const support::CannedServer canned([&](const std::string& request, const auto& connection) {
    const bool is_probe = request.starts_with("POST");
    const std::string body = is_probe ? peer::encode_cycle_frame(frame) : json{{"version", version}}.dump();
    const auto date = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() -
                                                           std::chrono::hours(24 * days_ago));
    std::array<char, 64> text{};
    std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", std::gmtime(&date));
    connection.send("HTTP/1.1 200 OK\r\nDate: " + std::string(text.data()) +
                    "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                    body);
  });
  start_with(node(), {"--set", "peers.static=" + json::array({canned.url()}).dump()});
  doctor_.find(node(), "versions", "runs version 0.0.1");
  version = json::parse(request("GET", "/v1/status").body)["version"];
  doctor_.expect_silence(node());
  days_ago = 2;
  doctor_.find(node(), "clock", "the clock of canned (http://");
}

// Peers over TLS, with certificates on both ends.
TEST_F(DoctorClusterTest, NodesWithTls_AreSilent_AndAWrongAuthorityIsReported) {
  const fs::path folder = data_dir().parent_path();
  const support::Certificates authority(folder, "authority", valid_days);
  for (const char* name : {"n0", "n1"}) authority.issue(name, support::own_loopback(), valid_days);
  cluster_.configure(node(1), [&](json& config) {
    config["listen"][0].erase("insecure");
    config["listen"][0]["tls"] = {{"certificate", authority.certificate("n1")},
                                  {"key", authority.key("n1")},
                                  {"client_ca", authority.ca()}};
    config["auth"]["certificates"] = json::array({{{"name", "n0"}, {"role", "peer"}}});
  });
  const std::string scheme = "https://" + support::own_loopback() + ':';
  const std::string url = scheme + node(1).daemon->wait_for("listening on " + scheme);
  const auto set_ca = [&](const fs::path& ca) {
    cluster_.configure(node(), [&](json& config) {
      config["peers"]["static"] = json::array({url});
      config["peers"]["tls"] = {
          {"ca", ca}, {"certificate", authority.certificate("n0")}, {"key", authority.key("n0")}};
    });
  };
  set_ca(authority.ca());
  doctor_.expect_silence(node());
  doctor_.expect_silence(node(1));
  const support::Certificates other(folder, "other", valid_days);
  set_ca(other.ca());
  doctor_.find(node(), "peers", "refuses the certificate");
}

// With file systems of its own.
class DoctorMountTest : public DoctorDrivesTest {
 protected:
  static void SetUpTestSuite() { faults::why_no_mounts(); }  // before the daemon starts
  void SetUp() override {
    if (auto why = faults::why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(DoctorMountTest, DriveThatIsAlmostFull_IsReported) {
  cluster_.stop(node());
  std::stringstream identity_text;
  identity_text << std::ifstream(identity()).rdbuf();
  faults::MountPoint small(node().drives[1]);
  small.mount_tmpfs("8m");
  fs::create_directory(identity().parent_path());
  fs::permissions(identity().parent_path(), fs::perms(0750));
  std::ofstream(identity()) << identity_text.str();
  cluster_.start(node());
  EXPECT_EQ(doctor_.find(node(), "space", "-drive1 has ")["severity"], "warning");
  cluster_.stop(node());
  small.unmount();
  cluster_.start(node());
  doctor_.expect_silence(node());
}

TEST_F(DoctorMountTest, DriveThatHangs_IsReported) {
  if (!faults::HangingDisk::is_possible()) GTEST_SKIP() << "the kernel has no FUSE";
  {
    const faults::HangingDisk hanging(node().drives[1]);
    doctor_.find(node(), "drives", "does not respond: it hangs");
  }
  doctor_.expect_silence(node());
}

}  // namespace
}  // namespace spoor::cluster
