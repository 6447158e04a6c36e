// Facts in, problems out.
#include "cli/doctor.h"

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

ordered_json& status(Facts& facts) { return facts.daemon.status.body; }

Examination examine_after(const std::function<void(Facts&)>& change) {
  Facts facts = healthy();
  change(facts);
  return examine(facts);
}

void give_to_root(Facts& facts) {
  facts.service_user_id = 100;
  facts.data_dir->directory.user = 0;
  for (auto& [name, file] : facts.data_dir->files) file.user = 0;
}

void publish(Facts& facts, std::optional<scanner::PublishRecord> record) {
  facts.config.publish.sinks = {{.name = "bus", .url = "nats://h"}};
  facts.publish = std::move(record);
}

// The daemon reports that the drive fails, and this is at its path.
void fail_drive(Facts& facts, DriveMatch match = DriveMatch::known) {
  facts.daemon.drives.body["drives"][0]["ok"] = false;
  facts.daemon.drives.body["drives"][0]["error"] = "Input/output error";
  facts.drives[0]->match = match;
}

void set_reason(Facts& facts, const char* reason) {
  facts.daemon.ready = {.status = 503, .error = "not ready", .body = {{"reasons", {reason}}}};
}

void set_snapshot(Facts& facts, seconds age, std::uint64_t journal_bytes) {
  status(facts)["snapshot"]["saved_at"] = ago(age);
  status(facts)["journal"]["bytes"] = journal_bytes;
}

void fail_watch(Facts& facts) {
  auto& drive = status(facts)["watch"]["drives"][0];
  drive["ok"] = false;
  drive["error"] = "overlayfs";
  drive["failing_since"] = "2026-01-01T00:00:00Z";
}

void watch_nothing(Facts& facts) {
  facts.config.watch.all_drives = false;
  status(facts)["watch"] = nullptr;
}

// Nothing has marked a change on drives that are not watched.
void mark_nothing(Facts& facts) {
  watch_nothing(facts);
  status(facts)["marks"] = {{"accepted", 0}};
  status(facts)["uptime_s"] = 1000.0;
  facts.peers[0].accepted = 0;
}

void set_last_scan(Facts& facts, const ordered_json& last) { facts.daemon.scans.body["scans"][0] = last; }

void set_scans(Facts& facts, bool is_third_partial) {
  facts.daemon.scans.body["scans"] = {scan(3, seconds(60), true), scan(2, seconds(120), true),
                                      scan(1, seconds(180), is_third_partial)};
}

void set_down(Facts& facts) {
  facts.peers[0] = {.url = "http://10.0.0.2:7420", .node = "n2", .error = "refused", .is_down = true};
}

void add_second_n2(Facts& facts, std::uint64_t run) {
  facts.peers.push_back(peer("n2", run));
  facts.peers.back().url = "http://10.0.0.3:7420";
}

// What is changed on a healthy node, and the only problem after that. `text` is in its `what`, or in that and
// its `why`.
struct Fault {
  const char* name;
  void (*change)(Facts&);
  const char* check;
  Severity severity;
  const char* text;
  const char* fix;
};
constexpr auto error = Severity::error;
constexpr auto warning = Severity::warning;

const Fault faults[] = {
    {"ConfigurationOfThePackage", [](Facts& facts) { facts.is_set_up = false; }, "configuration", error,
     "this node is not set up", "spoor setup"},
    {"DrivesThatOverlap", [](Facts& facts) { facts.overlaps->emplace_back("drives: /a is /b"); },
     "configuration", error, "/a is /b", "correct /etc/spoor/spoor.json, then"},
    {"UnusableSecret", [](Facts& facts) { facts.config_errors = {"peers.token_file: too short"}; },
     "configuration", error, "too short", "systemctl restart spoord"},
    {"DataDirOfAnotherUser", [](Facts& facts) { facts.data_dir->directory.user = 0; }, "permissions", error,
     "/data belongs to user 0, and the daemon runs as user 100",
     "chown -R --reference=/data/instance.json /data"},
    {"DirectoryOnADriveOfAnotherUser", [](Facts& facts) { facts.drives[0]->spoor_directory.user = 0; },
     "permissions", error, "/mnt/disk 1/.spoor", "'/mnt/disk 1/.spoor'"},
    {"DirectoryOpenToAll", [](Facts& facts) { facts.drives[0]->spoor_directory.mode = 0755; }, "permissions",
     warning, "mode 0755", "chmod o= '/mnt/disk 1/.spoor'"},
    {"LockOfAnotherUser", [](Facts& facts) { facts.data_dir->files["scan.lock"] = {.user = 0}; },
     "permissions", error, "/data/scan.lock belongs to user 0", "/data/scan.lock"},
    {"ConfigurationThatAllCanWrite", [](Facts& facts) { facts.config_path = {.user = 0, .mode = 0666}; },
     "permissions", error, "all users can write /etc/spoor/spoor.json (mode 0666",
     "chmod o-w /etc/spoor/spoor.json"},
    {"ConfigurationThatOthersCanWrite", [](Facts& facts) { facts.config_path = {.user = 0, .mode = 0642}; },
     "permissions", error, "all users can write /etc/spoor/spoor.json (mode 0642",
     "chmod o-w /etc/spoor/spoor.json"},
    {"ConfigurationThatTheDaemonCannotRead",
     [](Facts& facts) { facts.config_path = {.user = 0, .mode = 0600}; }, "permissions", error,
     "only its owner can read /etc/spoor/spoor.json", "chgrp spoor /etc/spoor/spoor.json && chmod g+r"},
    {"DriveOfAUserOtherThanRootAndTheDaemons", [](Facts& facts) { facts.drives[0]->root.user = 1000; },
     "permissions", warning,
     "/mnt/disk 1 belongs to user 1000, who is neither root nor the daemon's user 100",
     "chown root '/mnt/disk 1' && chmod g+w,+t '/mnt/disk 1'"},
    {"ScanDatabaseOfAnotherUser",  // one problem, and no reason for a rebuild
     [](Facts& facts) {
       facts.data_dir->files["scan.db"] = {.user = 0};
       facts.data_dir->files["scan.db-wal"] = {.user = 0};
       facts.daemon.scans = {.status = 500, .error = "unable to open database file"};
     },
     "permissions", error,
     "/data/scan.db, /data/scan.db-wal belong to user 0, and the daemon runs as user 100",
     "--reference=/data/instance.json /data/scan.db /data/scan.db-wal"},
    {"DataDirGivenToRoot", give_to_root, "permissions", error,
     "/data belongs to user 0, and the daemon runs as user 100", "chown -R spoor: /data"},
    {"PublishNeverRan", [](Facts& facts) { publish(facts, std::nullopt); }, "publish", error, "has never run",
     "systemctl enable --now spoor-publish"},
    {"PublishThatDoesNotReport",
     [](Facts& facts) { publish(facts, scanner::PublishRecord{.written_at = now - seconds(61)}); }, "publish",
     error, "does not run", "systemctl restart spoor-publish"},
    {"SinkThatFails",
     [](Facts& facts) {
       publish(facts, scanner::PublishRecord{now, {{.name = "bus", .error = "no\nroute"}}});
     },
     "publish", error, "the sink 'bus' fails: no\\x0aroute", "journalctl -u spoor-publish"},
    {"SinkThatIsNotKnown",
     [](Facts& facts) { publish(facts, scanner::PublishRecord{now, {{.name = "old"}}}); }, "publish", error,
     "the sink 'bus' is in publish.sinks", "systemctl restart spoor-publish"},
    {"SecretOpenToAll", [](Facts& facts) { facts.secrets[0].file.mode = 0644; }, "secrets", error,
     "(peers.token_file) is open to all users", "chmod o= /etc/spoor/token"},
    {"SpaceLow", [](Facts& facts) { facts.data_dir->space.bytes_free = 400 * mebibyte; }, "space", warning,
     "/data has 400 MiB free", "du -xh -d 2 /data"},
    {"SpaceTooLow", [](Facts& facts) { facts.data_dir->space.bytes_free = mebibyte; }, "space", error,
     "/data has 1.0 MiB free", "du"},
    {"InodesTooFew", [](Facts& facts) { facts.drives[0]->space.inodes_free = 9; }, "space", error, "9 inodes",
     "du -x --inodes"},
    {"SpaceForOneSnapshotOnly",  // it has to fit twice
     [](Facts& facts) {
       status(facts)["snapshot"]["bytes"] = 100 * mebibyte;
       facts.drives[0]->space.bytes_free = 150 * mebibyte;
     },
     "space", error, "/mnt/disk 1 has 150 MiB free", "du"},
    {"CertificateThatExpiresWithinAMonth",
     [](Facts& facts) { facts.certificates[0].valid_until = now + hours(24 * 29); }, "tls", warning,
     "expires at 2026-12-20", "renew /etc/spoor/n1.pem (spoor setup --renew"},
    {"CertificateThatHasExpired", [](Facts& facts) { facts.certificates[0].valid_until = now - seconds(1); },
     "tls", error, "has expired", "systemctl reload spoord"},
    {"UnusableCertificate",
     [](Facts& facts) {
       facts.certificates[0].valid_until.reset();
       facts.certificates[0].error = "cannot use the key";
     },
     "tls", error, "cannot use the key", "renew"},
    {"ForeignDrive", [](Facts& facts) { fail_drive(facts, DriveMatch::foreign); }, "drives", error,
     "identity of another drive: the disk is not mounted",
     "spoor drives accept '/mnt/disk 1'  # ONLY if this directory replaces it"},
    {"SwappedDrive",
     [](Facts& facts) {
       fail_drive(facts, DriveMatch::foreign);
       facts.drives[0]->is_mount_point = true;
     },
     "drives", error, "the disk was replaced or swapped",
     "spoor drives accept '/mnt/disk 1'  # if this is the disk"},
    {"DriveThatIsNotMounted",
     [](Facts& facts) {
       fail_drive(facts, DriveMatch::missing);
       facts.drives[0]->is_in_fstab = true;
     },
     "drives", error, "is not mounted", "mount '/mnt/disk 1'"},
    {"DriveWithoutIdentity", [](Facts& facts) { fail_drive(facts, DriveMatch::missing); }, "drives", error,
     "has no identity", "spoor drives accept '/mnt/disk 1'  # ONLY if"},
    {"NewDisk",
     [](Facts& facts) {
       fail_drive(facts, DriveMatch::missing);
       facts.drives[0]->is_mount_point = true;
       facts.drives[0]->spoor_directory = {.error = ENOENT};
     },
     "drives", error, "has no identity",
     "mkdir -m 0750 '/mnt/disk 1/.spoor' && chown -R --reference=/data/instance.json "
     "'/mnt/disk 1/.spoor' && spoor drives accept '/mnt/disk 1'"},
    {"DriveThatFails", [](Facts& facts) { fail_drive(facts); }, "drives", error, "Input/output error",
     "journalctl -k"},
    {"DriveThatDoesNotExist",
     [](Facts& facts) {
       facts.daemon.drives = {.error = "none"};
       facts.drives[0]->root = {.error = ENOENT};
     },
     "drives", error, "does not exist", "correct the path in /etc/spoor/spoor.json; or mkdir -p"},
    {"DriveThatHangs", [](Facts& facts) { facts.drives[0].reset(); }, "drives", error, "hangs",
     "journalctl -k"},
    {"DriveUnknownToTheDaemon",
     [](Facts& facts) {
       facts.config.watch.all_drives = false;
       facts.config.drives.emplace_back("/mnt/new");
       facts.drives.push_back(facts.drives[0]);
     },
     "drives", error, "/mnt/new", "systemctl restart spoord"},
    {"DaemonOfAnotherNode", [](Facts& facts) { status(facts)["node"] = "n9"; }, "daemon", error,
     "is node n9 of cluster c", "systemctl restart spoord"},
    {"DaemonThatFails",
     [](Facts& facts) {
       DaemonFacts& daemon = facts.daemon;
       for (Answer* answer : {&daemon.status, &daemon.ready, &daemon.drives, &daemon.scans})
         *answer = {503, "too many requests", {}};
       daemon.error = "too many requests";
     },
     "daemon", error, "too many requests", "journalctl"},
    {"SaveThatHangs", [](Facts& facts) { set_reason(facts, "a save has been under way for 99 s"); }, "ready",
     error, "a save has been under way", "journalctl -u spoord"},
    {"JournalThatFails",  // here and below, a reason that another check reports is not repeated
     [](Facts& facts) {
       set_reason(facts, "journal: No space left on device");
       status(facts)["journal"] = {{"bytes", 1}, {"ok", false}, {"error", "No space left on device"}};
     },
     "journal", error, "No space left on device", "df -h /data"},
    {"EtcdThatFails",
     [](Facts& facts) {
       set_reason(facts, "not yet a member in etcd");
       status(facts)["membership"]["etcd"] = {{"ok", false}, {"error", "refused"}, {"registered", false}};
     },
     "etcd", error, "etcd fails: refused", "etcdctl"},
    {"NodeThatIsNotRegistered",
     [](Facts& facts) { status(facts)["membership"]["etcd"]["registered"] = false; }, "etcd", error,
     "not registered", "systemctl restart spoord"},
    {"DnsThatFails",
     [](Facts& facts) {
       status(facts)["membership"]["dns"][0]["ok"] = false;
       status(facts)["membership"]["dns"][0]["error"] = "no answer in time";
     },
     "dns", error, "no answer in time", "resolvectl"},
    {"OldSnapshotAndLongJournal", [](Facts& facts) { set_snapshot(facts, seconds(16 * 60), 130 * mebibyte); },
     "snapshot", warning, "16 min ago", "systemctl restart spoord"},
    {"SaturatedCycle", [](Facts& facts) { status(facts)["cycles"][0]["saturated"] = true; }, "filters",
     warning, "cycle, 9, is saturated", "spoor scan"},
    {"DroppedSpans", [](Facts& facts) { status(facts)["filters"]["spans_dropped"] = 2; }, "filters", warning,
     "dropped since the start: 2", "tracker.memory_limit"},
    {"WatchUnknownToTheDaemon", [](Facts& facts) { status(facts)["watch"] = nullptr; }, "watch", error,
     "spoord does not know that", "systemctl reload spoord"},
    {"WatchOfAnotherDrive", [](Facts& facts) { status(facts)["watch"]["drives"][0]["path"] = "/mnt/other"; },
     "watch", error, "spoord does not know that", "systemctl reload spoord"},
    {"DriveThatIsNotWatched", fail_watch, "watch", error,
     "is not watched since 2026-01-01T00:00:00Z: overlayfs why: each scan walks all of it",
     "journalctl -u spoor-watch"},
    {"DriveThatIsNotWatchedAndScansArePartial",
     [](Facts& facts) {
       fail_watch(facts);
       facts.config.watch.unwatched = config::Unwatched::partial;
     },
     "watch", error, "overlayfs why: scans are partial", "journalctl -u spoor-watch"},
    {"WatchWithoutDrives",
     [](Facts& facts) {
       facts.config.watch.all_drives = false;
       facts.is_watch_enabled = true;
     },
     "watch", error, "watch.drives names no drive", "systemctl restart spoor-watch"},
    {"GapAfterTheLastScan",
     [](Facts& facts) { status(facts)["watch"]["drives"][0]["last_gap"]["at"] = ago(seconds(60)); }, "watch",
     warning, "may have been missed", "spoor scan"},
    {"NoMarksForDrivesThatAreNotWatched", mark_nothing, "marks", warning, "nothing has marked a change",
     "spoor-watch"},
    {"NodeThatWasNeverScanned",
     [](Facts& facts) { facts.daemon.scans = {.status = 404, .error = "no_scan"}; }, "scan", warning,
     "never scanned", "spoor scan"},
    {"OldScan",
     [](Facts& facts) {
       facts.daemon.scans.body["scans"] = ordered_json::array({scan(1, hours(27))});
       status(facts)["watch"]["drives"][0]["last_gap"] = nullptr;
     },
     "scan", warning, "1 d 3 h ago", "spoor-scan.timer"},
    {"ScanThatLeftSomething", [](Facts& facts) { facts.daemon.scans.body["scans"][0]["errors"] = 2; }, "scan",
     warning, "left 2 directories", "spoor scan"},
    {"ScanThatLeftSomethingOfAnotherUser",
     [](Facts& facts) {
       facts.daemon.scans.body["scans"][0]["errors"] = 2;
       facts.is_daemon_user = false;
     },
     "scan", warning, "left 2 directories", "systemctl start spoor-scan"},
    {"PartialScans", [](Facts& facts) { set_scans(facts, true); }, "scan", warning,
     "the last 3 scans were partial", "spoor scan"},
    {"DamagedScanDatabase",
     [](Facts& facts) { facts.daemon.scans = {.status = 500, .error = "scan.db is damaged"}; }, "scan", error,
     "scan.db is damaged", "spoor scan --rebuild"},
    {"ClockBehindTheSnapshot", [](Facts& facts) { status(facts)["snapshot"]["saved_at"] = ago(seconds(-6)); },
     "clock", error, "the last snapshot is of 2026-11-21T12:00:06Z", "timedatectl"},
    {"ClockBehindTheScan", [](Facts& facts) { set_last_scan(facts, scan(9, -hours(1))); }, "clock", error,
     "the last scan", "timedatectl"},
    {"ClockOfAPeerOverTenSecondsAway", [](Facts& facts) { facts.peers[0].clock_ahead = seconds(-11); },
     "clock", warning, "of n2 (http://10.0.0.2:7420) is 11.0 s behind that", "timedatectl"},
    {"PeerThatIsDown", set_down, "peers", error, "n2 (http://10.0.0.2:7420) does not respond: refused",
     "systemctl restart spoord"},
    {"PeerOfAnotherCluster",
     [](Facts& facts) {
       set_down(facts);
       facts.peers[0].is_of_other_cluster = true;
     },
     "peers", error, "belongs to another cluster", "remove it from"},
    {"PeersWithOneName", [](Facts& facts) { add_second_n2(facts, 3); }, "names", error, "have one name",
     "node.name"},
    {"PeerWithTheOwnName", [](Facts& facts) { facts.peers[0].node = "n1"; }, "names", error,
     "n1 (http://10.0.0.2:7420) and this node", "node.name"},
    {"PeerOfAPeerThatIsNone",
     [](Facts& facts) {
       facts.peers[0].peers = {{"n1", "http://10.0.0.1:7420"}, {"n3", "http://10.0.0.3:7420"}};
     },
     "members", warning, "n3, a peer of n2 (http://10.0.0.2:7420), is none of this node",
     "setup --add-peer http://10.0.0.3:7420"},
    {"PeerWithOtherRules", [](Facts& facts) { facts.peers[0].rules_digest = 8; }, "rules", error,
     "n2 (http://10.0.0.2:7420) has other namespace rules", "namespace"},
    {"DaemonWithOtherRules", [](Facts& facts) { facts.own_daemon_rules = 8; }, "rules", error,
     "the daemon runs with other", "systemctl restart spoord"},
    {"PeerOfAnotherVersion", [](Facts& facts) { facts.peers[0].version = "0.0.9"; }, "versions", warning,
     "runs version 0.0.9, and this node 1.0.0", "upgrade"},
};

class DoctorFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(DoctorFaultTest, OneFault_IsTheOnlyProblem) {
  const Fault& fault = GetParam();
  const Examination examination = examine_after(fault.change);
  ASSERT_EQ(examination.problems.size(), 1U) << examination_text(examination);
  const Problem& problem = examination.problems[0];
  EXPECT_EQ(problem.check, fault.check);
  EXPECT_EQ(problem.severity, fault.severity) << problem.what;
  EXPECT_THAT(problem.what + " why: " + problem.why, HasSubstr(fault.text));
  EXPECT_THAT(problem.fix, HasSubstr(fault.fix));
  EXPECT_THAT(problem.why, Not(IsEmpty()));
}

INSTANTIATE_TEST_SUITE_P(, DoctorFaultTest, testing::ValuesIn(faults),
                         [](const auto& test) { return std::string(test.param.name); });

// What looks like a fault, and is none.
const std::pair<const char*, void (*)(Facts&)> harmless[] = {
    {"a file that only the daemon writes",
     [](Facts& facts) { facts.data_dir->files["usage.json"] = {.user = 0}; }},
    {"a configuration of root for all", [](Facts& facts) { facts.config_path = {.user = 0, .mode = 0644}; }},
    {"of root for the group", [](Facts& facts) { facts.config_path = {.user = 0, .mode = 0640}; }},
    {"of the daemon for itself", [](Facts& facts) { facts.config_path = {.user = 100, .mode = 0600}; }},
    {"a drive of root", [](Facts& facts) { facts.drives[0]->root.user = 0; }},
    {"a daemon of root, whatever user the service has",
     [](Facts& facts) {
       give_to_root(facts);
       facts.drives[0]->root.user = 0;
       facts.drives[0]->spoor_directory.user = 0;
     }},
    {"a sink that works",
     [](Facts& facts) { publish(facts, scanner::PublishRecord{now, {{.name = "bus"}}}); }},
    {"a file system without inodes",
     [](Facts& facts) { facts.drives[0]->space = {.bytes_free = 1ULL << 40U, .inodes = 0}; }},
    {"an old snapshot: it was idle until now",
     [](Facts& facts) { set_snapshot(facts, seconds(16 * 60), 100'000); }},
    {"a long journal", [](Facts& facts) { set_snapshot(facts, seconds(14 * 60), 130 * mebibyte); }},
    {"no drive to watch", watch_nothing},
    {"partial scans after one that was not", [](Facts& facts) { set_scans(facts, false); }},
    {"a clock that is near", [](Facts& facts) { facts.peers[0].clock_ahead = seconds(10); }},
    {"a peer at two addresses", [](Facts& facts) { add_second_n2(facts, 2); }},
    {"this node among its peers", [](Facts& facts) { facts.peers[0] = peer("n1", 1); }},
    {"peers of a peer that are known",
     [](Facts& facts) {
       facts.peers[0].peers = {{"n1", "http://10.0.0.1:7420"}, {"n2", "http://other:7420"}};
     }},
    {"marks here",
     [](Facts& facts) {
       mark_nothing(facts);
       status(facts)["marks"]["accepted"] = 1;
     }},
    {"marks at a peer",
     [](Facts& facts) {
       mark_nothing(facts);
       facts.peers[0].accepted = 1;
     }},
    {"marks that are not known",
     [](Facts& facts) {
       mark_nothing(facts);
       facts.peers[0].accepted.reset();
     }},
    {"no marks since a moment",
     [](Facts& facts) {
       mark_nothing(facts);
       status(facts)["uptime_s"] = 800.0;
     }},
};

TEST(DoctorChecksTest, WhatIsHarmless_IsNoProblem) {
  for (const auto& [name, change] : harmless)
    EXPECT_EQ(examination_text(examine_after(change)), "no problem found\n") << name;
}

TEST(DoctorChecksTest, BusyScanDatabase_IsNotChecked) {
  const Examination examination =
      examine_after([](Facts& facts) { facts.daemon.scans = {.status = 503, .error = "overloaded"}; });
  EXPECT_THAT(examination_text(examination), HasSubstr("not checked: scan: overloaded\n"));
}

TEST(DoctorChecksTest, HealthyNode_HasNoProblem) {
  const Examination examination = examine(healthy());
  EXPECT_EQ(examination_text(examination), "no problem found\n");
  EXPECT_EQ(examination.checks.size(), 24U);
}

TEST(DoctorChecksTest, Daemon_Down_IsTheOnlyProblem_AndTheRestIsNotChecked) {
  Facts facts = healthy();
  const std::string refused = "cannot connect: Connection refused";
  facts.daemon = {.endpoint = "unix:/s", .is_down = true, .error = refused};
  facts.daemon.status.error = refused;
  const Examination examination = examine(facts);
  ASSERT_EQ(examination.problems.size(), 1U) << examination_text(examination);
  EXPECT_EQ(examination.problems[0].check, "daemon");
  EXPECT_THAT(examination.problems[0].what, HasSubstr(refused));
  EXPECT_THAT(examination.problems[0].fix, HasSubstr("systemctl restart spoord"));
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

TEST(DoctorChecksTest, StatusOfAnotherForm_IsNotChecked) {
  Facts facts = healthy();
  status(facts).erase("journal");
  const std::string text = examination_text(examine(facts));
  EXPECT_THAT(text,
              HasSubstr("not checked: journal, snapshot: the daemon's response is not of the expected form"));
  EXPECT_THAT(text, testing::EndsWith("no problem found, but 2 of 24 checks did not run\n"));
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
