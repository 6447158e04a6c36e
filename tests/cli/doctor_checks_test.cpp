// Facts in, problems out.
#include "cli/doctor_checks.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <functional>
#include <map>

#include "config/derived.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;
using std::chrono::hours;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint64_t mebibyte = 1U << 20U;
const base::WallTime now = *base::parse_iso_time("2026-11-21T12:00:00Z");

std::string ago(seconds time) { return base::iso_time(now - time); }

ordered_json scan(unsigned number, seconds ended_ago, bool partial = false) {
  return {{"scan", number},
          {"cycle", number},
          {"mode", "incremental"},
          {"reason", ""},
          {"partial", partial},
          {"started_at", ago(ended_ago + seconds(1))},
          {"duration_s", 1.0},
          {"dirs_walked", 1},
          {"dirs_skipped", 0},
          {"dirs_changed", 0},
          {"dirs_new", 0},
          {"dirs_deleted", 0},
          {"false_positives", 1},
          {"files", 0},
          {"bytes", 0},
          {"errors", 0},
          {"audited", 0},
          {"missed_changes", 0},
          {"false_positive_rate", 1}};
}

PeerFacts peer(const std::string& node, std::uint64_t run) {
  PeerFacts facts{.url = "http://10.0.0.2:7420", .node = node};
  facts.run = run;
  facts.rules_digest = 7;
  facts.version = "1.0.0";
  facts.clock_ahead = seconds(1);
  return facts;
}

// A node on which nothing is wrong. The daemon's user is 100.
Facts healthy() {
  const FileFacts directory{.is_directory = true, .user = 100, .mode = 0750};
  const FileFacts file{.user = 100, .mode = 0640};
  const SpaceFacts space{.bytes_free = 1ULL << 40U, .inodes = 1'000'000, .inodes_free = 900'000};
  Facts facts;
  facts.config.node = {.name = "n1", .cluster = "c", .data_dir = "/data"};
  facts.config.drives = {"/mnt/disk 1"};
  facts.config.watch.all_drives = true;
  facts.config_file = "/etc/spoor/spoor.json";
  facts.config_path = file;
  facts.spoor = "spoor";
  facts.now = now;
  facts.own_rules_digest = 7;
  facts.is_daemon_user = true;
  facts.overlaps.emplace();
  facts.secrets = {{"peers.token_file", "/etc/spoor/token", file}};
  facts.certificates = {{"peers.tls.certificate", "/etc/spoor/n1.pem", "", now + hours(24 * 90)}};
  facts.data_dir = DataDirFacts{
      .directory = directory, .space = space, .files = {{"instance.json", file}, {"scan.db", file}}};
  facts.drives = {DriveFacts{
      .root = directory, .spoor_directory = directory, .space = space, .match = DriveMatch::known}};
  facts.daemon.endpoint = "unix:/run/spoor/spoor.sock";
  const auto answer = [](const ordered_json& body) { return Answer{.status = 200, .body = body}; };
  facts.daemon.ready = answer({{"status", "ready"}});
  facts.daemon.drives =
      answer({{"drives", {{{"path", "/mnt/disk 1"}, {"ok", true}, {"error", nullptr}, {"id", "5d"}}}}});
  facts.daemon.scans =
      answer({{"scans", {scan(9, seconds(600)), scan(8, seconds(1500)), scan(7, seconds(2400))}}});
  facts.daemon.status =
      answer({{"node", "n1"},
              {"cluster", "c"},
              {"version", "1.0.0"},
              {"cycles", {{{"cycle", 9}, {"saturated", false}}}},
              {"filters", {{"spans_dropped", 0}}},
              {"snapshot", {{"saved_at", ago(seconds(100))}, {"bytes", 1000}}},
              {"journal", {{"bytes", 200}, {"ok", true}, {"error", nullptr}}},
              {"membership",
               {{"etcd", {{"ok", true}, {"error", nullptr}, {"registered", true}}},
                {"dns", {{{"source", "srv:_spoor._tcp.example"}, {"ok", true}, {"error", nullptr}}}}}},
              {"watch",
               {{"reported_at", ago(seconds(5))},
                {"drives",
                 {{{"path", "/mnt/disk 1"},
                   {"ok", true},
                   {"error", nullptr},
                   {"failing_since", nullptr},
                   {"last_gap", {{"at", ago(hours(2))}, {"reason", "it started"}}}}}}}}});
  facts.own_run = 1;
  facts.own_daemon_rules = 7;
  facts.peers = {peer("n2", 2)};
  return facts;
}

// The only problem after this change of a healthy node.
Problem problem_after(const std::function<void(Facts&)>& change) {
  Facts facts = healthy();
  change(facts);
  const Examination examination = examine(facts);
  EXPECT_EQ(examination.problems.size(), 1U) << examination_text(examination);
  return examination.problems.empty() ? Problem() : examination.problems[0];
}

void expect_silence_after(const std::function<void(Facts&)>& change) {
  Facts facts = healthy();
  change(facts);
  const Examination examination = examine(facts);
  EXPECT_EQ(examination_text(examination), "no problem found\n");
}

ordered_json& status(Facts& facts) { return facts.daemon.status.body; }

void expect_problem(const Problem& problem, const std::string& check, Severity severity,
                    const std::string& what, const std::string& fix) {
  EXPECT_EQ(problem.check, check);
  EXPECT_EQ(problem.severity, severity) << problem.what;
  EXPECT_THAT(problem.what, HasSubstr(what));
  EXPECT_THAT(problem.fix, HasSubstr(fix));
  EXPECT_THAT(problem.why, Not(IsEmpty()));
}

TEST(DoctorChecksTest, HealthyNode_HasNoProblem) {
  const Examination examination = examine(healthy());
  EXPECT_EQ(examination_text(examination), "no problem found\n");
  EXPECT_EQ(examination.checks.size(), 24U);
}

TEST(DoctorChecksTest, Configuration_OverlapOrUnusableSecret_IsAnError) {
  const auto overlap =
      problem_after([](Facts& facts) { facts.overlaps = std::vector<std::string>{"drives: /a is /b"}; });
  expect_problem(overlap, "configuration", Severity::error, "/a is /b",
                 "correct /etc/spoor/spoor.json, then");
  const auto token =
      problem_after([](Facts& facts) { facts.config_errors = {"peers.token_file: too short"}; });
  expect_problem(token, "configuration", Severity::error, "too short", "systemctl restart spoord");
}

TEST(DoctorChecksTest, Permissions_OtherOwnerOrOpenToAll_IsReported) {
  const auto data = problem_after([](Facts& facts) { facts.data_dir->directory.user = 0; });
  expect_problem(data, "permissions", Severity::error,
                 "/data belongs to user 0, and the daemon runs as user 100",
                 "chown -R --reference=/data/instance.json /data");
  const auto drive = problem_after([](Facts& facts) { facts.drives[0]->spoor_directory.user = 0; });
  expect_problem(drive, "permissions", Severity::error, "/mnt/disk 1/.spoor", "'/mnt/disk 1/.spoor'");
  const auto open = problem_after([](Facts& facts) { facts.drives[0]->spoor_directory.mode = 0755; });
  expect_problem(open, "permissions", Severity::warning, "mode 0755", "chmod o= '/mnt/disk 1/.spoor'");
  const auto lock = problem_after([](Facts& facts) { facts.data_dir->files["scan.lock"] = {.user = 0}; });
  expect_problem(lock, "permissions", Severity::error, "/data/scan.lock belongs to user 0",
                 "/data/scan.lock");
  expect_silence_after([](Facts& facts) { facts.data_dir->files["usage.json"] = {.user = 0}; });
}

TEST(DoctorChecksTest, ConfigurationThatAllUsersCanWrite_IsAnError) {
  for (const std::uint32_t mode : {0666U, 0642U, 0777U}) {
    const auto open = problem_after([&](Facts& facts) { facts.config_path = {.user = 0, .mode = mode}; });
    expect_problem(open, "permissions", Severity::error, "all users can write /etc/spoor/spoor.json (mode 0",
                   "chmod o-w /etc/spoor/spoor.json");
  }
  expect_silence_after([](Facts& facts) { facts.config_path = {.user = 0, .mode = 0644}; });
}

TEST(DoctorChecksTest, DriveOfAUserOtherThanRootAndTheDaemons_IsAWarning) {
  const auto problem = problem_after([](Facts& facts) { facts.drives[0]->root.user = 1000; });
  expect_problem(problem, "permissions", Severity::warning,
                 "/mnt/disk 1 belongs to user 1000, who is neither root nor the daemon's user 100",
                 "chown root '/mnt/disk 1' && chmod g+w,+t '/mnt/disk 1'");
  expect_silence_after([](Facts& facts) { facts.drives[0]->root.user = 0; });
}

TEST(DoctorChecksTest, ConfigurationThatTheDaemonCannotRead_IsAnError) {
  const auto unreadable = problem_after([](Facts& facts) { facts.config_path = {.user = 0, .mode = 0600}; });
  expect_problem(unreadable, "permissions", Severity::error, "only its owner can read /etc/spoor/spoor.json",
                 "chgrp spoor /etc/spoor/spoor.json && chmod g+r");
  expect_silence_after([](Facts& facts) { facts.config_path = {.user = 0, .mode = 0640}; });
  expect_silence_after([](Facts& facts) { facts.config_path = {.user = 100, .mode = 0600}; });
}

TEST(DoctorChecksTest, Publish_MissingOldOrFailing_IsAnError) {
  const auto with = [](const std::optional<scanner::PublishRecord>& record) {
    return problem_after([&](Facts& facts) {
      facts.config.publish.sinks = {{.name = "bus", .url = "nats://h"}};
      facts.publish = record;
    });
  };
  expect_problem(with(std::nullopt), "publish", Severity::error, "has never run",
                 "systemctl enable --now spoor-publish");
  expect_problem(with(scanner::PublishRecord{.written_at = now - seconds(61)}), "publish", Severity::error,
                 "does not run", "systemctl restart spoor-publish");
  expect_problem(
      with(scanner::PublishRecord{.written_at = now, .sinks = {{.name = "bus", .error = "no\nroute"}}}),
      "publish", Severity::error, "the sink 'bus' fails: no\\x0aroute", "journalctl -u spoor-publish");
  expect_problem(with(scanner::PublishRecord{.written_at = now, .sinks = {{.name = "old"}}}), "publish",
                 Severity::error, "the sink 'bus' is in publish.sinks", "systemctl restart spoor-publish");
  expect_silence_after([](Facts& facts) {
    facts.config.publish.sinks = {{.name = "bus", .url = "nats://h"}};
    facts.publish = scanner::PublishRecord{.written_at = now, .sinks = {{.name = "bus"}}};
  });
}

TEST(DoctorChecksTest, FilesOfAnotherUser_AreOneProblem_AndNoReasonForARebuild) {
  const auto problem = problem_after([](Facts& facts) {
    facts.data_dir->files["scan.db"] = {.user = 0};
    facts.data_dir->files["scan.db-wal"] = {.user = 0};
    facts.daemon.scans = {.status = 500, .error = "unable to open database file"};
  });
  expect_problem(problem, "permissions", Severity::error,
                 "/data/scan.db, /data/scan.db-wal belong to user 0, and the daemon runs as user 100",
                 "--reference=/data/instance.json /data/scan.db /data/scan.db-wal");
}

TEST(DoctorChecksTest, DataDirGivenToRoot_IsGivenBackToTheServiceUser) {
  const auto problem = problem_after([](Facts& facts) {
    facts.service_user_id = 100;
    facts.data_dir->directory.user = 0;
    for (auto& [name, file] : facts.data_dir->files) file.user = 0;
  });
  expect_problem(problem, "permissions", Severity::error,
                 "/data belongs to user 0, and the daemon runs as user 100", "chown -R spoor: /data");
}

TEST(DoctorChecksTest, DaemonOfRoot_KeepsItsFiles_WhateverUserTheServiceHas) {
  expect_silence_after([](Facts& facts) {
    facts.service_user_id = 100;
    facts.data_dir->directory.user = 0;
    for (auto& [name, file] : facts.data_dir->files) file.user = 0;
    facts.drives[0]->root.user = 0;
    facts.drives[0]->spoor_directory.user = 0;
  });
}

TEST(DoctorChecksTest, Secret_OpenToAll_IsAnError) {
  const auto problem = problem_after([](Facts& facts) { facts.secrets[0].file.mode = 0644; });
  expect_problem(problem, "secrets", Severity::error, "(peers.token_file) is open to all users",
                 "chmod o= /etc/spoor/token");
}

TEST(DoctorChecksTest, Space_Low_IsAWarning_AndTooLow_AnError) {
  const auto low = problem_after([](Facts& facts) { facts.data_dir->space.bytes_free = 400 * mebibyte; });
  expect_problem(low, "space", Severity::warning, "/data has 400 MiB free", "du -xh -d 2 /data");
  const auto full = problem_after([](Facts& facts) { facts.data_dir->space.bytes_free = mebibyte; });
  EXPECT_EQ(full.severity, Severity::error);
  const auto inodes = problem_after([](Facts& facts) { facts.drives[0]->space.inodes_free = 9; });
  expect_problem(inodes, "space", Severity::error, "9 inodes", "du -x --inodes");
  expect_silence_after(
      [](Facts& facts) { facts.drives[0]->space = {.bytes_free = 1ULL << 40U, .inodes = 0}; });
  // A snapshot has to fit twice.
  const auto large = problem_after([](Facts& facts) {
    status(facts)["snapshot"]["bytes"] = 100 * mebibyte;
    facts.drives[0]->space.bytes_free = 150 * mebibyte;
  });
  expect_problem(large, "space", Severity::error, "/mnt/disk 1 has 150 MiB free", "du");
}

TEST(DoctorChecksTest, Certificate_ExpiredOrWithinAMonthOrUnusable_IsReported) {
  const auto soon =
      problem_after([](Facts& facts) { facts.certificates[0].valid_until = now + hours(24 * 29); });
  expect_problem(soon, "tls", Severity::warning, "expires at 2026-12-20",
                 "renew /etc/spoor/n1.pem (spoor setup --renew");
  const auto expired =
      problem_after([](Facts& facts) { facts.certificates[0].valid_until = now - seconds(1); });
  expect_problem(expired, "tls", Severity::error, "has expired", "systemctl reload spoord");
  const auto unusable = problem_after([](Facts& facts) {
    facts.certificates[0].valid_until.reset();
    facts.certificates[0].error = "cannot use the key";
  });
  expect_problem(unusable, "tls", Severity::error, "cannot use the key", "renew");
}

TEST(DoctorChecksTest, Drive_MissingOrForeign_NamesTheCommand) {
  const auto fail = [](Facts& facts) {
    facts.daemon.drives.body["drives"][0]["ok"] = false;
    facts.daemon.drives.body["drives"][0]["error"] = "Input/output error";
  };
  const auto foreign = problem_after([&](Facts& facts) {
    fail(facts);
    facts.drives[0]->match = DriveMatch::foreign;
  });
  expect_problem(foreign, "drives", Severity::error, "identity of another drive: the disk is not mounted",
                 "spoor drives accept '/mnt/disk 1'  # ONLY if this directory replaces it");
  const auto swapped = problem_after([&](Facts& facts) {
    fail(facts);
    facts.drives[0]->match = DriveMatch::foreign;
    facts.drives[0]->is_mount_point = true;
  });
  expect_problem(swapped, "drives", Severity::error, "the disk was replaced or swapped",
                 "spoor drives accept '/mnt/disk 1'  # if this is the disk");
  const auto unmounted = problem_after([&](Facts& facts) {
    fail(facts);
    facts.drives[0]->match = DriveMatch::missing;
    facts.drives[0]->is_in_fstab = true;
  });
  expect_problem(unmounted, "drives", Severity::error, "is not mounted", "mount '/mnt/disk 1'");
  const auto emptied = problem_after([&](Facts& facts) {
    fail(facts);
    facts.drives[0]->match = DriveMatch::missing;
  });
  expect_problem(emptied, "drives", Severity::error, "has no identity",
                 "spoor drives accept '/mnt/disk 1'  # ONLY if");
  const auto fresh = problem_after([&](Facts& facts) {
    fail(facts);
    facts.drives[0]->match = DriveMatch::missing;
    facts.drives[0]->is_mount_point = true;
    facts.drives[0]->spoor_directory = {.error = ENOENT};
  });
  expect_problem(fresh, "drives", Severity::error, "has no identity",
                 "mkdir -m 0750 '/mnt/disk 1/.spoor' && chown -R --reference=/data/instance.json "
                 "'/mnt/disk 1/.spoor' && spoor drives accept '/mnt/disk 1'");
  const auto broken = problem_after(fail);
  expect_problem(broken, "drives", Severity::error, "Input/output error", "journalctl -k");
  const auto absent = problem_after([](Facts& facts) {
    facts.daemon.drives = {.error = "none"};
    facts.drives[0]->root = {.error = ENOENT};
  });
  expect_problem(absent, "drives", Severity::error, "does not exist",
                 "correct the path in /etc/spoor/spoor.json; or mkdir -p");
}

TEST(DoctorChecksTest, Drive_Hanging_IsAnError) {
  const auto problem = problem_after([](Facts& facts) { facts.drives[0].reset(); });
  expect_problem(problem, "drives", Severity::error, "hangs", "journalctl -k");
}

TEST(DoctorChecksTest, Drive_UnknownToTheDaemon_AsksForARestart) {
  const auto problem = problem_after([](Facts& facts) {
    facts.config.watch.all_drives = false;
    facts.config.drives.emplace_back("/mnt/new");
    facts.drives.push_back(facts.drives[0]);
  });
  expect_problem(problem, "drives", Severity::error, "/mnt/new", "systemctl restart spoord");
}

TEST(DoctorChecksTest, Daemon_Down_IsTheOnlyProblem_AndTheRestIsNotChecked) {
  Facts facts = healthy();
  const std::string refused = "cannot connect: Connection refused";
  facts.daemon = {.endpoint = "unix:/s", .is_down = true, .error = refused};
  facts.daemon.status.error = refused;
  const Examination examination = examine(facts);
  ASSERT_EQ(examination.problems.size(), 1U) << examination_text(examination);
  expect_problem(examination.problems[0], "daemon", Severity::error, refused, "systemctl restart spoord");
  EXPECT_THAT(examination.not_checked, testing::Contains(std::pair<std::string, std::string>(
                                           "journal", "the daemon gives no status")));
  EXPECT_THAT(examination.checks, Not(testing::Contains("journal")));
}

TEST(DoctorChecksTest, Daemon_NotAllowedToAsk_IsNoProblem) {
  Facts facts = healthy();
  facts.daemon = {.endpoint = "unix:/s", .error = "Permission denied"};
  facts.daemon.status.error = "Permission denied";
  const std::string text = examination_text(examine(facts));
  EXPECT_THAT(text, HasSubstr("not checked: daemon: unix:/s: Permission denied; run it as root"));
  EXPECT_THAT(text, testing::EndsWith("no problem found, but 11 of 24 checks did not run\n"));
}

TEST(DoctorChecksTest, Daemon_OfAnotherNode_IsAnError) {
  const auto problem = problem_after([](Facts& facts) { status(facts)["node"] = "n9"; });
  expect_problem(problem, "daemon", Severity::error, "is node n9 of cluster c", "systemctl restart spoord");
}

TEST(DoctorChecksTest, StatusOfAnotherForm_IsNotChecked) {
  Facts facts = healthy();
  status(facts).erase("journal");
  const std::string text = examination_text(examine(facts));
  EXPECT_THAT(text,
              HasSubstr("not checked: journal, snapshot: the daemon's response is not of the expected form"));
  EXPECT_THAT(text, testing::EndsWith("no problem found, but 2 of 24 checks did not run\n"));
}

TEST(DoctorChecksTest, NotReady_ReasonsThatOtherChecksReport_AreNotRepeated) {
  const auto set_reasons = [](Facts& facts, ordered_json reasons) {
    facts.daemon.ready = {.status = 503, .error = "not ready", .body = {{"reasons", std::move(reasons)}}};
  };
  const auto hangs = problem_after(
      [&](Facts& facts) { set_reasons(facts, ordered_json::array({"a save has been under way for 99 s"})); });
  expect_problem(hangs, "ready", Severity::error, "a save has been under way", "journalctl -u spoord");
  const auto journal = problem_after([&](Facts& facts) {
    set_reasons(facts, ordered_json::array({"journal: No space left on device"}));
    status(facts)["journal"] = {{"bytes", 1}, {"ok", false}, {"error", "No space left on device"}};
  });
  expect_problem(journal, "journal", Severity::error, "No space left on device", "df -h /data");
  const auto etcd = problem_after([&](Facts& facts) {
    set_reasons(facts, ordered_json::array({"not yet a member in etcd"}));
    status(facts)["membership"]["etcd"] = {{"ok", false}, {"error", "refused"}, {"registered", false}};
  });
  expect_problem(etcd, "etcd", Severity::error, "etcd fails: refused", "etcdctl");
}

TEST(DoctorChecksTest, Etcd_NotRegistered_IsAnError) {
  const auto problem =
      problem_after([](Facts& facts) { status(facts)["membership"]["etcd"]["registered"] = false; });
  expect_problem(problem, "etcd", Severity::error, "not registered", "systemctl restart spoord");
}

TEST(DoctorChecksTest, Dns_LookupFails_IsAnError) {
  const auto problem = problem_after([](Facts& facts) {
    status(facts)["membership"]["dns"][0]["ok"] = false;
    status(facts)["membership"]["dns"][0]["error"] = "no answer in time";
  });
  expect_problem(problem, "dns", Severity::error, "no answer in time", "resolvectl");
}

TEST(DoctorChecksTest, Snapshot_OldAlthoughTheJournalIsLong_IsAWarning) {
  const auto problem = problem_after([](Facts& facts) {
    status(facts)["snapshot"]["saved_at"] = ago(seconds(16 * 60));
    status(facts)["journal"]["bytes"] = 130 * mebibyte;
  });
  expect_problem(problem, "snapshot", Severity::warning, "16 min ago", "systemctl restart spoord");
  expect_silence_after([](Facts& facts) {  // it was idle until now
    status(facts)["snapshot"]["saved_at"] = ago(seconds(16 * 60));
    status(facts)["journal"]["bytes"] = 100'000;
  });
  expect_silence_after([](Facts& facts) {
    status(facts)["snapshot"]["saved_at"] = ago(seconds(14 * 60));
    status(facts)["journal"]["bytes"] = 130 * mebibyte;
  });
}

TEST(DoctorChecksTest, DaemonThatFails_IsAnError) {
  const auto problem = problem_after([](Facts& facts) {
    for (Answer* answer :
         {&facts.daemon.status, &facts.daemon.ready, &facts.daemon.drives, &facts.daemon.scans})
      *answer = {503, "too many requests", {}};
    facts.daemon.error = "too many requests";
  });
  expect_problem(problem, "daemon", Severity::error, "too many requests", "journalctl");
}

TEST(DoctorChecksTest, CurrentCycle_Saturated_IsAWarning) {
  const auto problem = problem_after([](Facts& facts) { status(facts)["cycles"][0]["saturated"] = true; });
  expect_problem(problem, "filters", Severity::warning, "cycle, 9, is saturated", "spoor scan");
}

TEST(DoctorChecksTest, SpansOfCycles_Dropped_IsAWarning) {
  const auto problem = problem_after([](Facts& facts) { status(facts)["filters"]["spans_dropped"] = 2; });
  expect_problem(problem, "filters", Severity::warning, "dropped since the start: 2", "tracker.memory_limit");
}

TEST(DoctorChecksTest, Watch_UnknownOrFailing_IsAnError) {
  const auto never = problem_after([](Facts& facts) { status(facts)["watch"] = nullptr; });
  expect_problem(never, "watch", Severity::error, "spoord does not know that", "systemctl reload spoord");
  const auto fail = [](Facts& facts) {
    status(facts)["watch"]["drives"][0]["ok"] = false;
    status(facts)["watch"]["drives"][0]["error"] = "overlayfs";
    status(facts)["watch"]["drives"][0]["failing_since"] = "2026-01-01T00:00:00Z";
  };
  const auto failing = problem_after(fail);
  expect_problem(failing, "watch", Severity::error, "is not watched since 2026-01-01T00:00:00Z: overlayfs",
                 "journalctl -u spoor-watch");
  EXPECT_THAT(failing.why, HasSubstr("walks all of it"));
  const auto partial = problem_after([&](Facts& facts) {
    fail(facts);
    facts.config.watch.unwatched = config::Unwatched::partial;
  });
  EXPECT_THAT(partial.why, HasSubstr("partial"));
  const auto unknown =
      problem_after([](Facts& facts) { status(facts)["watch"]["drives"][0]["path"] = "/mnt/other"; });
  expect_problem(unknown, "watch", Severity::error, "spoord does not know that", "systemctl reload spoord");
  expect_silence_after([](Facts& facts) {
    facts.config.watch.all_drives = false;
    status(facts)["watch"] = nullptr;
  });
}

TEST(DoctorChecksTest, WatchEnabledWithoutDrives_IsAnError) {
  const auto idle = problem_after([](Facts& facts) {
    facts.config.watch.all_drives = false;
    facts.is_watch_enabled = true;
  });
  expect_problem(idle, "watch", Severity::error, "watch.drives names no drive",
                 "systemctl restart spoor-watch");
}

TEST(DoctorChecksTest, Watch_GapAfterTheLastScan_IsAWarning) {
  const auto problem = problem_after(
      [](Facts& facts) { status(facts)["watch"]["drives"][0]["last_gap"]["at"] = ago(seconds(60)); });
  expect_problem(problem, "watch", Severity::warning, "may have been missed", "spoor scan");
}

TEST(DoctorChecksTest, Scan_NeverOldOrIncomplete_IsAWarning) {
  const auto never =
      problem_after([](Facts& facts) { facts.daemon.scans = {.status = 404, .error = "no_scan"}; });
  expect_problem(never, "scan", Severity::warning, "never scanned", "spoor scan");
  const auto old = problem_after([](Facts& facts) {
    facts.daemon.scans.body["scans"] = ordered_json::array({scan(1, hours(27))});
    status(facts)["watch"]["drives"][0]["last_gap"] = nullptr;
  });
  expect_problem(old, "scan", Severity::warning, "1 d 3 h ago", "spoor-scan.timer");
  const auto left = problem_after([](Facts& facts) { facts.daemon.scans.body["scans"][0]["errors"] = 2; });
  expect_problem(left, "scan", Severity::warning, "left 2 directories", "spoor scan");
  const auto other_user = problem_after([](Facts& facts) {
    facts.daemon.scans.body["scans"][0]["errors"] = 2;
    facts.is_daemon_user = false;
  });
  EXPECT_EQ(other_user.fix, "systemctl start spoor-scan");
}

TEST(DoctorChecksTest, Scan_PartialForSeveralScans_IsAWarning) {
  const auto set = [](Facts& facts, bool is_third_partial) {
    facts.daemon.scans.body["scans"] = {scan(3, seconds(60), true), scan(2, seconds(120), true),
                                        scan(1, seconds(180), is_third_partial)};
  };
  const auto problem = problem_after([&](Facts& facts) { set(facts, true); });
  expect_problem(problem, "scan", Severity::warning, "the last 3 scans were partial", "spoor scan");
  expect_silence_after([&](Facts& facts) { set(facts, false); });
}

TEST(DoctorChecksTest, ScanDatabase_Damaged_IsAnError) {
  const auto problem = problem_after(
      [](Facts& facts) { facts.daemon.scans = {.status = 500, .error = "scan.db is damaged"}; });
  expect_problem(problem, "scan", Severity::error, "scan.db is damaged", "spoor scan --rebuild");
  Facts busy = healthy();
  busy.daemon.scans = {.status = 503, .error = "overloaded"};
  EXPECT_THAT(examination_text(examine(busy)), HasSubstr("not checked: scan: overloaded\n"));
}

TEST(DoctorChecksTest, Clock_BehindASnapshotOrScan_IsAnError) {
  const auto snapshot =
      problem_after([](Facts& facts) { status(facts)["snapshot"]["saved_at"] = ago(seconds(-6)); });
  expect_problem(snapshot, "clock", Severity::error, "the last snapshot is of 2026-11-21T12:00:06Z",
                 "timedatectl");
  const auto scanned =
      problem_after([](Facts& facts) { facts.daemon.scans.body["scans"][0] = scan(9, -hours(1)); });
  expect_problem(scanned, "clock", Severity::error, "the last scan", "timedatectl");
}

TEST(DoctorChecksTest, Clock_OfAPeer_OverTenSecondsAway_IsAWarning) {
  const auto behind = problem_after([](Facts& facts) { facts.peers[0].clock_ahead = seconds(-11); });
  expect_problem(behind, "clock", Severity::warning, "of n2 (http://10.0.0.2:7420) is 11.0 s behind that",
                 "timedatectl");
  expect_silence_after([](Facts& facts) { facts.peers[0].clock_ahead = seconds(10); });
}

TEST(DoctorChecksTest, Peer_DownOrOfAnotherCluster_IsAnError) {
  const auto set_down = [](Facts& facts) {
    facts.peers[0] = {.url = "http://10.0.0.2:7420", .node = "n2", .error = "refused", .is_down = true};
  };
  const auto down = problem_after(set_down);
  expect_problem(down, "peers", Severity::error, "n2 (http://10.0.0.2:7420) does not respond: refused",
                 "systemctl restart spoord");
  const auto other = problem_after([&](Facts& facts) {
    set_down(facts);
    facts.peers[0].is_of_other_cluster = true;
  });
  expect_problem(other, "peers", Severity::error, "belongs to another cluster", "remove it from");
}

TEST(DoctorChecksTest, Peers_WithOneName_AreAnError_UnlessTheyAreOneDaemon) {
  const auto twice = [](Facts& facts, std::uint64_t run) {
    facts.peers.push_back(peer("n2", run));
    facts.peers.back().url = "http://10.0.0.3:7420";
  };
  const auto problem = problem_after([&](Facts& facts) { twice(facts, 3); });
  expect_problem(problem, "names", Severity::error, "have one name", "node.name");
  expect_silence_after([&](Facts& facts) { twice(facts, 2); });
  const auto own = problem_after([](Facts& facts) { facts.peers[0].node = "n1"; });
  expect_problem(own, "names", Severity::error, "n1 (http://10.0.0.2:7420) and this node", "node.name");
  expect_silence_after([](Facts& facts) { facts.peers[0] = peer("n1", 1); });
}

TEST(DoctorChecksTest, PeerOfAPeer_ThatIsNoneOfThisNode_IsAWarning) {
  const auto with_peers = [](std::map<std::string, std::string> peers) {
    return [peers = std::move(peers)](Facts& facts) { facts.peers[0].peers = peers; };
  };
  const auto problem =
      problem_after(with_peers({{"n1", "http://10.0.0.1:7420"}, {"n3", "http://10.0.0.3:7420"}}));
  expect_problem(problem, "members", Severity::warning,
                 "n3, a peer of n2 (http://10.0.0.2:7420), is none of this node",
                 "setup --add-peer http://10.0.0.3:7420");
  expect_silence_after(with_peers({{"n1", "http://10.0.0.1:7420"}, {"n2", "http://other:7420"}}));
}

TEST(DoctorChecksTest, NoMarksForDrivesThatAreNotWatched_IsAWarning) {
  const auto unwatched = [](Facts& facts) {
    facts.config.watch.all_drives = false;
    status(facts)["watch"] = nullptr;
    status(facts)["marks"] = {{"accepted", 0}};
    status(facts)["uptime_s"] = 1000.0;
    facts.peers[0].accepted = 0;
  };
  expect_problem(problem_after(unwatched), "marks", Severity::warning, "nothing has marked a change",
                 "spoor-watch");
  for (const auto& change :
       std::vector<std::function<void(Facts&)>>{[](Facts& facts) { status(facts)["marks"]["accepted"] = 1; },
                                                [](Facts& facts) { facts.peers[0].accepted = 1; },
                                                [](Facts& facts) { facts.peers[0].accepted.reset(); },
                                                [](Facts& facts) { status(facts)["uptime_s"] = 800.0; }}) {
    expect_silence_after([&](Facts& facts) {
      unwatched(facts);
      change(facts);
    });
  }
}

TEST(DoctorChecksTest, ConfigurationOfThePackage_IsAnError) {
  const auto problem = problem_after([](Facts& facts) { facts.is_set_up = false; });
  expect_problem(problem, "configuration", Severity::error, "this node is not set up", "spoor setup");
}

TEST(DoctorChecksTest, Rules_OfAPeerOrOfTheDaemon_Other_IsAnError) {
  const auto other = problem_after([](Facts& facts) { facts.peers[0].rules_digest = 8; });
  expect_problem(other, "rules", Severity::error, "n2 (http://10.0.0.2:7420) has other namespace rules",
                 "namespace");
  const auto own = problem_after([](Facts& facts) { facts.own_daemon_rules = 8; });
  expect_problem(own, "rules", Severity::error, "the daemon runs with other", "systemctl restart spoord");
}

TEST(DoctorChecksTest, Version_OfAPeer_Other_IsAWarning) {
  const auto problem = problem_after([](Facts& facts) { facts.peers[0].version = "0.0.9"; });
  expect_problem(problem, "versions", Severity::warning, "runs version 0.0.9, and this node 1.0.0",
                 "upgrade");
}

TEST(DoctorChecksTest, PeerThatRefuses_IsNotChecked) {
  Facts facts = healthy();
  facts.peers[0] = {.url = "http://10.0.0.2:7420", .node = "n2", .not_asked = "authentication required"};
  const std::string text = examination_text(examine(facts));
  EXPECT_THAT(text, HasSubstr("not checked: peers: n2 (http://10.0.0.2:7420): authentication required\n"));
  EXPECT_THAT(text, testing::EndsWith("no problem found\n"));
}

TEST(DoctorChecksTest, HostileTexts_AreEscaped) {
  Facts facts = healthy();
  facts.peers[0] = peer("n2\x1b[31m\nerror    all is lost", 2);
  facts.peers[0].version = "\x1b[31m";
  const Examination examination = examine(facts);
  const std::string text = examination_text(examination);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr(R"(n2\x1b[31m\x0aerror)"));
  EXPECT_THAT(examination_json(examination).dump(), Not(HasSubstr("\x1b")));
}

TEST(DoctorChecksTest, Text_HasTheParts_AndTheCounts) {
  Facts facts = healthy();
  facts.secrets[0].file.mode = 0644;
  facts.peers[0].version = "2";
  EXPECT_THAT(
      examination_text(examine(facts)),
      testing::MatchesRegex("error    secrets: [^\n]*\n         why: [^\n]*\n         fix: chmod [^\n]*\n"
                            "warning  versions: [^\n]*\n         why: [^\n]*\n         fix: [^\n]*\n"
                            "1 error, 1 warning\n"));
}

TEST(DoctorChecksTest, Json_HasTheParts) {
  Facts facts = healthy();
  facts.secrets[0].file.mode = 0644;
  facts.not_checked = {"listen[0].tls.key: it is secret"};
  const auto json = examination_json(examine(facts));
  EXPECT_EQ(json["problems"][0]["check"], "secrets");
  EXPECT_EQ(json["problems"][0]["severity"], "error");
  EXPECT_EQ(json["problems"][0]["fix"], "chmod o= /etc/spoor/token");
  EXPECT_EQ(json["checks"][0], "configuration");
  EXPECT_EQ(json["not_checked"][0]["check"], "configuration");
  EXPECT_EQ(json["not_checked"][0]["reason"], "listen[0].tls.key: it is secret");
}

TEST(ShellQuotedTest, AnyText_IsOneWord) {
  EXPECT_EQ(shell_quoted("/mnt/disk1"), "/mnt/disk1");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("/mnt/a b"), "'/mnt/a b'");
  EXPECT_EQ(shell_quoted("it's; $(rm)"), R"('it'\''s; $(rm)')");
  EXPECT_EQ(shell_quoted("a\nb'"), R"($'a\x0ab\x27')");
}

}  // namespace
}  // namespace spoor::cli
