// Real nodes that find each other by the SRV records of a real DNS server.
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

#include "peer/http/http_transport.h"
#include "tests/cluster/cluster.h"
#include "tests/support/certificates.h"
#include "tests/support/dns_server.h"
#include "tests/support/loopback.h"
#include "tests/support/tree_totals.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

// Node 0 finds the others by the DNS.
class DnsTest : public testing::Test {
 protected:
  DnsTest() {
    cluster_.configure(cluster_.nodes()[0], [this](json& config) {
      config["peers"] = {
          {"static", json::array()}, {"dns", {"srv:_spoor._tcp.test"}}, {"dns_servers", {dns_.address()}}};
    });
    for (const auto& node : cluster_.nodes()) list(node);
    publish();
  }

  // The address at which the node listens now, with the next publish().
  void list(const Cluster::Node& node) {
    const std::string port = node.daemon->wait_for("listening on http://" + support::own_loopback() + ":");
    ASSERT_FALSE(port.empty()) << node.daemon->log();
    records_[node.name] = "--srv-host=_spoor._tcp.test,node.test," + port;
  }

  void publish() {
    std::vector<std::string> records{"--host-record=node.test," + support::own_loopback()};
    for (const auto& [name, record] : records_) records.push_back(record);
    dns_.restart(records);
  }

  Cluster cluster_{3, 1};
  support::DnsServer dns_{{}};
  std::map<std::string, std::string> records_;
};

TEST_F(DnsTest, SrvRecords_ScanFindsAllNodes) {
  const auto& nodes = cluster_.nodes();
  const auto first = cluster_.scan(nodes[0]);
  EXPECT_EQ(first["peers"].size(), 3U) << "the node itself is in the list, and asked once";
  cluster_.change_and_tell(nodes[2]);
  EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "incremental");
  cluster_.expect_truth(nodes[0]);
}

// As in Kubernetes: the address leaves the name when the node goes, and another one comes with it.
TEST_F(DnsTest, Node_BackAtAnotherAddress_BringsItsMarks) {
  auto& nodes = cluster_.nodes();
  cluster_.scan(nodes[0]);
  cluster_.change_and_tell(nodes[2]);
  cluster_.stop(nodes[2]);
  records_.erase("n2");
  publish();
  const auto partial = cluster_.scan(nodes[0], 3);
  EXPECT_EQ(partial["partial"], true) << "its address is still asked";
  EXPECT_EQ(partial["mode"], "incremental");

  cluster_.start(nodes[2]);
  list(nodes[2]);
  publish();
  EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "incremental");
  cluster_.expect_truth(nodes[0]);
}

TEST_F(DnsTest, DnsServerDown_LastKnownMembersAreAsked) {
  const auto& nodes = cluster_.nodes();
  cluster_.scan(nodes[0]);
  cluster_.change_and_tell(nodes[2]);
  dns_.stop();
  const auto partial = cluster_.scan(nodes[0], 3, {"--set", "peers.timeout=5s"});
  EXPECT_EQ(partial["mode"], "incremental") << "nobody is taken to be gone";
  EXPECT_EQ(partial["peers"].size(), 3U) << partial;
  cluster_.expect_truth(nodes[0]);

  publish();
  EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "incremental");
}

TEST(DnsUsageTest, MembersCannotBeListed_TheSumIsIncomplete) {
  Cluster cluster(1, 1);
  auto& node = cluster.nodes()[0];
  cluster.configure(node, [](json& config) {
    config["peers"]["dns"] = {"spoor.test"};
    config["peers"]["dns_servers"] = {support::own_loopback() + ":1"};  // where no server listens
  });
  cluster.scan(node, 3);
  const auto usage = cluster.spoor(node, {"usage", "--cluster"});
  EXPECT_EQ(usage.code, 3) << usage.out;
  EXPECT_THAT(usage.err, HasSubstr("members of dns"));
}

// Two nodes that reach each other by https alone. Each has a certificate for the target of its SRV record.
class DnsTlsTest : public testing::Test {
 protected:
  DnsTlsTest() {
    for (auto& node : cluster_.nodes()) {
      ca_.issue(node.name + ".test", support::own_loopback());
      start_with_tls(node);
    }
    publish();
  }

  // Its peers reach it by TCP, and scans of its own by the socket.
  void start_with_tls(Cluster::Node& node) {
    cluster_.stop(node);
    const std::string name = node.name + ".test";
    json config = json::parse(std::ifstream(cluster_.config_of(node)));
    const json listener{
        {"address", support::own_loopback()},
        {"port", 0},
        {"tls", {{"certificate", ca_.certificate(name)}, {"key", ca_.key(name)}, {"client_ca", ca_.ca()}}}};
    config["listen"] = {listener, {{"unix", cluster_.socket_of(node)}}};
    config["auth"]["certificates"] = {{{"name", "*.test"}, {"role", "peer"}}};
    config["peers"] = {
        {"dns", {"srv:_spoor._tcp.test"}},
        {"dns_servers", {dns_.address()}},
        {"dns_tls", true},
        {"tls", {{"ca", ca_.ca()}, {"certificate", ca_.certificate(name)}, {"key", ca_.key(name)}}}};
    std::ofstream(cluster_.config_of(node)) << config;
    cluster_.start(node);
  }

  void publish() {
    std::vector<std::string> records;
    for (const auto& node : cluster_.nodes()) {
      const std::string port = node.daemon->wait_for("listening on https://" + support::own_loopback() + ":");
      ASSERT_FALSE(port.empty()) << node.daemon->log();
      urls_[node.name] = "https://" + support::own_loopback() + ":" + port + "#" + node.name + ".test";
      records.push_back("--host-record=" + node.name + ".test," + support::own_loopback());
      records.push_back("--srv-host=_spoor._tcp.test," + node.name + ".test," + port);
    }
    dns_.restart(records);
  }

  support::DnsServer dns_{{}};
  support::TempDirectory directory_;
  support::Certificates ca_{directory_.path(), "ca"};
  Cluster cluster_{2, 1};
  std::map<std::string, std::string> urls_;
};

TEST_F(DnsTlsTest, CertificateForTheSrvTarget_MembersAreReadByHttps) {
  const auto& nodes = cluster_.nodes();
  EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "full");
  cluster_.change_and_tell(nodes[1]);
  const json scan = cluster_.scan(nodes[0]);
  EXPECT_EQ(scan["mode"], "incremental");
  EXPECT_THAT(scan["peers"].dump(), HasSubstr("n1"));
  cluster_.expect_truth(nodes[0]);
  // The daemon polls it, too, and not itself.
  nodes[0].daemon->signal(SIGHUP);  // polls at once
  EXPECT_EQ(nodes[0].daemon->wait_for("peer n1 (" + urls_["n1"] + ") is "), "up");
  const json peers = cluster_.status(nodes[0])["peers"];
  EXPECT_EQ(peers.size(), 1U) << peers;
}

// The address in the certificate is the right one: an address that only the DNS names proves nothing.
TEST_F(DnsTlsTest, CertificateForAnotherName_IsRefused) {
  auto& nodes = cluster_.nodes();
  cluster_.scan(nodes[0]);
  ca_.issue("n9.test", support::own_loopback());
  fs::copy_file(ca_.certificate("n9.test"), ca_.certificate("n1.test"), fs::copy_options::overwrite_existing);
  fs::copy_file(ca_.key("n9.test"), ca_.key("n1.test"), fs::copy_options::overwrite_existing);
  start_with_tls(nodes[1]);
  publish();
  const std::string refusal =
      "this client refuses the certificate of the server: it is not for this name or address";
  EXPECT_THAT(cluster_.scan(nodes[0], 3)["peers"].dump(), HasSubstr(refusal));
  nodes[0].daemon->signal(SIGHUP);  // polls at once
  EXPECT_THAT(nodes[0].daemon->wait_for(urls_["n1"] + ") is down: "), HasSubstr(refusal));
}

TEST_F(DnsTlsTest, DnsDown_StatusAndMetricsReportIt) {
  auto& node = cluster_.nodes()[0];
  const auto expect_shown = [&](bool is_ok, const std::string& error) {
    const json names = cluster_.status(node)["membership"]["dns"];
    ASSERT_EQ(names.size(), 1U);
    EXPECT_EQ(names[0]["source"], "srv:_spoor._tcp.test");
    EXPECT_EQ(names[0]["ok"], is_ok);
    EXPECT_EQ(names[0]["error"], is_ok ? json(nullptr) : json(error));
    EXPECT_EQ(names[0]["members"], 2);
    const std::string text = cluster_.spoor(node, {"status"}).out;
    EXPECT_THAT(text, HasSubstr("\ndns        srv:_spoor._tcp.test: 2 members known\n"));
    EXPECT_EQ(text.find("failing: " + error + "\n") == std::string::npos, is_ok) << text;
    peer::HttpTransport transport({});
    const base::Endpoint socket{{}, 0, cluster_.socket_of(node).native()};
    const auto metrics = peer::exchange(transport, {socket, "GET", "/metrics", {}, {}}).value().body;
    const std::string label = "{source=\"srv:_spoor._tcp.test\"} ";
    EXPECT_THAT(metrics, HasSubstr("\nspoor_dns_ok" + label + (is_ok ? "1\n" : "0\n")));
    EXPECT_THAT(metrics, HasSubstr("\nspoor_dns_members" + label + "2\n"));
  };
  node.daemon->signal(SIGHUP);  // polls at once
  node.daemon->wait_for("peer n1 (");
  expect_shown(true, "");
  dns_.stop();
  node.daemon->signal(SIGHUP);
  const std::string error = node.daemon->wait_for("peers.dns: srv:_spoor._tcp.test: ");
  EXPECT_NE(error, "");
  expect_shown(false, error);
}

}  // namespace
}  // namespace spoor::cluster
