// Who may do what, against a running spoord: every role at every route, over TCP, TLS and the Unix socket.
#include <gmock/gmock.h>
#include <unistd.h>

#include <map>

#include "tests/daemon/spoord_fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/raw_client.h"

namespace spoor::daemon {
namespace {

using nlohmann::json;

struct Route {
  const char* method;
  const char* target;
  const char* body = "";
};

constexpr Route alive{"GET", "/livez"};
constexpr Route marks{"POST", "/v1/marks", R"({"paths":["a"]})"};
constexpr Route status{"GET", "/v1/status"};
constexpr Route snapshot{"POST", "/v1/snapshot"};

class SpoordAuthTest : public SpoordTest {
 protected:
  unsigned status_of(const Route& route, const peer::Credentials& credentials) {
    return status_of(route, base::parse_endpoint(url_).value(), credentials);
  }

  static unsigned status_of(const Route& route, const base::Endpoint& endpoint,
                            const peer::Credentials& credentials) {
    peer::HttpTransport transport({.credentials = credentials, .timeout = std::chrono::minutes(2)});
    const std::string body = route.body;
    const auto answer = peer::exchange(
        transport, {endpoint, route.method, route.target, body.empty() ? "" : "application/json", body});
    return answer ? answer->status : 0;
  }
};

TEST_F(SpoordAuthTest, RefusedCaller_IsLoggedOnceAMinuteWithAddressAndTokenHash) {
  give_tokens();
  start();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of(marks, {"nobody-has-given-this-token", nullptr}), 401U);
  EXPECT_EQ(status_of(marks, {token_of("read"), nullptr}), 403U);
  EXPECT_EQ(status_of(marks, {}), 401U);
  // printf %s nobody-has-given-this-token | sha256sum
  const std::string unknown =
      "refused POST /v1/marks from 127.0.0.1 (unknown token, SHA-256 d43e1e95...): unauthorized";
  EXPECT_EQ(daemon_->wait_for("(anonymous): "), "unauthorized");
  const std::string log = daemon_->log();
  const auto first = log.find(unknown);
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(unknown, first + 1), std::string::npos) << "once";
  EXPECT_NE(log.find("(token read): forbidden"), std::string::npos) << log;
  EXPECT_EQ(log.find("nobody-has"), std::string::npos) << "secret";
  EXPECT_EQ(log.find(token_of("read")), std::string::npos) << "secret";
}

TEST_F(SpoordAuthTest, Marks_AreCountedByIdentity) {
  give_tokens();
  config_["listen"].push_back({{"unix", directory_ / "socket"}});
  start();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(status_of(marks, {token_of("mark"), nullptr}), 200U);
  EXPECT_EQ(status_of(marks, {token_of("admin"), nullptr}), 200U);
  base::Endpoint socket;
  socket.unix_path = (directory_ / "socket").native();
  EXPECT_EQ(status_of(marks, socket, {}), 200U);
  peer::HttpTransport transport({.credentials = {token_of("read"), nullptr}});
  const auto ask = [&](const char* target) {
    return peer::exchange(transport, {base::parse_endpoint(url_).value(), "GET", target, "", ""})->body;
  };
  const std::string uid = "uid " + std::to_string(::geteuid());
  const auto identities = json::parse(ask("/v1/status"))["writers"];
  ASSERT_EQ(identities.size(), 3U) << identities;
  EXPECT_EQ(identities[0]["identity"], "token admin");
  EXPECT_EQ(identities[1]["identity"], "token mark");
  EXPECT_EQ(identities[1]["accepted"], 2);
  EXPECT_EQ(identities[2]["identity"], uid);
  const std::string family = "\nspoor_marks_accepted_by_identity_total{identity=\"";
  const std::string metrics = ask("/metrics");
  EXPECT_NE(metrics.find(family + "token mark\"} 2\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find(family + uid + "\"} 1\n"), std::string::npos) << metrics;
}

// What is refused before it is read was no refused mark, and nobody was alarmed.
TEST_F(SpoordAuthTest, MarksRefusedUnread_AreCountedAsRejected) {
  give_tokens();
  config_["limits"]["max_body"] = "1KiB";
  start();
  const auto send = [&](const std::string& role, const std::string& rest) {
    support::RawClient client(port());
    client.send("POST /v1/marks HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\nConnection: close\r\n" +
                (role.empty() ? "" : "Authorization: Bearer " + token_of(role) + "\r\n") + rest);
    return client.receive_all().substr(0, 12);
  };
  EXPECT_EQ(send("", "Content-Length: 1\r\n\r\na"), "HTTP/1.1 401");
  EXPECT_EQ(send("read", "Content-Length: 1\r\n\r\na"), "HTTP/1.1 403");
  EXPECT_EQ(send("mark", "\r\n"), "HTTP/1.1 411");
  EXPECT_EQ(send("mark", "Content-Length: 2000\r\n\r\n"), "HTTP/1.1 413");
  EXPECT_EQ(send("mark", "Authorization: Bearer x\r\n\r\n"), "HTTP/1.1 400") << "which one counts?";
  EXPECT_EQ(send("mark", "Content-Length: 1\r\n\r\na"), "HTTP/1.1 200");
  peer::HttpTransport transport({.credentials = {token_of("read"), nullptr}});
  const auto endpoint = base::parse_endpoint(url_).value();
  const auto ask = [&](const char* what) {
    return peer::exchange(transport, {endpoint, "GET", what, "", ""}).value().body;
  };
  EXPECT_EQ(json::parse(ask("/v1/status"))["marks"]["rejected"], 4);
  const std::string metrics = ask("/metrics");
  for (const char* line : {"spoor_mark_requests_rejected_total 4",
                           "spoor_http_problems_total{code=\"unauthorized\",route=\"/v1/marks\"} 1",
                           "spoor_http_problems_total{code=\"body_too_large\",route=\"/v1/marks\"} 1",
                           "spoor_http_unread_requests_total{code=\"invalid_request\"} 1"}) {
    EXPECT_NE(metrics.find("\n" + std::string(line) + "\n"), std::string::npos) << line << metrics;
  }
}

// All that would keep it from starting, at once; what only systemd gives can't be told.
TEST_F(SpoordAuthTest, CheckOption_MissingFilesAndGroups_AreAllReported) {
  give_tokens();
  config_["auth"]["tokens"].push_back({{"name", "s"}, {"role", "mark"}, {"file", "credential:s"}});
  write_config();
  const auto good = run_spoord({"--check"});
  EXPECT_EQ(good.code, 0) << good.err;
  std::filesystem::remove(directory_ / "peer");
  std::filesystem::remove(directory_ / "read");
  config_["listen"].push_back({{"unix", directory_ / "s.sock"}, {"group", "nosuch"}});
  config_["listen"][0]["tls"] = {{"certificate", directory_ / "none.pem"}, {"key", directory_ / "none.key"}};
  config_["peers"]["token_file"] = directory_ / "none.token";
  write_config();
  const auto found = run_spoord({"--check"});
  EXPECT_EQ(found.code, 2);
  for (const char* what :
       {"/peer", "/read", "s.sock: this machine knows no group 'nosuch'", "none.pem", "none.token"})
    EXPECT_NE(found.err.find(what), std::string::npos) << what << " in " << found.err;
}

TEST_F(SpoordAuthTest, Reload_TokenFileChanged_NewTokenIsUsed) {
  give_tokens();
  start();
  ASSERT_EQ(status_of(status, {token_of("read"), nullptr}), 200U);
  std::ofstream(directory_ / "read") << "quite-another-token\n";
  daemon_->signal(SIGHUP);
  daemon_->wait_for("reloaded: ");
  EXPECT_EQ(status_of(status, {token_of("read"), nullptr}), 401U);
  EXPECT_EQ(status_of(status, {"quite-another-token", nullptr}), 200U);
  // It was said to be taken over, and a token that was taken away went on working.
  std::filesystem::remove(directory_ / "read");
  config_["auth"]["tokens"].erase(0);
  config_["peers"]["static"] = {"http://127.0.0.1:1"};
  write_config();
  const std::size_t before = daemon_->log().size();
  daemon_->signal(SIGHUP);
  EXPECT_EQ(daemon_->wait_for("reloaded: ", before), "peers.static");
  EXPECT_NE(daemon_->log().find("auth stays as it was", before), std::string::npos);
  EXPECT_EQ(status_of(status, {"quite-another-token", nullptr}), 200U);
}

TEST_F(SpoordAuthTest, Commands_TokenFileGiven_SendTheToken) {
  give_tokens();
  start();
  const auto token = [&](const std::string& role) { return (directory_ / role).native(); };
  EXPECT_EQ(spoor({"mark", "--timeout", "0", "a/b"}).code, 1);
  EXPECT_EQ(spoor({"--token-file", token("mark"), "mark", "a/b"}).code, 0);
  EXPECT_EQ(spoor({"--token-file", token("mark"), "status"}).code, 1);
  EXPECT_EQ(spoor({"--token-file", token("read"), "status"}).code, 0);
  const std::string socket = "unix:" + (directory_ / "s.sock").native();
  EXPECT_EQ(support::run_command({SPOOR, "--url", socket, "--token-file", "/none", "status"}).code, 2)
      << "the one that was given is read, whatever the way";
  EXPECT_EQ(spoor({"scan"}).code, 1) << "nobody answers it";
  EXPECT_EQ(spoor({"--token-file", token("peer"), "scan"}).code, 1) << "it names addresses to ask";
  EXPECT_EQ(spoor({"--token-file", token("admin"), "scan"}).code, 0);
  EXPECT_EQ(spoor({"--set", "peers.token_file=" + token("admin"), "scan"}).code, 0);
}

TEST_F(SpoordAuthTest, UnixSocketCaller_GetsTheRolesOfItsUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be somebody else";
  std::filesystem::permissions(directory_ / ".", std::filesystem::perms::all);
  config_["listen"].push_back({{"unix", directory_ / "s.sock"}, {"mode", "0666"}});
  start();
  daemon_->wait_for("listening on unix:");
  const auto as_nobody = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "curl", "-s", "-o",
                      "/dev/null", "-w", "%{http_code}", "--unix-socket", (directory_ / "s.sock").native()});
    return support::run_command(arguments).out;
  };
  EXPECT_EQ(as_nobody({"-H", "Content-Type: text/plain", "-d", "a", "http://x/v1/marks"}), "200");
  EXPECT_EQ(as_nobody({"http://x/v1/status"}), "200");
  EXPECT_EQ(as_nobody({"-X", "POST", "http://x/v1/snapshot"}), "403");
  base::Endpoint socket;
  socket.unix_path = (directory_ / "s.sock").native();
  EXPECT_EQ(status_of(snapshot, socket, {}), 200U) << "root may";
  config_["auth"]["unix"] = {{{"user", "nobody"}, {"role", "read"}}};
  std::ofstream(config_file()) << config_;
  daemon_->signal(SIGHUP);
  daemon_->wait_for("reloaded: ");
  EXPECT_EQ(as_nobody({"-H", "Content-Type: text/plain", "-d", "a", "http://x/v1/marks"}), "403");
  EXPECT_EQ(as_nobody({"http://x/v1/status"}), "200");
}

TEST_F(SpoordAuthTest, Commands_AccessDenied_NameTheGroupToJoin) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  const auto data_dir = directory_ / "data";
  std::filesystem::permissions(directory_ / ".", std::filesystem::perms::all);
  config_["auth"]["tokens"] = json::array();
  config_["listen"].push_back({{"unix", directory_ / "s.sock"}, {"group", "games"}});
  start();
  daemon_->wait_for("listening on unix:");
  const auto as_nobody = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SPOOR,
                                         "--config", config_file()});
    const auto result = support::run_command(arguments);
    EXPECT_EQ(result.code, 1);
    return result.err;
  };
  ASSERT_EQ(run({SPOOR, "--config", config_file()}, {"scan"}).code, 0);
  ASSERT_EQ(support::run_command({"chgrp", "games", data_dir.native()}).code, 0);
  ASSERT_EQ(support::run_command({"chmod", "0750", data_dir.native()}).code, 0);
  const auto names_group = testing::HasSubstr("join the group games: usermod -aG games USER");
  EXPECT_THAT(as_nobody({"status"}), names_group);
  EXPECT_THAT(as_nobody({"--url", url_, "status"}), names_group);
  EXPECT_THAT(as_nobody({"mark", "--timeout", "0", "a"}), names_group);
  for (const char* command : {"usage", "scans"}) EXPECT_THAT(as_nobody({command}), names_group);

  ASSERT_EQ(support::run_command({"chgrp", "games", config_file()}).code, 0);
  ASSERT_EQ(support::run_command({"chmod", "0640", config_file()}).code, 0);
  EXPECT_THAT(as_nobody({"--url", url_, "status"}),
              testing::AllOf(names_group, testing::HasSubstr("none was sent: cannot read " + config_file())));
}

class SpoordTlsTest : public SpoordAuthTest {
 protected:
  SpoordTlsTest() {
    const std::string address = support::own_loopback();
    good_.issue("server.example", address);
    good_.issue("node.example");
    good_.issue("other.example");
    good_.issue_for_address("node.by-address", "10.0.0.2");
    good_.issue("expired.example", "127.0.0.1", -1);
    foreign_.issue("node.example.foreign");
    config_["listen"] = {{{"address", address},
                          {"port", 0},
                          {"tls",
                           {{"certificate", good_.certificate("server.example")},
                            {"key", good_.key("server.example")},
                            {"client_ca", good_.ca()}}}}};
    config_["auth"]["certificates"] = {{{"name", "node.*"}, {"role", "peer"}}};
  }

  peer::Credentials credentials(const support::Certificates& authority, const std::string& name) {
    base::TlsClientFiles files{good_.ca(), {}, {}};
    if (!name.empty()) files = {good_.ca(), authority.certificate(name), authority.key(name)};
    return peer::make_credentials("", files).value();
  }

  // The response of this target to a peer, by curl.
  std::string curl(const std::string& target) {
    return support::run_command({"curl", "-s", "--cacert", good_.ca().native(), "--cert",
                                 good_.certificate("node.example").native(), "--key",
                                 good_.key("node.example").native(), url_ + target})
        .out;
  }

  const support::Certificates good_{directory_ / ".", "authority"};
  const support::Certificates foreign_{directory_ / ".", "foreign"};
};

TEST_F(SpoordTlsTest, ClientCertificate_GrantsTheRolesOfItsName) {
  start();
  ASSERT_EQ(url_.rfind("https://", 0), 0U) << url_;
  EXPECT_EQ(status_of(status, credentials(good_, "node.example")), 200U);
  EXPECT_EQ(status_of(marks, credentials(good_, "node.example")), 403U) << "a peer does not mark";
  EXPECT_EQ(status_of(status, credentials(good_, "other.example")), 403U);
  EXPECT_EQ(status_of(status, credentials(good_, "node.by-address")), 200U) << "by its common name";
  EXPECT_EQ(status_of(status, credentials(good_, "")), 401U);
  EXPECT_EQ(status_of(alive, credentials(good_, "")), 200U);
  EXPECT_EQ(status_of(alive, credentials(good_, "expired.example")), 0U) << "no connection";
  EXPECT_EQ(status_of(alive, credentials(foreign_, "node.example.foreign")), 0U) << "no connection";
}

TEST_F(SpoordTlsTest, Client_ServerCertificateOfUnknownAuthority_DoesNotConnect) {
  start();
  peer::Credentials believes_another =
      peer::make_credentials("", base::TlsClientFiles{foreign_.ca(), {}, {}}).value();
  EXPECT_EQ(status_of(alive, believes_another), 0U);
  EXPECT_EQ(status_of(alive, {}), 0U) << "the system's authorities do not know it";
}

TEST_F(SpoordTlsTest, Client_GetsTheNamesInTheServerCertificate) {
  start();
  peer::HttpTransport transport({.credentials = credentials(good_, "")});
  const peer::HttpRequest request{base::parse_endpoint(url_).value(), "GET", "/livez", "", ""};
  for (int times = 0; times < 2; ++times) {  // the second time over the same connection
    const auto answer = peer::exchange(transport, request);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->certificate_names, std::vector<std::string>{"server.example"});
  }
}

// An operator has to find out why two nodes do not meet, at either of them.
TEST_F(SpoordTlsTest, TlsHandshakeFailed_BothEndsReportWhy) {
  config_["listen"].push_back(config_["listen"][0]);
  config_["listen"][1]["tls"]["certificate"] = good_.certificate("node.example");  // for 127.0.0.1
  config_["listen"][1]["tls"]["key"] = good_.key("node.example");
  start();
  const std::string first = "listening on " + url_;
  const std::string misnamed = daemon_->wait_for("listening on ", daemon_->log().find(first) + first.size());
  const auto why = [](const std::string& url, const peer::Credentials& credentials) {
    peer::HttpTransport transport({.credentials = credentials});
    const auto endpoint = base::parse_endpoint(url).value();
    const auto answer = peer::exchange(transport, {endpoint, "GET", "/livez", "", ""});
    return answer ? std::string("none") : answer.error().message;
  };
  const auto believes_another =
      peer::make_credentials("", base::TlsClientFiles{foreign_.ca(), {}, {}}).value();
  const std::string unknown = why(url_, believes_another);
  EXPECT_NE(unknown.find("this client refuses the certificate of the server: self-signed certificate"),
            std::string::npos)
      << unknown;
  const std::string another = why(misnamed, credentials(good_, ""));
  EXPECT_NE(another.find("this client refuses the certificate of the server: it is not for this name"),
            std::string::npos)
      << another;
  EXPECT_NE(daemon_->wait_for("no TLS with 127.0.0.1: the client refuses the certificate of this daemon: "),
            "");
  // It learns of the refusal when it reads.
  EXPECT_EQ(
      why(url_, credentials(good_, "expired.example")),
      url_ + ": cannot agree on TLS: the server refuses the certificate of this client: certificate expired");
  EXPECT_EQ(daemon_->wait_for("no TLS with 127.0.0.1: this daemon refuses the certificate of the client: "),
            "certificate has expired");
  const std::string metrics = curl("/metrics");
  EXPECT_NE(metrics.find("\nspoor_http_tls_handshakes_failed_total "), std::string::npos) << metrics;
  EXPECT_EQ(metrics.find("\nspoor_http_tls_handshakes_failed_total 0\n"), std::string::npos);
  EXPECT_NE(metrics.find("\nspoor_tls_certificate_expiry_timestamp_seconds "), std::string::npos);
}

TEST_F(SpoordTlsTest, PeersTlsCertificates_AreInTheMetricsAndTheCheck) {
  const auto use = [&](const std::string& name) {
    config_["peers"]["tls"] = {
        {"ca", good_.ca()}, {"certificate", good_.certificate(name)}, {"key", good_.key(name)}};
  };
  use("node.example");
  start();
  const std::string metrics = curl("/metrics");
  for (const char* file : {"certificate", "ca"}) {
    const std::string series =
        "\nspoor_peers_tls_certificate_expiry_timestamp_seconds{file=\"" + std::string(file) + "\"} ";
    const auto found = metrics.find(series);
    ASSERT_NE(found, std::string::npos) << metrics;
    EXPECT_GT(std::stod(metrics.substr(found + series.size())), static_cast<double>(::time(nullptr)));
  }
  use("expired.example");
  write_config();
  const auto checked = run_spoord({"--check"});
  EXPECT_NE(checked.code, 0);
  EXPECT_NE(checked.err.find("expired.example.pem has expired"), std::string::npos) << checked.err;
  daemon_->signal(SIGHUP);
  EXPECT_NE(daemon_->wait_for("the credentials for peers stay as they were: ").find("has expired"),
            std::string::npos);
}

TEST_F(SpoordTlsTest, ExpiredCertificate_IsReportedAndNeverReplacesAValidOne) {
  good_.issue("late.example", support::own_loopback(), -1);
  const auto put = [&](const std::string& name) {
    const auto copy = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(good_.certificate(name), directory_ / "used.pem", copy);
    std::filesystem::copy_file(good_.key(name), directory_ / "used.key", copy);
  };
  config_["listen"][0]["tls"]["certificate"] = directory_ / "used.pem";
  config_["listen"][0]["tls"]["key"] = directory_ / "used.key";
  put("late.example");
  start();
  EXPECT_NE(daemon_->log().find("used.pem has expired"), std::string::npos) << daemon_->log();
  EXPECT_EQ(run_spoord({"--check"}).code, 2);
  daemon_->signal(SIGHUP);
  daemon_->wait_for("reloaded: no setting has changed");  // nothing better is in use: it holds up nothing
  EXPECT_EQ(daemon_->log().find("a certificate stays as it was"), std::string::npos);
  const std::size_t from = daemon_->log().size();
  put("server.example");
  daemon_->signal(SIGHUP);
  daemon_->wait_for("reloaded: ", from);
  EXPECT_EQ(status_of(alive, credentials(good_, "")), 200U);
  put("late.example");
  daemon_->signal(SIGHUP);
  daemon_->wait_for("a certificate stays as it was");
  EXPECT_EQ(status_of(alive, credentials(good_, "")), 200U);
}

TEST_F(SpoordTlsTest, PlainTextAndOldTlsVersions_AreRefused) {
  start();
  support::RawClient plain(port());
  plain.send("GET /livez HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(plain.receive_all().find("HTTP/1.1 200"), std::string::npos);
  const auto old = support::run_command({"curl", "-s", "--max-time", "20", "--cacert", good_.ca().native(),
                                         "--tls-max", "1.1", url_ + "/livez"});
  EXPECT_NE(old.code, 0);
  const auto now = support::run_command(
      {"curl", "-s", "--max-time", "20", "--cacert", good_.ca().native(), url_ + "/livez"});
  EXPECT_EQ(now.code, 0) << now.err;
}

TEST_F(SpoordTlsTest, Reload_CertificateChanged_NewOneIsUsed) {
  start();
  peer::Credentials believes_another =
      peer::make_credentials("", base::TlsClientFiles{foreign_.ca(), {}, {}}).value();
  foreign_.issue("new.example", support::own_loopback());
  const auto copy = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(foreign_.certificate("new.example"), good_.certificate("server.example"), copy);
  daemon_->signal(SIGHUP);
  daemon_->wait_for("a certificate stays as it was");  // it does not fit the key
  EXPECT_EQ(status_of(alive, credentials(good_, "")), 200U);
  std::filesystem::copy_file(foreign_.key("new.example"), good_.key("server.example"), copy);
  daemon_->signal(SIGHUP);
  while (status_of(alive, believes_another) != 200U) ASSERT_FALSE(HasFailure());
  EXPECT_EQ(status_of(alive, credentials(good_, "")), 0U);
}

TEST_F(SpoordTlsTest, Scan_OverTls_Succeeds) {
  config_["auth"]["certificates"][0]["role"] = "admin";
  config_["node"]["name"] = "server";
  config_["peers"]["tls"] = {{"ca", good_.ca()},
                             {"certificate", good_.certificate("node.example")},
                             {"key", good_.key("node.example")}};
  start();
  const auto scan = spoor({"scan", "--json"});
  EXPECT_EQ(scan.code, 0) << scan.out << scan.err;
}

TEST_F(SpoordTlsTest, Scan_CertificateNamesAnotherNode_PeerFails) {
  config_["auth"]["certificates"][0]["role"] = "admin";
  config_["peers"]["tls"] = {{"ca", good_.ca()},
                             {"certificate", good_.certificate("node.example")},
                             {"key", good_.key("node.example")}};
  start();
  // Its own address, so that a real certificate is there.
  config_["peers"]["static"] = {url_};
  write_config();
  daemon_->signal(SIGHUP);
  EXPECT_EQ(daemon_->wait_for("reloaded: "), "peers.static");
  const auto scan = spoor({"scan", "--json"});
  EXPECT_EQ(scan.code, 3) << scan.err;
  EXPECT_NE(scan.out.find("issued for 'server.example', but the node calls itself 'n1'"), std::string::npos)
      << scan.out;
}

TEST_F(SpoordTlsTest, TlsKeyDoesNotMatchCertificate_StartFails) {
  const auto locked = directory_ / "locked.key";
  const auto rsa = directory_ / "rsa.key";
  support::run_command({"openssl", "pkey", "-in", good_.key("server.example").native(), "-aes256", "-passout",
                        "pass:secret", "-out", locked.native()});
  support::run_command({"openssl", "genrsa", "-out", rsa.native(), "2048"});
  for (const auto& [key, error] : {std::pair(good_.key("node.example"), "/node.example.key"),
                                   {locked, "passphrase"},
                                   {rsa, "rsa.key"}}) {
    config_["listen"][0]["tls"]["key"] = key;
    write_config();
    const auto started = run_spoord();
    EXPECT_EQ(started.code, 1);
    EXPECT_NE(started.err.find(error), std::string::npos) << started.err;
  }
}

}  // namespace
}  // namespace spoor::daemon
