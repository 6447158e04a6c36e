// The how-to guides: their commands and configurations, run as they stand there.
#include <gmock/gmock.h>
#include <yaml-cpp/yaml.h>

#include <fstream>
#include <map>
#include <set>

#include "tests/daemon/spoord_fixture.h"
#include "tests/docs/pages.h"
#include "tests/support/certificates.h"
#include "tests/support/dns_server.h"
#include "tests/support/etcd_server.h"
#include "tests/support/page_blocks.h"
#include "tests/watch/eventually.h"

namespace spoor::docs {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class GuidesTest : public daemon::SpoordTest {
 protected:
  std::string file(const std::string& name) const { return (directory_ / name).native(); }

  std::vector<BlockRun> run(const std::string& page, const Replacements& replacements = {}) {
    const auto runs = run_page(std::string(DOCS "/") + page, directory_.path(), replacements);
    for (const BlockRun& each : runs) EXPECT_EQ(each.code, 0) << each.command << each.printed;
    return runs;
  }

  // The block for JSON of this section, as an object.
  static json settings(const std::string& page, const std::string& section) {
    return json::parse('{' + support::page_blocks(DOCS "/" + page, section, "json").at(0) + '}');
  }
};

TEST_F(GuidesTest, MonitoringToken_MayRead) {
  fs::copy(DOCS "/monitoring", directory_.path(), fs::copy_options::recursive);
  fs::create_directory(directory_ / "prometheus");
  YAML::Node scraping = YAML::LoadFile(file("prometheus.yml"));
  scraping["scrape_configs"][0]["authorization"]["credentials_file"] = file("prometheus/spoor.token");
  std::ofstream(directory_ / "prometheus.yml") << scraping;
  const auto runs = run("monitoring/README.md", {{"/etc/prometheus", file("prometheus")}});
  const std::string hash = runs.at(0).printed.substr(0, 64);
  config_["auth"] = settings("monitoring/README.md", "Scraping")["auth"];
  config_["auth"]["tokens"][0]["sha256"] = hash;
  start();
  const auto scraped =
      support::run_command({"bash", "-c",
                            "curl -fsS -H \"Authorization: Bearer $(cat " + file("prometheus/spoor.token") +
                                ")\" " + url_ + "/metrics"});
  EXPECT_THAT(scraped.out, HasSubstr("spoor_ready 1"));
}

TEST_F(GuidesTest, ClientLibrary_MarksFromCAndPython) {
  const std::string socket = file("spoor.sock");
  config_["listen"].push_back({{"unix", socket}});
  start();
  run("client-library.md",
      {{"/run/spoor/spoor.sock", socket},
       {"docs/examples", DOCS "/examples"},
       {"$(pkg-config --cflags --libs spoor)", "-I" CLIENT " " LIBSPOOR " -Wl,-rpath," LIBSPOOR_FOLDER}});
  EXPECT_TRUE(get("/v1/dirty?path=bucket/object")["dirty"].get<bool>());
  const std::string script =
      replace_all(support::page_blocks(DOCS "/client-library.md", "Python", "python").at(0),
                  {{"Client()", "Client('" + socket + "')"}});
  const auto result =
      support::run_command({"env", "LD_LIBRARY_PATH=" LIBSPOOR_FOLDER, "PYTHONPATH=" CLIENT "/python",
                            "PYTHONDONTWRITEBYTECODE=1", "/usr/bin/python3", "-c", script});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(get("/v1/dirty?path=bucket/prefix/object")["dirty"].get<bool>());
}

TEST_F(GuidesTest, Publish_ConfigurationIsValid) {
  config_["publish"] = settings("publish.md", "Set-up")["publish"];
  for (json& sink : config_["publish"]["sinks"]) {
    for (const char* secret : {"token_file", "password_file"}) {
      if (!sink.contains(secret)) continue;
      sink[secret] = file(sink["name"]);
      std::ofstream(file(sink["name"])) << "0123456789abcdef";
    }
  }
  start();
  const auto runs =
      run("publish.md", {{"spoor-publish --check", "spoor-publish --config spoor.json --check"},
                         {"systemctl enable --now spoor-publish", "spoor --config spoor.json scan"},
                         {"spoor changes", "spoor --config spoor.json changes"}});
  EXPECT_THAT(runs.at(0).printed, HasSubstr("the configuration is valid, with 4 sinks"));
}

TEST_F(GuidesTest, EventsOfAQueue_AreMarkedOnceTheyAreAcknowledged) {
  // Stands for the program of the same name: one message in the queue, until it is deleted.
  fs::create_directory(directory_ / "bin");
  std::ofstream(directory_ / "message") << json{
      {"Messages",
       {{{"ReceiptHandle", "r1"},
         {"Body",
          R"({"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"photos"},"object":{"key":"2026/a.jpg"}}}]})"}}}}};
  std::ofstream(directory_ / "bin/aws")
      << "#!/bin/sh\ncase \"$2 $*\" in receive-message*) cat " << file("message")
      << " 2>/dev/null || true;; delete-message*\" r1\") rm " << file("message") << ";; *) exit 1;; esac\n";
  fs::permissions(directory_ / "bin/aws", fs::perms::owner_all);
  config_["listen"].push_back({{"unix", file("spoor.sock")}});
  config_["auth"]["tokens"] = {{{"name", "store"}, {"role", "mark"}, {"file", file("store-token")}}};
  std::ofstream(directory_ / "store-token") << "0123456789abcdef";
  start();
  const std::string forward = "if (url=http://" + support::own_loopback() + ":1; forward) || [ ! -e " +
                              file("message") + " ]; then exit 1; fi\nforward && forward\n";
  const auto runs = run("s3-events.md", {{"openssl rand -hex 32 > store-token", "true"},
                                         {"https://node1.storage.example:7420", url_},
                                         {"forward() {", "PATH=" + file("bin") + ":$PATH\nforward() {"},
                                         {"curl -fsS --unix-socket /run/spoor/spoor.sock \"http",
                                          forward + "curl -fsS --unix-socket /run/spoor/spoor.sock \"http"},
                                         {"/run/spoor/spoor.sock", file("spoor.sock")}});
  EXPECT_FALSE(fs::exists(directory_ / "message"));
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_THAT(runs[2].printed, HasSubstr("\"dirty\":true"));
  EXPECT_THAT(runs[3].printed, HasSubstr("spoor_marks_accepted_total 1\n"));
}

TEST_F(GuidesTest, Etcd_NodeRegistersWithTlsAndAsItsUser) {
  const support::Certificates ca(directory_.path(), "etcd-ca");
  ca.issue("etcd", support::own_loopback());
  const support::EtcdServer etcd(support::EtcdServer::Tls{ca.certificate("etcd"), ca.key("etcd"), {}});
  const std::string environment =
      "export ETCDCTL_ENDPOINTS=" + etcd.url() + " ETCDCTL_CACERT=" + ca.ca().native() + "\n";
  config_["peers"] = settings("cluster.md", "etcd")["peers"];
  json& settings_of_etcd = config_["peers"]["etcd"];
  settings_of_etcd["endpoints"] = {etcd.url()};
  settings_of_etcd["url"] = "unix:" + file("spoor.sock");
  for (json* path : {&settings_of_etcd["tls"]["ca"], &settings_of_etcd["password_file"]}) {
    *path = file(path->get<std::string>().substr(std::string("/etc/spoor/").size()));
  }
  config_["listen"].push_back({{"unix", file("spoor.sock")}});
  write_config();
  // The page leaves the start of the daemon to systemd.
  const std::string enable = environment +
                             "etcdctl user add root:secret\netcdctl user grant-role root root\n"
                             "etcdctl auth enable\nspoord --config spoor.json &\nuntil [ -S spoor.sock ] && "
                             "spoor --config spoor.json status > status; do sleep 0.1; done\n";
  const auto runs = run("cluster.md", {{"openssl rand", environment + "openssl rand"},
                                       {"spoor members\n", enable + "spoor --config spoor.json members\n"},
                                       {"spoor status\n", "spoor --config spoor.json status\n"}});
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_THAT(lasting(runs[1].printed), HasSubstr("n1 unix:" + file("spoor.sock") + " this node up"));
  EXPECT_THAT(runs[1].printed, HasSubstr("\netcd "));
}

class KubernetesTest : public GuidesTest {
 protected:
  KubernetesTest() {
    for (const YAML::Node& document : YAML::LoadAllFromFile(DOCS "/kubernetes/spoor.yaml")) {
      documents_[document["kind"].as<std::string>()] = document;
    }
    pod_ = documents_.at("DaemonSet")["spec"]["template"];
    settings_ = json::parse(std::ifstream(DOCS "/kubernetes/spoor.json"), nullptr, true, true);
  }

  YAML::Node container(const std::string& name) const {
    for (const auto& each : pod_["spec"]["containers"]) {
      if (each["name"].as<std::string>() == name) return each;
    }
    throw std::out_of_range(name);
  }

  // What the kubelet runs, for a node of this name, with the files of this test. The end of a container ends
  // all of its processes, also one that was just started when the shell sent it the signal, and lost that;
  // here it would keep the log open. So it waits for the shell itself.
  std::vector<std::string> command_of(const std::string& name) const {
    auto command = container(name)["command"].as<std::vector<std::string>>();
    for (std::string& word : command) {
      word = replace_all(
          word, {{"$(NODE_NAME)", "worker-1"},
                 {"sleep 900", "tail --pid $$ -f /dev/null"},
                 {"spoor --set", std::string(SPOOR) + " --config " + file("spoor.json") + " --set"}});
    }
    return command;
  }

  // The same on this machine: its folders, and a DNS server that refuses the name of the service.
  void adapt(const support::DnsServer& dns) {
    settings_["node"]["data_dir"] = file("data");
    settings_["drives"] = {file("drive")};
    settings_["listen"] = {{{"unix", file("spoor.sock")}}};
    settings_["peers"]["dns_servers"] = {dns.address()};
    settings_["watch"]["timeout"] = "1ms";  // it does not run here
    settings_["peers"]["token_file"] = file("nodes");
    settings_["auth"]["tokens"][0]["file"] = file("nodes");
    settings_["auth"]["tokens"][1]["file"] = file("writers");
    config_ = settings_;
    write_config();
  }

  std::map<std::string, YAML::Node> documents_;
  YAML::Node pod_;
  json settings_;
};

TEST_F(KubernetesTest, Manifest_MountsWhatTheConfigurationNames) {
  std::set<std::string> volumes;
  for (const auto& volume : pod_["spec"]["volumes"]) volumes.insert(volume["name"].as<std::string>());
  for (const char* name : {"spoord", "scan", "watch"}) {
    std::set<std::string> mounted;
    for (const auto& mount : container(name)["volumeMounts"]) {
      mounted.insert(mount["mountPath"].as<std::string>());
      EXPECT_EQ(volumes.count(mount["name"].as<std::string>()), 1U) << mount;
    }
    std::set<std::string> named = {settings_["node"]["data_dir"], "/etc/spoor"};
    for (const json& drive : settings_["drives"]) named.insert(drive.get<std::string>());
    for (const fs::path path : {settings_["listen"][0]["unix"].get<std::string>(),
                                settings_["peers"]["token_file"].get<std::string>(),
                                settings_["auth"]["tokens"][1]["file"].get<std::string>()}) {
      named.insert(path.parent_path());
    }
    EXPECT_EQ(mounted, named) << name;
  }
}

TEST_F(KubernetesTest, Manifest_ServiceFindsThePods) {
  const YAML::Node service = documents_.at("Service");
  const auto name = [](const YAML::Node& node) { return node["metadata"]["name"].as<std::string>(); };
  EXPECT_EQ(service["spec"]["clusterIP"].as<std::string>(), "None");
  EXPECT_EQ(settings_["peers"]["dns"][0],
            name(service) + '.' + service["metadata"]["namespace"].as<std::string>() + ".svc.cluster.local");
  EXPECT_EQ(service["spec"]["selector"]["app"].as<std::string>(),
            pod_["metadata"]["labels"]["app"].as<std::string>());
  EXPECT_EQ(documents_.at("DaemonSet")["spec"]["selector"]["matchLabels"]["app"].as<std::string>(),
            pod_["metadata"]["labels"]["app"].as<std::string>());
  EXPECT_EQ(service["spec"]["ports"][0]["port"].as<int>(), settings_["listen"][1]["port"].get<int>());
}

TEST_F(KubernetesTest, Containers_RunTheDaemonAndScans) {
  fs::copy_file(DOCS "/kubernetes/spoor.json", directory_ / "spoor.json");
  const auto runs = run("kubernetes/README.md");
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].printed, "the configuration is valid\n");
  const support::DnsServer dns({});
  adapt(dns);
  auto command = command_of("spoord");
  ASSERT_EQ(command[0], "spoord");
  command[0] = SPOORD;
  command.insert(command.end(), {"--config", file("spoor.json")});
  auto check = command;
  check.emplace_back("--check");
  EXPECT_EQ(support::run_command(check).code, 0) << "also with its tokens";
  support::Daemon daemon(command);
  ASSERT_FALSE(daemon.wait_for("listening on unix:").empty()) << daemon.log();
  support::Daemon scans(command_of("scan"));
  const auto scanned = [&] {
    return support::run_command({SPOOR, "--config", file("spoor.json"), "scans", "--json"}).code == 0;
  };
  EXPECT_TRUE(watch::eventually(scanned)) << scans.log();
  scans.signal(SIGTERM);
  EXPECT_EQ(scans.wait(), 0) << "the shell does not wait for its sleep";
  const auto status = support::run_command({SPOOR, "--config", file("spoor.json"), "status"});
  EXPECT_THAT(lasting(status.out), HasSubstr("node worker-1 of cluster storage")) << status.err;
}

}  // namespace
}  // namespace spoor::docs
