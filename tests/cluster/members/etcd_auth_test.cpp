// Two nodes, and a real etcd that authenticates its clients: by certificates, by users, or by both.
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>
#include <optional>
#include <set>
#include <utility>

#include "base/base64.h"
#include "base/clock.h"
#include "peer/http/credentials.h"
#include "peer/http/http_transport.h"
#include "peer/membership/etcd_client.h"
#include "peer/membership/etcd_registry.h"
#include "tests/cluster/cluster.h"
#include "tests/support/certificates.h"
#include "tests/support/etcd_server.h"
#include "tests/support/temp_directory.h"
#include "tests/support/tree_totals.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class EtcdAuthTest : public testing::Test {
 protected:
  EtcdAuthTest() {
    ca_.issue("etcd", support::own_loopback());
    ca_.issue_without_common_name("client");
    ca_.issue("named");
    other_ca_.issue("stranger");
    write_password(password);
  }

  static constexpr const char* password = "correct-horse";
  static constexpr const char* root_password = "battery-staple";

  void start_etcd(bool has_tls) {
    using Tls = support::EtcdServer::Tls;
    etcd_.emplace(has_tls ? std::optional(Tls{ca_.certificate("etcd"), ca_.key("etcd"), ca_.ca()})
                          : std::nullopt);
    if (has_tls) transport_.emplace(peer::HttpTransport::Options{.credentials = client_credentials()});
  }

  // The nodes with these members of `peers.etcd` beside the endpoint.
  void start_nodes(json settings) {
    settings["endpoints"] = {etcd_->url()};
    settings["ttl"] = "6s";
    cluster_.emplace(2, 1, std::move(settings));
  }

  // A node that no other node and no etcd has seen, with these members of `peers.etcd` instead.
  void start_new(Cluster::Node& node, const json& settings) {
    cluster_->stop(node);
    fs::remove_all(cluster_->data_dir_of(node));
    json config = json::parse(std::ifstream(cluster_->config_of(node)));
    json& etcd = config["peers"]["etcd"];
    for (const char* key : {"tls", "user", "password_file"}) etcd.erase(key);
    etcd.update(settings);
    std::ofstream(cluster_->config_of(node)) << config;
    cluster_->start(node);
  }

  static json tls_of(const fs::path& ca) { return {{"ca", ca}}; }
  json tls_of(const fs::path& ca, const std::string& client) const {
    return {{"ca", ca}, {"certificate", ca_.certificate(client)}, {"key", ca_.key(client)}};
  }
  json user() const { return {{"user", "spoor"}, {"password_file", password_file()}}; }
  json certificate() const { return {{"tls", tls_of(ca_.ca(), "client")}}; }

  fs::path password_file() const { return directory_ / "password"; }
  void write_password(const std::string& text) const { std::ofstream(password_file()) << text << '\n'; }

  // A request of etcd's administrator.
  json admin(const std::string& target, const json& body) {
    const auto response =
        peer::exchange(*transport_, {endpoint(), "POST", target, "application/json", body.dump(), token_});
    EXPECT_TRUE(response && response->is_success())
        << target << ' ' << (response ? response->body : "failed");
    return response ? json::parse(response->body, nullptr, false) : json();
  }

  // Users that may read and write the keys of this cluster (spoor), and no key (guest).
  void add_users() {
    for (const auto& [name, secret] :
         {std::pair{"root", root_password}, {"spoor", password}, {"guest", password}}) {
      admin("/v3/auth/user/add", {{"name", name}, {"password", secret}});
      admin("/v3/auth/role/add", {{"name", name}});
      admin("/v3/auth/user/grant", {{"user", name}, {"role", name}});
    }
    admin("/v3/auth/role/grant", {{"name", "spoor"},
                                  {"perm",
                                   {{"permType", "READWRITE"},
                                    {"key", base::to_base64("spoor/test/")},
                                    {"range_end", base::to_base64("spoor/test0")}}}});
  }

  void enable_auth() {
    add_users();
    admin("/v3/auth/enable", json::object());
  }

  void log_in() {
    const json answer = admin("/v3/auth/authenticate", {{"name", "root"}, {"password", root_password}});
    token_ = answer["token"];
  }

  base::Endpoint endpoint() const { return base::parse_endpoint(etcd_->url()).value(); }

  peer::Credentials client_credentials() const {
    return peer::make_credentials(
               {}, base::TlsClientFiles{ca_.ca(), ca_.certificate("client"), ca_.key("client")})
        .value();
  }

  // A daemon logs a new member once it has read the keys.
  void expect_reads_etcd(Cluster::Node& node, const std::string& ghost) {
    peer::EtcdClient client(*transport_, clock_, {endpoint()}, {.user = "root", .password = root_password});
    const peer::EtcdLocation location{"spoor", "test"};
    ASSERT_TRUE(peer::register_member(client, location, {ghost, "unix:/" + ghost, "i"}, {}, {}));
    EXPECT_FALSE(node.daemon->wait_for("member '" + ghost + "'").empty());
  }

  // On both drives, so that a scan of either node has to find it.
  peer::HttpResponse change_and_mark(const Cluster::Node& marker) {
    const std::string path = "bucket/d" + std::to_string(++changes_);
    for (const auto& node : cluster_->nodes()) {
      fs::create_directories(node.drives[0] / path);
      std::ofstream(node.drives[0] / path / "file") << "12345";
    }
    return request(marker, "POST", "/v1/marks", json{{"paths", {path}}}.dump());
  }

  // On the socket of the node: without the retries of `spoor mark`.
  peer::HttpResponse request(const Cluster::Node& node, const std::string& method, const std::string& target,
                             const std::string& body = {}) {
    peer::HttpTransport transport({.timeout = std::chrono::minutes(1)});
    const base::Endpoint socket{{}, 0, cluster_->socket_of(node).native()};
    return peer::exchange(transport, {socket, method, target, "application/json", body}).value();
  }

  void expect_complete_scan(const std::string& mode) {
    const auto& node = cluster_->nodes()[0];
    const json scan = cluster_->scan(node);
    EXPECT_EQ(scan["mode"], mode) << scan;
    EXPECT_EQ(scan["partial"], false);
    EXPECT_EQ(scan["peers"].size(), 2U);
    cluster_->expect_truth(node);
  }

  // That the cluster works, marks and scans.
  void expect_works() {
    EXPECT_EQ(cluster_->scan(cluster_->nodes()[0])["mode"], "full");
    EXPECT_EQ(change_and_mark(cluster_->nodes()[1]).status, 200U);
    expect_complete_scan("incremental");
    EXPECT_EQ(etcd_status(cluster_->nodes()[1]),
              json({{"ok", true}, {"error", nullptr}, {"registered", true}, {"members", 2}}));
  }

  // That a node which never was a member names this reason, and acknowledges no mark.
  void expect_refused(Cluster::Node& node, const testing::Matcher<std::string>& reason) {
    const auto marked = change_and_mark(node);
    EXPECT_EQ(marked.status, 503U);
    EXPECT_THAT(marked.body, HasSubstr("this node is new"));
    EXPECT_THAT(marked.body, reason);
    EXPECT_THAT(node.daemon->log(), reason);
    const json status = etcd_status(node);
    EXPECT_EQ(status["ok"], false);
    EXPECT_THAT(status["error"].get<std::string>(), reason);
    EXPECT_THAT(cluster_->spoor(node, {"members"}).err, reason);
    EXPECT_THAT(cluster_->scan(node, 3)["unknown_sources"].dump(), reason);
    EXPECT_THAT(node.daemon->log() + marked.body, Not(HasSubstr(password)));
  }

  void expect_check_fails(const Cluster::Node& node, const std::string& problem) const {
    const auto checked =
        support::run_command({SPOORD, "--config", cluster_->config_of(node).native(), "--check"});
    EXPECT_EQ(checked.code, 2);
    EXPECT_THAT(checked.err, HasSubstr(problem));
  }

  json etcd_status(const Cluster::Node& node) {
    return json::parse(request(node, "GET", "/v1/status").body)["membership"]["etcd"];
  }

  support::TempDirectory directory_;
  support::Certificates ca_{directory_.path(), "ca"};
  support::Certificates other_ca_{directory_.path(), "other-ca"};
  const base::SystemClock clock_;
  std::optional<support::EtcdServer> etcd_;
  std::optional<Cluster> cluster_;
  std::optional<peer::HttpTransport> transport_{std::in_place, peer::HttpTransport::Options{}};
  std::string token_;
  int changes_ = 0;
};

TEST_F(EtcdAuthTest, ClientCertificates_NodesRegisterAndScan) {
  start_etcd(true);
  start_nodes(certificate());
  expect_works();
  EXPECT_EQ(cluster_->spoor(cluster_->nodes()[0], {"members"}).code, 0);
}

TEST_F(EtcdAuthTest, CertificateRefused_NodeNamesTheEndAndAcknowledgesNoMarks) {
  start_etcd(true);
  start_nodes(certificate());
  auto& node = cluster_->nodes()[1];
  start_new(node, {{"tls", tls_of(ca_.ca())}});
  const auto refused_by_etcd =
      HasSubstr("etcd does not respond: " + etcd_->url() +
                ": cannot agree on TLS: the server refuses the certificate of this client: bad certificate");
  expect_refused(node, refused_by_etcd);
  start_new(node, {{"tls", tls_of(ca_.ca(), "stranger")}});  // of another CA
  expect_refused(node, refused_by_etcd);
  start_new(node, {{"tls", tls_of(other_ca_.ca(), "client")}});
  expect_refused(node, HasSubstr("this client refuses the certificate of the server: unable to get local "
                                 "issuer certificate"));
  start_new(node, {{"tls", tls_of(ca_.ca(), "named")}});
  EXPECT_EQ(change_and_mark(node).status, 200U);
}

TEST_F(EtcdAuthTest, CertificateRenewed_ReloadUsesIt) {
  start_etcd(true);
  const auto install = [&](const std::string& name) {
    const auto all = fs::copy_options::overwrite_existing;
    fs::copy_file(ca_.certificate(name), directory_ / "node.pem", all);
    fs::copy_file(ca_.key(name), directory_ / "node.key", all);
  };
  install("stranger");
  start_nodes({{"tls", tls_of(ca_.ca(), "node")}});
  auto& nodes = cluster_->nodes();
  for (const auto& node : nodes) EXPECT_EQ(change_and_mark(node).status, 503U);
  install("client");
  for (const auto& node : nodes) {
    node.daemon->signal(SIGHUP);
    EXPECT_FALSE(node.daemon->wait_for("registered in etcd as node").empty());
  }
  expect_works();
}

TEST_F(EtcdAuthTest, CertificateUnusableAtReload_TheOldOneStaysInUse) {
  start_etcd(true);
  start_nodes(certificate());
  auto& node = cluster_->nodes()[1];
  fs::rename(ca_.key("client"), directory_ / "aside.key");
  node.daemon->signal(SIGHUP);
  EXPECT_THAT(node.daemon->wait_for("the credentials for etcd stay as they were: "),
              HasSubstr("peers.etcd.tls: cannot use the key"));
  expect_check_fails(node, "peers.etcd.tls: cannot use the key");
  fs::rename(directory_ / "aside.key", ca_.key("client"));
  expect_works();
  ca_.issue("client", "127.0.0.1", -1);
  node.daemon->signal(SIGHUP);
  EXPECT_THAT(node.daemon->wait_for("the credentials for etcd stay as they were: the certificate "),
              HasSubstr("client.pem has expired"));
  expect_check_fails(node, "client.pem has expired");
  expect_reads_etcd(node, "later");
}

TEST_F(EtcdAuthTest, UserWithPermissionOnThePrefix_NodesRegisterAndScan) {
  start_etcd(false);
  enable_auth();
  start_nodes(user());
  expect_works();
  auto& nodes = cluster_->nodes();
  const auto listed = cluster_->spoor(nodes[0], {"members", "--json"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("\"n1\""));
  EXPECT_EQ(cluster_->stop(nodes[1]), 0);
  EXPECT_THAT(nodes[1].daemon->log(), Not(HasSubstr("counts as alive"))) << "it ended its lease";
  EXPECT_THAT(cluster_->spoor(nodes[0], {"members", "--json"}).out, HasSubstr("\"not registered\""));
}

TEST_F(EtcdAuthTest, UserRefused_NodeNamesTheReasonAndAcknowledgesNoMarks) {
  start_etcd(false);
  enable_auth();
  start_nodes(user());
  auto& node = cluster_->nodes()[1];
  json guest = user();
  guest["user"] = "guest";
  start_new(node, guest);
  expect_refused(
      node, HasSubstr("the request to etcd failed: " + etcd_->url() + ": etcdserver: permission denied"));
  start_new(node, json::object());
  expect_refused(node, HasSubstr("etcdserver: user name is empty"));
  json wrong = user();
  wrong["password_file"] = directory_ / "wrong";
  std::ofstream(directory_ / "wrong") << "correct-donkey";
  start_new(node, wrong);
  expect_refused(node, HasSubstr(etcd_->url() + ": user 'spoor': etcdserver: authentication failed, invalid "
                                                "user ID or password"));
  EXPECT_THAT(node.daemon->log(), Not(HasSubstr("correct-donkey")));
}

TEST_F(EtcdAuthTest, AuthenticationEnabledWhileNodesRun_TheyAuthenticate) {
  start_etcd(false);
  start_nodes(user());
  expect_works();
  enable_auth();
  EXPECT_EQ(change_and_mark(cluster_->nodes()[1]).status, 200U);
  expect_complete_scan("incremental");
  for (auto& node : cluster_->nodes()) {
    expect_reads_etcd(node, "after-" + node.name);
    EXPECT_THAT(node.daemon->log(), Not(HasSubstr("the request to etcd failed")));
  }
}

// Simple tokens are in the memory of etcd.
TEST_F(EtcdAuthTest, EtcdRestarted_NodesAuthenticateAgain) {
  start_etcd(false);
  enable_auth();
  start_nodes(user());
  expect_works();
  for (const auto& node : cluster_->nodes()) EXPECT_EQ(etcd_status(node)["ok"], true);
  etcd_->kill();
  etcd_->start_again();
  EXPECT_EQ(change_and_mark(cluster_->nodes()[1]).status, 200U);
  expect_complete_scan("incremental");
  for (auto& node : cluster_->nodes()) {
    expect_reads_etcd(node, "after-" + node.name);
    EXPECT_THAT(node.daemon->log(), Not(HasSubstr("invalid auth token")));
  }
}

TEST_F(EtcdAuthTest, PasswordRotated_ReloadUsesIt) {
  start_etcd(false);
  enable_auth();
  start_nodes(user());
  expect_works();
  const auto& nodes = cluster_->nodes();
  log_in();
  admin("/v3/auth/user/changepw", {{"name", "spoor"}, {"password", "rotated"}});
  for (const auto& node : nodes) {
    EXPECT_FALSE(node.daemon->wait_for("user 'spoor': etcdserver: authentication failed").empty());
  }
  EXPECT_EQ(change_and_mark(nodes[1]).status, 200U) << "it still is a member";
  EXPECT_EQ(cluster_->scan(nodes[0], 3)["mode"], "incremental");
  write_password("\xff");  // no text that JSON can hold
  nodes[0].daemon->signal(SIGHUP);
  EXPECT_THAT(nodes[0].daemon->wait_for("the credentials for etcd stay as they were: "),
              HasSubstr("must be one line of 1 to 512 bytes of UTF-8"));
  expect_check_fails(nodes[0], "peers.etcd: the password in");
  write_password("rotated");
  for (const auto& node : nodes) {
    node.daemon->signal(SIGHUP);
    EXPECT_FALSE(node.daemon->wait_for("etcd responds again").empty());
  }
  EXPECT_EQ(change_and_mark(nodes[1]).status, 200U);
  expect_complete_scan("incremental");
}

TEST_F(EtcdAuthTest, CertificateAndUser_BothAreRequired) {
  start_etcd(true);
  enable_auth();
  json both = certificate();
  both.update(user());
  start_nodes(both);
  expect_works();
  auto& node = cluster_->nodes()[1];
  start_new(node, certificate());
  // The second, where etcd takes its own certificate for that of the user.
  expect_refused(node, AnyOf(HasSubstr("user name is empty"), HasSubstr("permission denied")));
  json named = user();
  named["tls"] = tls_of(ca_.ca(), "named");
  start_new(node, named);
  expect_refused(node, HasSubstr("user 'spoor': HTTP status 400: CommonName of client sending a request"));
  json only_user = user();
  only_user["tls"] = tls_of(ca_.ca());
  start_new(node, only_user);
  expect_refused(node, HasSubstr("the server refuses the certificate of this client"));
}

}  // namespace
}  // namespace spoor::cluster
