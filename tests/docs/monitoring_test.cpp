// docs/monitoring against a real Prometheus that scrapes a real spoord, and docs/troubleshooting.md against
// its alerts.
#include <gmock/gmock.h>
#include <yaml-cpp/yaml.h>

#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "base/file_system.h"
#include "peer/http/watch_report.h"
#include "scanner/feed/publish_record.h"
#include "tests/daemon/spoord_fixture.h"
#include "tests/docs/pages.h"
#include "tests/docs/prometheus.h"
#include "tests/support/certificates.h"
#include "tests/support/dns_server.h"
#include "tests/support/etcd_server.h"
#include "tests/support/file_times.h"
#include "tests/support/page_blocks.h"
#include "tests/watch/eventually.h"

namespace spoor::docs {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;

constexpr const char* rules_file = DOCS "/monitoring/spoor.rules.yml";
constexpr const char* troubleshooting = DOCS "/troubleshooting.md";

std::string content(const fs::path& file) {
  std::ifstream in(file);
  EXPECT_TRUE(in) << file;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::vector<YAML::Node> alert_rules() {
  std::vector<YAML::Node> rules;
  for (const auto& group : YAML::LoadFile(rules_file)["groups"]) {
    for (const auto& rule : group["rules"]) rules.push_back(rule);
  }
  return rules;
}

// The entries of the page that are of alerts: "SpoorDown" and so on.
std::set<std::string> alert_entries() {
  std::set<std::string> entries;
  std::ifstream page(troubleshooting);
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## Spoor")) entries.insert(line.substr(3));
  }
  return entries;
}

// Those with targets, and rows.
std::vector<json> panels() {
  return json::parse(content(DOCS "/monitoring/spoor-dashboard.json")).at("panels").get<std::vector<json>>();
}

std::vector<std::string> dashboard_expressions() {
  std::vector<std::string> expressions;
  for (const json& panel : panels()) {
    for (const json& target : panel.value("targets", json::array())) expressions.push_back(target.at("expr"));
  }
  return expressions;
}

// As Grafana does for one job, all of its instances.
std::string with_variables(const std::string& expression) {
  return replace_all(expression, {{"$job", "spoor"}, {"$instance", ".*"}, {"$__rate_interval", "5m"}});
}

TEST(TroubleshootingTest, Entries_AreTheAlertsAndTheirAddresses) {
  std::set<std::string> alerts;
  for (const YAML::Node& rule : alert_rules()) {
    const auto name = rule["alert"].as<std::string>();
    EXPECT_TRUE(alerts.insert(name).second) << name << " is there twice";
    EXPECT_EQ(rule["annotations"]["runbook_url"].as<std::string>(),
              "https://spoor.example/troubleshooting.html#" + lower(name));
    EXPECT_THAT((std::set<std::string>{"critical", "warning"}),
                Contains(rule["labels"]["severity"].as<std::string>()));
  }
  EXPECT_EQ(alert_entries(), alerts);
}

TEST(TroubleshootingTest, EachEntry_HasCommands) {
  std::set<std::string> with_commands;
  for (const auto& block : support::page_blocks(troubleshooting)) with_commands.insert(block.section);
  for (const std::string& entry : alert_entries()) EXPECT_THAT(with_commands, Contains(entry));
}

// What the tests of the rules expect of one alert.
struct Expected {
  std::set<bool> fires;
  std::set<std::string> labels;
};

void add_alert_test(const YAML::Node& test, std::map<std::string, Expected>& expected) {
  Expected& alert = expected[test["alertname"].as<std::string>()];
  alert.fires.insert(test["exp_alerts"].size() > 0);
  for (const auto& fired : test["exp_alerts"]) {
    for (const auto& label : fired["exp_labels"]) alert.labels.insert(label.first.as<std::string>());
  }
}

// A row of the times at which alerts begin to fire: before that, they do not.
void add_time(const YAML::Node& row, std::map<std::string, Expected>& expected) {
  static const std::regex name(R"re(alertname="(\w+)")re");
  static const std::regex label(R"re((\w+)=")re");
  const auto labels = row["labels"].as<std::string>();
  std::smatch found;
  if (!std::regex_search(labels, found, name) || row["value"].as<double>() <= 0) return;
  Expected& alert = expected[found[1]];
  alert.fires = {false, true};
  for (std::sregex_iterator at(labels.begin(), labels.end(), label), end; at != end; ++at)
    alert.labels.insert((*at)[1]);
}

TEST(AlertRulesTest, EachAlert_IsTestedToFireAndNotToFire) {
  std::map<std::string, Expected> expected;
  for (const auto& test : YAML::LoadFile(RULES_TEST)["tests"]) {
    for (const auto& each : test["alert_rule_test"]) add_alert_test(each, expected);
    for (const auto& each : test["promql_expr_test"]) {
      for (const auto& row : each["exp_samples"]) add_time(row, expected);
    }
  }
  static const std::regex used(R"(\$labels\.(\w+))");
  for (const YAML::Node& rule : alert_rules()) {
    const Expected& alert = expected[rule["alert"].as<std::string>()];
    EXPECT_EQ(alert.fires.size(), 2U) << rule["alert"];
    for (const char* const text : {"summary", "description"}) {
      const auto words = rule["annotations"][text].as<std::string>();
      for (std::sregex_iterator at(words.begin(), words.end(), used), end; at != end; ++at)
        EXPECT_THAT(alert.labels, Contains((*at)[1].str())) << rule["alert"];
    }
  }
}

TEST(DashboardTest, Panels_AreWellFormed) {
  std::set<int> ids;
  std::set<std::pair<int, int>> taken;
  const std::set<std::string> entries = alert_entries();
  for (const json& panel : panels()) {
    const std::string title = panel.at("title");
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second) << title;
    const json& at = panel.at("gridPos");
    for (int x = at.at("x"); x < at.at("x").get<int>() + at.at("w").get<int>(); ++x) {
      EXPECT_LT(x, 24) << title;
      for (int y = at.at("y"); y < at.at("y").get<int>() + at.at("h").get<int>(); ++y) {
        EXPECT_TRUE(taken.emplace(x, y).second) << title << " overlaps another panel";
      }
    }
    EXPECT_THAT((std::set<std::string>{"row", "stat", "table", "timeseries"}),
                Contains(panel.at("type").get<std::string>()));
    if (panel["type"] == "row") continue;
    EXPECT_FALSE(panel.at("targets").empty()) << title;
    std::set<std::string> references;
    for (const json& target : panel["targets"]) {
      EXPECT_EQ(target.at("datasource").at("uid"), "${datasource}") << title;
      EXPECT_TRUE(references.insert(target.at("refId").get<std::string>()).second) << title;
    }
    static const std::regex alert("Spoor[A-Z][A-Za-z]+");
    const std::string words = panel.value("description", "");
    for (std::sregex_iterator found(words.begin(), words.end(), alert), end; found != end; ++found) {
      EXPECT_THAT(entries, Contains(found->str())) << title;
    }
  }
}

// A node on which something of everything happens: drives, one of them missing, peers, etcd, DNS, TLS,
// limits, spoor-watch, marks, refused requests and scans.
class MonitoringTest : public daemon::SpoordTest {
 protected:
  MonitoringTest()
      : ca_(directory_.path(), "ca"), dns_({"--host-record=spoor.test," + support::own_loopback()}) {
    ca_.issue("n1", support::own_loopback());
    std::ofstream(directory_ / "token") << token;
    const auto file = [&](const fs::path& path) { return path.native(); };
    config_["drives"].push_back((directory_ / "gone").native());
    config_["auth"]["tokens"] = {{{"name", "prometheus"}, {"role", "read"}, {"file", directory_ / "token"}}};
    config_["listen"].push_back({{"unix", directory_ / "spoor.sock"}});
    config_["listen"].push_back(
        {{"address", support::own_loopback()},
         {"port", 0},
         {"tls", {{"certificate", file(ca_.certificate("n1"))}, {"key", file(ca_.key("n1"))}}}});
    config_["scan"]["min_cycle_age"] = "0s";
    config_["watch"]["drives"] = {config_["drives"][0]};
    config_["watch"]["timeout"] = "1ms";
    config_["usage"]["limits"] = {{{"path", "b"}, {"bytes", "4B"}}};
    config_["peers"] = {
        {"static", {start_peer()}},
        {"dns", {"spoor.test:1"}},
        {"dns_servers", {dns_.address()}},
        {"tls",
         {{"ca", file(ca_.ca())},
          {"certificate", file(ca_.certificate("n1"))},
          {"key", file(ca_.key("n1"))}}},
        {"etcd", {{"endpoints", {etcd_.url()}}, {"url", "unix:" + (directory_ / "spoor.sock").native()}}}};
    start();
  }

  std::string start_peer() {
    fs::create_directory(directory_ / "peer-drive");
    const json config = {
        {"node", {{"name", "n2"}, {"data_dir", directory_ / "peer-data"}}},
        {"drives", {directory_ / "peer-drive"}},
        {"listen", {{{"address", support::own_loopback()}, {"port", 0}, {"insecure", true}}}}};
    std::ofstream(directory_ / "peer.json") << config;
    peer_.emplace(std::vector<std::string>{SPOORD, "--config", (directory_ / "peer.json").native()});
    return peer_->wait_for("listening on ");
  }

  support::CommandResult spoor(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {SPOOR, "--config", (directory_ / "spoor.json").native()});
    return support::run_command(arguments);
  }

  void post(const std::string& target, const std::string& body) {
    support::run_command({"curl", "-sS", "--unix-socket", directory_ / "spoor.sock", "-H",
                          "Content-Type: application/json", "-d", body, "http://localhost" + target});
  }

  void have_a_day() {
    const fs::path directory = directory_ / "drive/b/d";
    fs::create_directories(directory);
    std::ofstream(directory / "file", std::ios::app) << "12345";
    post("/v1/marks", R"({"paths":["b/d",".spoor/x"]})");
    post("/v1/marks", R"({"paths":["../x"]})");
    post("/v1/events/s3", R"({"Records":[{"eventName":"s3:Nobody:Knows"}]})");
    support::outlast_timestamp_step();
    const auto scanned = spoor({"scan"});
    EXPECT_EQ(scanned.code, 3) << "a drive is missing" << scanned.err;
    base::PosixFileSystem files;
    const peer::WatchedDrive watched{.drive = directory_ / "drive", .is_watched = true};
    post("/v1/watch", peer::watched_drive_json(watched).dump());
    scanner::PublishRecord publish;
    publish.sinks.push_back({.name = "bus", .events = 7, .error = "the sink fails"});
    EXPECT_TRUE(scanner::write_publish_record(files, directory_ / "data", publish));
  }

  // docs/monitoring/prometheus.yml with this node, its token and these rules, and faster.
  fs::path prometheus_config() {
    YAML::Node config = YAML::LoadFile(DOCS "/monitoring/prometheus.yml");
    config["global"]["evaluation_interval"] = "500ms";
    config["rule_files"][0] = rules_file;
    YAML::Node job = config["scrape_configs"][0];
    job["scrape_interval"] = "500ms";
    job["static_configs"][0]["targets"] =
        std::vector<std::string>{url_.substr(std::string("http://").size())};
    job["authorization"]["credentials_file"] = (directory_ / "token").native();
    std::ofstream(directory_ / "prometheus.yml") << config;
    return directory_ / "prometheus.yml";
  }

  // Waits until so many more scrapes have succeeded.
  void await_scrapes(double more) {
    const auto done = [&] {
      const json found = prometheus_->query("count_over_time(spoor_ready[1h])");
      return found.empty() ? 0 : std::stod(found[0]["value"][1].get<std::string>());
    };
    const double wanted = done() + more;
    ASSERT_TRUE(watch::eventually([&] { return done() >= wanted; })) << prometheus_->log();
  }

  // A day, one more with Prometheus at work, and all of it scraped.
  void observe() {
    daemon_->wait_for("is down");
    have_a_day();
    prometheus_.emplace(prometheus_config(), directory_ / "prometheus");
    await_scrapes(1);
    have_a_day();
    have_a_day();
    await_scrapes(3);
    ASSERT_TRUE(
        watch::eventually([&] { return !prometheus_->query("ALERTS{alertstate=\"firing\"}").empty(); }));
  }

  static constexpr const char* token = "0123456789abcdef0123456789abcdef";

  support::Certificates ca_;
  support::DnsServer dns_;
  support::EtcdServer etcd_;
  std::optional<support::Daemon> peer_;
  std::optional<Prometheus> prometheus_;
};

TEST_F(MonitoringTest, EachExpression_HasDataInARealPrometheus) {
  observe();
  for (const std::string& expression : dashboard_expressions()) {
    EXPECT_FALSE(prometheus_->query(with_variables(expression)).empty()) << expression;
  }
  EXPECT_EQ(prometheus_->query("spoor_node_info")[0]["metric"]["job"], "spoor") << "what the variables list";
  static const std::regex metric(R"(\bspoor_\w+|\bup\b)");
  std::size_t rules = 0;
  const json groups = prometheus_->get("/api/v1/rules").at("groups");
  for (const json& group : groups) {
    for (const json& rule : group.at("rules")) {
      ++rules;
      EXPECT_EQ(rule.at("health"), "ok") << rule;
      const std::string expression = rule.at("query");
      for (std::sregex_iterator found(expression.begin(), expression.end(), metric), end; found != end;
           ++found) {
        EXPECT_FALSE(prometheus_->query(found->str()).empty()) << rule.at("name") << ": " << found->str();
      }
    }
  }
  EXPECT_EQ(rules, alert_rules().size());
}

// Those that need no service manager; `spoor doctor` may be of a newer Spoor.
TEST_F(MonitoringTest, CommandsOfTroubleshooting_AreKnownToSpoor) {
  have_a_day();
  std::size_t run = 0;
  static const std::regex spoor_line(R"(^spoor ([^#\n]*))");
  for (const auto& block : support::page_blocks(troubleshooting)) {
    std::istringstream lines(block.text);
    for (std::string line; std::getline(lines, line);) {
      std::smatch found;
      if (!std::regex_search(line, found, spoor_line) || found[1].str().starts_with("doctor")) continue;
      std::istringstream words(found[1].str());
      const auto result = spoor({std::istream_iterator<std::string>(words), {}});
      EXPECT_TRUE(result.code == 0 || result.code == 3) << line << result.err;
      ++run;
    }
  }
  EXPECT_GE(run, 8U);
}

TEST_F(MonitoringTest, ScrapeConfiguration_PassesPromtool) {
  const auto checked = support::run_command({"promtool", "check", "config", prometheus_config()});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("SUCCESS: " + std::to_string(alert_rules().size()) + " rules found"));
}

}  // namespace
}  // namespace spoor::docs
