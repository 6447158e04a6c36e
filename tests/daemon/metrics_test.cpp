// GET /metrics of a running spoord, and what is written about it.
#include <gmock/gmock.h>

#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "base/file_system.h"
#include "peer/http/watch_report.h"
#include "scanner/feed/publish_record.h"
#include "tests/daemon/spoord_fixture.h"
#include "tests/support/file_times.h"
#include "tests/support/raw_client.h"

namespace spoor::daemon {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Key;
using testing::Not;
using testing::Pair;

using Figures = std::map<std::string, double>;

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file);
  EXPECT_TRUE(in) << file;
  return {std::istreambuf_iterator<char>(in), {}};
}

// What may be the name of a family in a text.
std::set<std::string> names_in(const std::string& text) {
  static const std::regex name(R"(\b(spoor|process)_[a-z0-9_]+\b)");
  return {std::sregex_token_iterator(text.begin(), text.end(), name), {}};
}

class MetricsTest : public SpoordTest {
 protected:
  std::string scrape() {
    const auto response = request("GET", "/metrics");
    EXPECT_EQ(response.status, 200U) << response.body;
    EXPECT_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8");
    return response.body;
  }

  // By their names and labels as they stand there.
  Figures figures() {
    Figures found;
    std::istringstream lines(scrape());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('#')) continue;
      const std::size_t end = line.rfind(' ');
      EXPECT_TRUE(found.emplace(line.substr(0, end), std::stod(line.substr(end + 1))).second)
          << line << " is there twice";
    }
    return found;
  }

  std::set<std::string> families() {
    static const std::regex line(R"(# TYPE (\S+) )");
    const std::string text = scrape();
    return {std::sregex_token_iterator(text.begin(), text.end(), line, 1), {}};
  }

  void scan() {
    support::outlast_timestamp_step();
    const auto done = spoor({"scan"});
    EXPECT_TRUE(done.code == 0 || done.code == 3) << done.err;
  }

  // A second drive that is not there, and a peer that does not answer.
  void have_health_errors() {
    config_["drives"].push_back((directory_ / "gone").native());
    config_["peers"]["static"] = {"http://" + support::own_loopback() + ":1"};
  }

  // Which does not run: each scan waits for it.
  void expect_watch() {
    config_["watch"]["drives"] = "all";
    config_["watch"]["timeout"] = "100ms";
  }

  // Something of everything.
  void have_a_day() {
    request("POST", "/v1/marks", R"({"paths":["b/a",".spoor/x"]})");
    request("POST", "/v1/marks", R"({"paths":["../x"]})");
    request("POST", "/v1/events/s3", R"({"Records":[{"eventName":"s3:Nobody:Knows"}]})");
    scan();
    request("POST", "/v1/marks", R"({"paths":["b/c"]})");
    scan();
    request("GET", "/v1/usage");
    request("GET", "/nothing");
    request("DELETE", "/v1/marks");
    support::RawClient client(port());
    client.send("this is not HTTP\r\n\r\n");
    client.receive_all();
    base::PosixFileSystem files;
    const peer::WatchedDrive watched{.drive = config_["drives"][0], .is_watched = true};
    request("POST", "/v1/watch", peer::watched_drive_json(watched).dump());
    scanner::PublishRecord publish;
    publish.sinks.push_back({.name = "bus", .events = 7, .error = "the sink fails"});
    EXPECT_TRUE(scanner::write_publish_record(files, directory_ / "data", publish));
  }
};

TEST_F(MetricsTest, EveryMetric_IsWellFormedDocumentedAndAllThatAlertRulesUse) {
  have_health_errors();
  expect_watch();
  start();
  have_a_day();
  daemon_->wait_for("is down");
  const std::string text = scrape();
  const auto checked = support::run_command({"promtool", "check", "metrics"}, text);
  EXPECT_EQ(checked.code, 0);
  EXPECT_EQ(checked.out + checked.err, "") << text;
  const auto misnamed = support::run_command({"promtool", "check", "metrics"}, text + "spoor_x_total 1\n");
  EXPECT_NE(misnamed.code, 0) << "it does look at them";
  const std::set<std::string> shown = families();
  const std::set<std::string> documented = names_in(content(DOCS "/operations.md"));
  for (const std::string& name : shown) EXPECT_THAT(documented, Contains(name));
  // Only where there is what they tell of: a limit, etcd, a peer that was there, TLS.
  std::set<std::string> known = {"spoor_usage_limit_exceeded",
                                 "spoor_dns_ok",
                                 "spoor_etcd_ok",
                                 "spoor_etcd_registered",
                                 "spoor_etcd_members",
                                 "spoor_peer_last_seen_timestamp_seconds",
                                 "spoor_tls_certificate_expiry_timestamp_seconds",
                                 "spoor_peers_tls_certificate_expiry_timestamp_seconds"};
  known.insert(shown.begin(), shown.end());
  for (const std::string& name : names_in(content(DOCS "/monitoring/spoor.rules.yml"))) {
    EXPECT_THAT(known, Contains(name));
  }
}

TEST_F(MetricsTest, Marks_AreCountedByResponse) {
  start();
  request("POST", "/v1/marks", R"({"paths":["a","b",".spoor/x"]})");
  request("POST", "/v1/marks", R"({"paths":["a"]})");
  request("POST", "/v1/marks", R"({"paths":["a","../x"]})");
  request("POST", "/v1/marks", "{");
  request("POST", "/v1/marks", "{");
  request("POST", "/v1/events/s3",
          R"({"Records":[{"eventName":"s3:Nobody:Knows"},{"eventName":"TestEvent"}]})");
  EXPECT_THAT(figures(),
              IsSupersetOf(Figures{
                  {"spoor_marks_accepted_total", 3},
                  {"spoor_marks_new_total", 2},
                  {"spoor_marks_ignored_total", 3},
                  {"spoor_mark_requests_rejected_total", 3},
                  {"spoor_s3_events_unknown_total", 1},
                  {"spoor_http_problems_total{code=\"invalid_path\",route=\"/v1/marks\"}", 1},
                  {"spoor_http_problems_total{code=\"invalid_json\",route=\"/v1/marks\"}", 2},
                  {"spoor_http_requests_total{route=\"/v1/marks\",status=\"200\"}", 2},
                  {"spoor_http_requests_total{route=\"/v1/marks\",status=\"400\"}", 3},
                  {"spoor_http_requests_total{route=\"/v1/events/s3\",status=\"200\"}", 1},
                  {"spoor_http_request_body_bytes_total{route=\"/v1/marks\"}", 30 + 15 + 22 + 1 + 1},
                  {"spoor_http_request_duration_seconds_count{route=\"/v1/marks\"}", 5},
                  {"spoor_http_request_duration_seconds_bucket{route=\"/v1/marks\",le=\"+Inf\"}", 5},
              }));
}

// There may be any number of them, and they are nobody's business.
TEST_F(MetricsTest, RequestContent_NeverBecomesALabel) {
  start();
  const std::size_t before = figures().size();
  for (int i = 0; i < 50; ++i) {
    const std::string secret = "secret" + std::to_string(i);
    request("GET", "/" + secret);
    request("GET", "/v1/dirty?path=" + secret);
    request("POST", "/v1/marks?" + secret, secret, "text/" + secret);
    request("POST", "/v1/marks", secret, "text/plain");
    request("POST", "/v1/events/s3", R"({"Records":[{"eventName":")" + secret + R"("}]})");
  }
  const std::string text = scrape();
  EXPECT_EQ(text.find("secret"), std::string::npos);
  EXPECT_NE(text.find("\nspoor_http_requests_total{route=\"other\",status=\"404\"} 50\n"), std::string::npos);
  EXPECT_LT(figures().size(), before + 6 * 20);
}

TEST_F(MetricsTest, KeptCycles_AreListedByPosition) {
  start();
  EXPECT_THAT(figures(), Contains(Pair("spoor_kept_cycle_number{position=\"0\"}", 1)));
  for (int cycle = 2; cycle < 30; ++cycle) {
    request("POST", "/v1/marks", R"({"paths":["b/a"]})");
    request("POST", "/v1/peer/cycle", R"({"cluster":"default","current":)" + std::to_string(cycle) + "}");
  }
  request("POST", "/v1/marks?kind=tree", "b", "text/plain");
  const Figures found = figures();
  EXPECT_THAT(found, IsSupersetOf(Figures{
                         {"spoor_cycle_number", 29},
                         {"spoor_kept_cycle_number{position=\"0\"}", 29},
                         {"spoor_kept_cycle_number{position=\"16\"}", 13},
                         {"spoor_kept_cycle_items{position=\"1\"}", 2},
                         {"spoor_kept_cycle_tree_marks{position=\"0\"}", 1},
                         {"spoor_kept_cycle_tree_marks{position=\"1\"}", 0},
                         {"spoor_kept_cycle_levels{position=\"16\"}", 1},
                         {"spoor_kept_cycle_saturated{position=\"16\"}", 0},
                     }));
  EXPECT_THAT(found, Not(Contains(Key("spoor_kept_cycle_number{position=\"17\"}"))));
  EXPECT_GT(found.at("spoor_kept_cycle_density_ratio{position=\"1\"}"), 0);
}

TEST_F(MetricsTest, MissingDriveAndPeerDown_AreShown) {
  have_health_errors();
  start();
  daemon_->wait_for("is down");
  const std::string away = "spoor_drive_ok{drive=\"" + (directory_ / "gone").native() + "\"}";
  const std::string here = "spoor_drive_ok{drive=\"" + (directory_ / "drive").native() + "\"}";
  const std::string peer = "spoor_peer_up{url=\"http://" + support::own_loopback() + ":1\"}";
  EXPECT_THAT(figures(), IsSupersetOf(Figures{{away, 0},
                                              {here, 1},
                                              {peer, 0},
                                              {"spoor_peers{state=\"down\"}", 1},
                                              {"spoor_peers{state=\"up\"}", 0},
                                              {"spoor_ready", 1},
                                              {"spoor_journal_ok", 1},
                                              {"spoor_snapshot_generation", 1}}));
  std::filesystem::create_directory(directory_ / "gone");
  request("POST", "/v1/marks", R"({"paths":["b/a"]})");
  request("POST", "/v1/snapshot");
  const Figures found = figures();
  EXPECT_EQ(found.at(away), 1);
  EXPECT_GE(found.at("spoor_snapshot_generation"), 2);
  EXPECT_GT(found.at("spoor_snapshot_bytes"), 0);
  EXPECT_LE(found.at("spoor_data_dir_available_bytes"), found.at("spoor_data_dir_size_bytes"));
  EXPECT_GT(found.at("spoor_data_dir_size_bytes"), 0);
}

TEST_F(MetricsTest, LastScan_IsShownOnceThereIsOne) {
  start();
  EXPECT_THAT(families(), Contains("spoor_last_scan_finished_timestamp_seconds"));
  EXPECT_EQ(figures().at("spoor_last_scan_finished_timestamp_seconds"), 0) << "there was none, so far";
  EXPECT_THAT(families(), Each(Not(AnyOf(HasSubstr("last_scan_number"), HasSubstr("usage")))));
  std::filesystem::create_directories(directory_ / "drive/b/a");
  std::ofstream(directory_ / "drive/b/a/file") << "12345";
  scan();
  EXPECT_THAT(figures(), IsSupersetOf(Figures{
                             {"spoor_scans_total", 1},
                             {"spoor_last_scan_number", 1},
                             {"spoor_last_scan_full", 1},
                             {"spoor_last_scan_partial", 0},
                             {"spoor_last_scan_directories{kind=\"new\"}", 3},
                             {"spoor_last_scan_missed_changes", 0},
                             {"spoor_scan_missed_changes_total", 0},
                             {"spoor_scan_database_ok", 1},
                             {"spoor_usage_files", 1},
                             {"spoor_usage_bytes", 5},
                         }));
  request("POST", "/v1/marks", R"({"paths":["b/a"]})");
  std::ofstream(directory_ / "drive/b/a/more") << "123";
  scan();
  EXPECT_THAT(figures(), IsSupersetOf(Figures{
                             {"spoor_scans_total", 2},
                             {"spoor_last_scan_full", 0},
                             {"spoor_last_scan_directories{kind=\"changed\"}", 1},
                             {"spoor_usage_bytes", 8},
                         }));
}

TEST_F(MetricsTest, UsageLimits_AreShownAsTheLastScanFoundThem) {
  config_["usage"]["limits"] = nlohmann::json::array(
      {{{"path", "b"}, {"bytes", "4B"}, {"growth_per_day", "1GiB"}}, {{"path", ""}, {"files", 7}}});
  start();
  EXPECT_THAT(families(), Each(Not(HasSubstr("limit_exceeded")))) << "there was no scan, so far";
  std::filesystem::create_directories(directory_ / "drive/b");
  std::ofstream(directory_ / "drive/b/file") << "12345";
  scan();
  EXPECT_THAT(figures(), IsSupersetOf(Figures{
                             {"spoor_usage_limit_exceeded{limit=\"bytes\",path=\"b\"}", 1},
                             {"spoor_usage_limit_exceeded{limit=\"growth_per_day\",path=\"b\"}", 0},
                             {"spoor_usage_limit_exceeded{limit=\"files\",path=\"\"}", 0},
                             {"spoor_usage_limit_bytes{path=\"b\"}", 5},
                             {"spoor_usage_limit_files{path=\"b\"}", 1},
                             {"spoor_usage_limit_growth_bytes{path=\"b\"}", 0},
                         }));
  const auto status = nlohmann::json::parse(request("GET", "/v1/status").body);
  EXPECT_EQ(status["limits"][0]["exceeded"], nlohmann::json::array({"bytes"})) << status["limits"];
  const std::set<std::string> documented = names_in(content(DOCS "/operations.md"));
  for (const std::string& name : families()) EXPECT_THAT(documented, Contains(name));
}

TEST_F(MetricsTest, Connections_AreCounted) {
  config_["limits"]["max_connections"] = 2;
  start();
  support::RawClient first(port());
  support::RawClient second(port());
  const std::string alive = "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n";
  first.send(alive);
  EXPECT_THAT(first.receive_until("\"ok\""), HasSubstr("200"));
  second.send(alive);
  EXPECT_THAT(second.receive_until("\"ok\""), HasSubstr("200"));
  EXPECT_THAT(support::RawClient(port()).receive_all(), HasSubstr("overloaded"));
  first.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string text = first.receive_until("process_max_fds ");
  for (const char* line :
       {"spoor_http_connections_accepted_total 2", "spoor_http_connections_refused_total 1",
        "spoor_http_unread_requests_total{code=\"overloaded\"} 1"}) {
    EXPECT_NE(text.find("\n" + std::string(line) + "\n"), std::string::npos) << line;
  }
  const std::string open = "\nspoor_http_connections_open ";
  EXPECT_GE(std::stoi(text.substr(text.find(open) + open.size())), 2)
      << "the one refused may still be closing";
}

TEST_F(MetricsTest, ProcessMetrics_ArePresent) {
  start();
  const Figures found = figures();
  EXPECT_GT(found.at("process_resident_memory_bytes"), 1e6);
  EXPECT_LE(found.at("process_resident_memory_bytes"), found.at("process_virtual_memory_bytes"));
  EXPECT_GE(found.at("process_open_fds"), 5);
  EXPECT_LE(found.at("process_open_fds"), found.at("process_max_fds"));
  EXPECT_GT(found.at("process_start_time_seconds"), 1.6e9);
  EXPECT_THAT(found, Contains(Key("process_cpu_seconds_total")));
  EXPECT_THAT(found, Contains(Pair("spoor_node_info{cluster=\"default\",node=\"n1\"}", 1)));
}

}  // namespace
}  // namespace spoor::daemon
