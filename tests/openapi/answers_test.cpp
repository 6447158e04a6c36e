// Every answer of the daemon is described, and every described one is given. One test, since it is about all
// of them together.
#include <cstdint>
#include <deque>
#include <set>

#include "peer/http/watch_report.h"
#include "tests/openapi/fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/raw_client.h"
#include "tests/watch/eventually.h"
#include "tracker/filter/bloom_filter.h"

namespace spoor::openapi {
namespace {

using nlohmann::json;

// A response of a moment that no test can wait for: the node retires while it makes adopted marks durable.
const std::set<Case> races = {{{"POST", "/v1/peer/adopt"}, "503", "not_a_member"}};

class AnswersTest : public OpenApiTest {
 protected:
  void unknown_requests();
  void malformed_requests();
  void odd_requests();
  void before_the_first_scan();
  void examples_are_accepted();
  void refused_marks();
  void refused_events();
  void refused_questions();
  void refused_adoptions();
  void page();
  void sessions();
  void reports_of_scans();
  void unreadable_database();
  void drives();
  void roles();
  void loopback_without_credentials();
  void certificates();
  void too_many_connections();
  void full_disks();
  void no_member();
  void retirement();

  static void start_with_peer(Node& node, const Node& peer);

  Node node_;
};

void AnswersTest::unknown_requests() {
  expect(node_, {"OPTIONS", "*"}, 204);
  expect(node_, {"OPTIONS", "/v1/nothing"}, 404, "not_found");
  for (const Operation& operation : description_.operations()) {
    const std::string here = path_of(operation);
    expect(node_, {"OPTIONS", here}, 204);
    for (const std::string method : {"DELETE", "PUT", "PATCH", "GET", "POST"}) {
      if (description_.operation_of(method, here) != any_other) continue;
      expect(node_, {method, here}, 405, "method_not_allowed");
    }
    for (const std::string& path : {here + "/", here + "/x", "/v2" + here}) {
      expect(node_, {operation.method, path}, 404, "not_found");
    }
  }
}

void AnswersTest::malformed_requests() {
  for (Request request : one_of_each(node_)) {
    request.headers = "Host: another\r\n";
    expect_described(request, send(node_.port(), request), 400, "invalid_request");
    request.headers = "X: " + std::string(20'000, 'x') + "\r\n";
    expect_described(request, send(node_.port(), request), 431, "headers_too_large");
    if (request.target == "/livez" || request.target == "/healthz" || request.target == "/v1/nothing")
      continue;  // these return nothing that a page of another site may not read
    request.headers = "Origin: http://evil.example\r\n";
    expect_described(request, send(node_.port(), request), 403, "foreign_origin");
    request.headers.clear();
    request.host = "evil.example";
    expect_described(request, send(node_.port(), request), 403, "foreign_host");
  }
  const Request twice{"GET", "/v1/dirty?path=a&path=b"};
  expect(node_, twice, 400, "invalid_request");
}

// Whatever the answer is, it is described: not only where somebody thought of it.
void AnswersTest::odd_requests() {
  for (const Request& good : one_of_each(node_)) {
    for (const std::string type : {"", "text/plain", "application/json", "text/html", "\xff"}) {
      for (const std::string body : {"", "{", "[]", "{}", "a\n\n", "\xff"}) {
        ask(node_, {good.method, good.target, type, body});
      }
    }
    for (const std::string& target : {good.path(), good.path() + "?x", good.path() + "?path=%00&since=",
                                      good.path() + "?path=..", good.path() + "?%zz"}) {
      ask(node_, {good.method, target, good.content_type, good.body});
    }
    for (const std::string headers :
         {"Content-Encoding: gzip\r\n", "Authorization: Bearer x\r\n", "Expect: 100-continue\r\n"}) {
      ask(node_, {good.method, good.target, good.content_type, good.body, headers});
    }
    for (const std::string headers : {"", "Content-Length: 100000000\r\n", "Content-Length: -1\r\n",
                                      "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n"}) {
      Request request{good.method, good.target, good.content_type, "", headers};
      if (headers == "Transfer-Encoding: chunked\r\n") request.body = "2\r\n{}\r\n0\r\n\r\n";
      request.sends_length = false;
      ask(node_, request);
    }
  }
}

void AnswersTest::before_the_first_scan() {
  expect(node_, {"GET", "/v1/usage"}, 404, "no_scan");
  expect(node_, {"GET", "/v1/usage/history"}, 404, "no_scan");
  expect(node_, {"GET", "/v1/scans"}, 404, "no_scan");
  expect(node_, {"GET", "/v1/changes?since=0"}, 404, "no_scan");
}

void AnswersTest::examples_are_accepted() {
  for (const Operation& operation : description_.operations()) {
    for (Request request : samples(operation, node_)) {
      expect_accepted(node_, request);
      if (request.content_type.empty()) continue;
      request.content_type += "; charset=utf-8";
      expect_accepted(node_, request);
    }
  }
}

void AnswersTest::refused_marks() {
  const auto marks = [this](const std::string& body, const std::string& code) {
    expect(node_, {"POST", "/v1/marks", "application/json", body}, 400, code);
  };
  marks("{nope", "invalid_json");
  marks(R"({"paths":1})", "invalid_request");
  marks(R"({"paths":["a"],"more":1})", "invalid_request");
  marks(R"({"paths":["a/../b"]})", "invalid_path");
  marks(R"({"paths":[""]})", "invalid_path");
  marks(R"({"paths":[")" + std::string(256, 'x') + "\"]}", "path_too_long");
  expect(node_, {"POST", "/v1/marks", "text/html", "a"}, 415, "unsupported_media_type");
  expect(node_, {"POST", "/v1/marks", "text/plain", "a", "Content-Encoding: gzip\r\n"}, 415,
         "unsupported_media_type");
}

void AnswersTest::refused_events() {
  const auto events = [this](const std::string& body, const std::string& code) {
    expect(node_, {"POST", "/v1/events/s3", "application/json", body}, 400, code);
  };
  const auto put = [](const std::string& key, const std::string& bucket = "b") {
    return R"({"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":")" + bucket +
           R"("},"object":{"key":)" + key + "}}}]}";
  };
  expect(node_, {"POST", "/v1/events/s3", "", put("\"a\"")}, 200);
  events("{nope", "invalid_json");
  events("{}", "invalid_request");
  events(put("7"), "invalid_request");
  events(put("\"a\"", ".."), "invalid_path");
  events(put("\"a\"", std::string(256, 'x')), "path_too_long");
  expect(node_, {"POST", "/v1/events/s3", "application/json", put("\"..\"")}, 200);
  expect(node_, {"POST", "/v1/events/s3", "text/plain", put("\"a\"")}, 415, "unsupported_media_type");
}

void AnswersTest::refused_questions() {
  for (const std::string route : {"/v1/dirty?path=", "/v1/usage?path=", "/v1/usage/history?path="}) {
    expect(node_, {"GET", route + "a/../b"}, 400, "invalid_path");
    expect(node_, {"GET", route + std::string(256, 'x')}, 400, "path_too_long");
  }
  expect(node_, {"GET", "/v1/usage?path=nowhere"}, 404, "not_found");
  expect(node_, {"GET", "/v1/usage/history?path=nowhere"}, 404, "no_history");
  for (const std::string route : {"/v1/usage?since=", "/v1/usage/history?since="}) {
    for (const std::string since : {"", "soon", "-1h", "2026-13-01T00:00:00Z"})
      expect(node_, {"GET", route + since}, 400, "invalid_request");
  }
  expect(node_, {"GET", "/v1/usage?sort=growth"}, 400, "invalid_request");
  expect(node_, {"GET", "/v1/changes?wait=soon"}, 400, "invalid_request");
  const auto ask = [this](const std::string& body, unsigned status, const std::string& code) {
    expect(node_, {"POST", "/v1/peer/cycle", "application/json", body}, status, code);
  };
  ask("{nope", 400, "invalid_json");
  ask("[]", 400, "invalid_request");
  ask(R"({"cluster":"default","start_level":64})", 400, "invalid_request");
  ask(R"({"cluster":"another"})", 409, "wrong_cluster");
  ask(R"({"cluster":"default","current":4294967296})", 409, "cycle_out_of_reach");
}

void AnswersTest::refused_adoptions() {
  const std::string cluster = "default";
  const auto unread = [this](const std::string& body, unsigned status, const std::string& code) {
    return expect(node_, {"POST", "/v1/peer/unread", "application/json", body}, status, code);
  };
  unread(R"({"cluster":"default"})", 400, "invalid_request");
  const std::string instance(32, 'b');
  const std::string member = R"(,"member":{"name":"n2","instance":")" + instance + "\"}}";
  unread(R"({"cluster":"another")" + member, 409, "wrong_cluster");
  const Answer never_read = unread(R"({"cluster":"default")" + member, 200, "");
  EXPECT_EQ(json::parse(never_read.body), json({{"unread_from", 0}}));
  Request adopt = samples({"POST", "/v1/peer/adopt"}, node_).front();
  const auto refused = [&](const std::string& body, unsigned status, const std::string& code) {
    adopt.body = body;
    expect(node_, adopt, status, code);
  };
  refused("no frame", 400, "invalid_request");
  refused(retiring_frame("another", "n2"), 409, "wrong_node");
  refused(retiring_frame(cluster, "n1"), 409, "wrong_node");
  refused(retiring_frame(cluster, "n2", {}, {.exclude = {"*.tmp"}, .s3_bucket_names = false}), 409,
          "other_rules");
  tracker::MarkSet many;
  for (std::uint64_t bits = 64; bits < 64 + 33; ++bits)
    many.add_filter(tracker::BloomFilter(tracker::BloomShape{bits, 1}));
  refused(retiring_frame(cluster, "n2", many), 413, "too_large");
  expect(node_, {"POST", "/v1/retire?node=another"}, 409, "wrong_node");
  const auto gather = [this](const std::string& body, unsigned status, const std::string& code) {
    expect(node_, {"POST", "/v1/gather", "application/vnd.spoor.gather", body}, status, code);
  };
  gather("no query", 400, "invalid_request");
  gather(gather_query(node_, "n2"), 409, "wrong_node");
}

void AnswersTest::page() {
  for (const std::string path : {"/", "/page/app.js", "/page/page.css", "/page/icon.svg", "/openapi.yaml"}) {
    const Answer file = expect(node_, {"GET", path}, 200);
    const Request again{"GET", path, "", "", "If-None-Match: " + file.header("etag") + "\r\n"};
    expect_described(again, send(node_.port(), again), 304);
  }
  expect(node_, {"GET", "/page/nothing"}, 404, "not_found");
}

void AnswersTest::sessions() {
  Node node;
  node.give_tokens();
  node.start();
  const auto with_token = [&](const Node& at, unsigned status, const std::string& code = "") {
    const Request request{"POST", "/v1/session", "", "",
                          "Authorization: Bearer " + Node::token_of("read") + "\r\n"};
    return expect(at, request, status, code);
  };
  const Answer signed_in = with_token(node, 200);
  const std::string cookie = signed_in.header("set-cookie");
  const std::string cookie_sent = "Cookie: other=1; " + cookie.substr(0, cookie.find(';')) + "\r\n";
  const std::string sent = cookie_sent + "Authorization: Session " +
                           json::parse(signed_in.body).at("secret").get<std::string>() + "\r\n";
  EXPECT_EQ(ask(node, {"GET", "/v1/status", "", "", cookie_sent}).status, 401U);
  const auto status_of = [&](const std::string& method, const std::string& path) {
    return ask(node, {method, path, "", "", sent}).status;
  };
  EXPECT_EQ(status_of("GET", "/v1/status"), 200U);
  EXPECT_EQ(status_of("HEAD", "/v1/status"), 200U);
  EXPECT_EQ(status_of("POST", "/v1/snapshot"), 401U);
  EXPECT_EQ(status_of("DELETE", "/v1/session"), 200U);
  EXPECT_EQ(status_of("GET", "/v1/status"), 401U);
  Node open_to_others;
  open_to_others.config_["listen"][0]["address"] = "0.0.0.0";
  open_to_others.give_tokens();
  open_to_others.start();
  with_token(open_to_others, 403, "tls_required");
}

void AnswersTest::reports_of_scans() {
  const json usage = json::parse(expect(node_, {"GET", "/v1/usage?depth=16&limit=1"}, 200).body);
  EXPECT_TRUE(usage["children"][0]["children"].is_array()) << usage;
  EXPECT_TRUE(usage["children"][0]["rest"].is_object()) << usage;
  const json bucket = json::parse(expect(node_, {"GET", "/v1/usage?path=bucket&limit=1"}, 200).body);
  EXPECT_TRUE(bucket["rest"].is_object()) << bucket;
  expect(node_, {"GET", "/v1/usage?depth=0"}, 200);
  expect(node_, {"GET", "/v1/usage?path=nowhere&absent=empty"}, 200);
  expect(node_, {"GET", "/v1/usage?scope=cluster&depth=2"}, 200);
  expect(node_, {"GET", "/v1/usage?scope=cluster&path=nowhere"}, 404, "not_found");
  const json grown =
      json::parse(expect(node_, {"GET", "/v1/usage?depth=3&limit=1&since=9d&sort=growth"}, 200).body);
  EXPECT_TRUE(grown["growth"].is_object()) << grown;
  const json history =
      json::parse(expect(node_, {"GET", "/v1/usage/history?path=bucket&since=9d"}, 200).body);
  EXPECT_EQ(history["node"], usage["node"]);
  // The scans until now make one point for each second they ended in.
  EXPECT_FALSE(history["points"].empty()) << history;
  expect(node_, {"GET", "/v1/changes?since=0"}, 410, "reset");
  expect(node_, {"GET", "/v1/changes?since=1&feed=another"}, 410, "reset");
  expect(node_, {"GET", "/v1/changes?since=1&files=1"}, 404, "no_files");
  EXPECT_TRUE(json::parse(expect(node_, {"GET", "/v1/usage?owners=1"}, 200).body)["owners"].is_null());
  node_.config_["scan"]["file_feed"] = true;
  node_.config_["usage"]["owners"] = true;
  node_.write_config();  // for the scans
  node_.change_and_scan("bucket/a/first");
  node_.change_and_scan("bucket/a/second");
  const auto changes = [this](const std::string& query) {
    return json::parse(expect(node_, {"GET", "/v1/changes?" + query}, 200).body);
  };
  const json owners = json::parse(expect(node_, {"GET", "/v1/usage?owners=1"}, 200).body)["owners"];
  EXPECT_EQ(owners["list"].size(), 1U) << owners;
  const json scans = json::parse(expect(node_, {"GET", "/v1/scans"}, 200).body)["scans"];
  const std::string since = std::to_string(scans[0]["scan"].get<int>() - 1);
  const json first = changes("files=1&limit=1&since=" + since);
  ASSERT_TRUE(first["next"].is_string()) << first;
  json page = first;
  while (page["next"].is_string()) page = changes("next=" + page["next"].get<std::string>());
  EXPECT_EQ(page["changes"].back().value("type", ""), "file") << page;
  changes("since=" + since + "&feed=" + first["feed"].get<std::string>());
}

void AnswersTest::unreadable_database() {
  std::filesystem::remove(node_.scan_database());
  std::filesystem::remove(node_.scan_database().native() + "-wal");  // it has pages that can be read
  std::ofstream(node_.scan_database()) << std::string(10'000, 'x');
  expect(node_, {"GET", "/v1/usage"}, 500, "database_failed");
  expect(node_, {"GET", "/v1/usage/history"}, 500, "database_failed");
  expect(node_, {"GET", "/v1/scans"}, 500, "database_failed");
  expect(node_, {"GET", "/v1/changes?since=1"}, 500, "database_failed");
  expect(node_, samples({"POST", "/v1/peer/unread"}, node_).front(), 500, "database_failed");
}

void AnswersTest::drives() {
  expect(node_, {"POST", "/v1/drives/accept?path=/nowhere"}, 404, "not_found");
  expect(node_, {"POST", "/v1/drives/accept"}, 400, "invalid_request");
  expect(node_,
         {"POST", "/v1/watch/sync", "application/json",
          R"({"cluster":"another","node":"n","drives":[],"timeout_ms":0})"},
         409, "wrong_node");
  const peer::WatchedDrive other{.drive = "/nowhere", .is_watched = true};
  expect(node_, {"POST", "/v1/watch", "application/json", peer::watched_drive_json(other).dump()}, 404,
         "not_found");
  const std::string stamp(32, 'a');
  const auto stamped = [&](const std::string& node, const std::string& path, const std::string& with) {
    return with_query(
        "/v1/drives/stamp",
        {{"cluster", "default"}, {"node", node}, {"path", path}, {"stamp", with}, {"before", ""}});
  };
  const std::string name = "n1";
  expect(node_, {"POST", stamped(name, node_.drive().native(), stamp)}, 200);
  expect(node_, {"POST", stamped(name, node_.drive().native(), "short")}, 400, "invalid_request");
  expect(node_, {"POST", stamped("other", node_.drive().native(), stamp)}, 409, "wrong_node");
  expect(node_, {"POST", stamped(name, "/nowhere", stamp)}, 404, "not_found");
  std::filesystem::remove_all(node_.drive());
  expect(node_, {"POST", stamped(name, node_.drive().native(), stamp)}, 409, "drive_refused");
  expect(node_, {"POST", with_query("/v1/drives/accept", {{"path", node_.drive().native()}})}, 409,
         "drive_refused");
  expect(node_, {"POST", "/v1/snapshot"}, 503, "not_durable");
  expect(node_, {"GET", "/v1/drives"}, 200);
  expect(node_, {"GET", "/v1/status"}, 200);
  expect(node_, {"GET", "/readyz"}, 503, "not_ready");
}

void AnswersTest::roles() {
  Node node;
  node.give_tokens();
  node.start();
  for (Request request : one_of_each(node)) {
    const Operation operation = description_.operation_of(request.method, request.path());
    const std::set<std::string> allowed = description_.roles_of(operation);
    const auto status_as = [&](const std::string& token) {
      if (!token.empty()) request.headers = "Authorization: Bearer " + token + "\r\n";
      return ask(node, request).status;
    };
    const bool is_public = allowed.empty();
    EXPECT_EQ(status_as("") == 401, !is_public) << request.target;
    EXPECT_EQ(status_as("nobody-has-given-this-token") == 401, !is_public) << request.target;
    for (const std::string role : {"mark", "read", "peer", "admin"}) {
      const unsigned status = status_as(Node::token_of(role));
      EXPECT_NE(status, 401U) << role << " at " << request.target;
      EXPECT_EQ(status == 403, !is_public && !allowed.contains(role)) << role << " at " << request.target;
    }
  }
  expect(node, {"OPTIONS", "/livez"}, 401, "unauthorized");
}

// Of all routes: those for marks and for the health of the node are open to every user of the machine.
void AnswersTest::loopback_without_credentials() {
  Node node;
  node.config_["auth"]["tokens"] = json::array();
  node.start();
  for (const Request& request : one_of_each(node)) {
    const Operation operation = description_.operation_of(request.method, request.path());
    const std::set<std::string> allowed = description_.roles_of(operation);
    const bool is_open = allowed.empty() || allowed.contains("mark");
    const unsigned status = ask(node, request).status;
    EXPECT_EQ(status == 401, !is_open) << request.method << ' ' << request.target << ": " << status;
    EXPECT_NE(status, 403U) << request.method << ' ' << request.target;
  }
}

void AnswersTest::certificates() {
  Node node;
  const support::Certificates authority(node.directory_.path(), "authority");
  authority.issue("server.example", support::own_loopback());
  authority.issue("marker.example");
  authority.issue("nobody.example");
  node.config_["listen"][0]["tls"] = {{"certificate", authority.certificate("server.example")},
                                      {"key", authority.key("server.example")},
                                      {"client_ca", authority.ca()}};
  node.config_["auth"]["certificates"] = {{{"name", "marker.*"}, {"role", "mark"}}};
  node.start();
  const auto expect_as = [&](const std::string& name, const Request& request, unsigned status,
                             const std::string& code) {
    std::vector<std::string> command{"curl", "-s", "-i", "--cacert", authority.ca().native()};
    if (!name.empty()) {
      command.insert(command.end(),
                     {"--cert", authority.certificate(name).native(), "--key", authority.key(name).native()});
    }
    if (!request.body.empty()) {
      command.insert(command.end(),
                     {"-H", "Content-Type: " + request.content_type, "--data-binary", request.body});
    }
    command.push_back(node.url_ + request.target);
    const auto result = support::run_command(command);
    ASSERT_EQ(result.code, 0) << result.err;
    expect_described(request, parse_answer(result.out), status, code);
  };
  const Request mark = samples({"POST", "/v1/marks"}, node).front();
  expect_as("marker.example", mark, 200, "");
  expect_as("marker.example", {"GET", "/v1/status"}, 403, "forbidden");
  expect_as("nobody.example", mark, 403, "forbidden");
  expect_as("nobody.example", {"GET", "/readyz"}, 403, "forbidden");
  expect_as("nobody.example", {"GET", "/v1/nothing"}, 403, "forbidden");
  expect_as("nobody.example", {"GET", "/livez"}, 200, "");
  expect_as("", mark, 401, "unauthorized");
}

void AnswersTest::too_many_connections() {
  Node node;
  node.config_["limits"] = {{"threads", 1}, {"max_connections", 1}};
  node.start();
  // It is told to go on once its request is being read: until its body has come nobody can take its place.
  support::RawClient busy(node.port());
  busy.send(
      "POST /v1/marks HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n"
      "Expect: 100-continue\r\n\r\n");
  ASSERT_EQ(busy.receive_until("\r\n\r\n").rfind("HTTP/1.1 100 ", 0), 0U);
  for (const Request& request : one_of_each(node)) {
    expect_described(request, send(node.port(), request), 503, "overloaded");
  }
}

void AnswersTest::full_disks() {
  Node node;
  node.start_for_full_disks();
  node.fill_disks();
  const Request adopt = samples({"POST", "/v1/peer/adopt"}, node).front();
  expect(node, adopt, 503, "not_durable");
  expect(node, adopt, 409, "not_a_member");
  const Request advance{"POST", "/v1/peer/cycle", "application/json", R"({"cluster":"default","current":9})"};
  expect(node, advance, 503, "not_durable");
  for (const Operation& marking : {Operation{"POST", "/v1/marks"}, Operation{"POST", "/v1/events/s3"}}) {
    expect(node, samples(marking, node).front(), 503, "not_durable");
  }
  expect(node, {"POST", "/v1/snapshot"}, 503, "not_durable");
  std::filesystem::create_directory(node.directory_ / "data/scan.request");
  expect(node, {"POST", "/v1/scans"}, 503, "not_started");
  expect(node, {"GET", "/readyz"}, 503, "not_ready");
  expect(node, {"GET", "/v1/status"}, 200);
  expect(node, {"GET", "/metrics"}, 200);
}

void AnswersTest::no_member() {
  Node node;
  // Nobody listens there.
  node.config_["peers"]["etcd"] = {{"endpoints", {"http://" + support::own_loopback() + ":1"}},
                                   {"url", "http://127.0.0.1:7420"}};
  node.config_["peers"]["static"] = {"http://" + support::own_loopback() + ":1"};
  node.config_["peers"]["dns"] = {"spoor.test"};
  node.config_["peers"]["dns_servers"] = {support::own_loopback() + ":1"};
  node.start();
  EXPECT_FALSE(node.daemon_->wait_for("peers.dns: spoor.test:7420: ").empty());
  for (const Operation& marking : {Operation{"POST", "/v1/marks"}, Operation{"POST", "/v1/events/s3"}}) {
    expect(node, samples(marking, node).front(), 503, "not_a_member");
  }
  expect(node, {"GET", "/readyz"}, 503, "not_ready");
  expect(node, {"GET", "/v1/status"}, 200);
  const json listed = json::parse(expect(node, {"GET", "/v1/members"}, 200).body);
  EXPECT_EQ(listed["members"].size(), 2U) << listed;
  EXPECT_EQ(listed["problems"].size(), 2U) << listed;
}

// Returns once the peer has recorded the node.
void AnswersTest::start_with_peer(Node& node, const Node& peer) {
  node.config_["peers"]["static"] = {peer.url_};
  node.start();
  const Request mark{"POST", "/v1/marks", "application/json", R"({"paths":["bucket/a"]})"};
  EXPECT_TRUE(watch::eventually([&] { return send(node.port(), mark).status == 200; }));
}

void AnswersTest::retirement() {
  const Request retire{"POST", "/v1/retire?node=n1"};
  Node adopter;
  adopter.config_["node"]["name"] = "n2";
  adopter.start_for_full_disks();
  {
    Node node;
    start_with_peer(node, adopter);
    const json retired = json::parse(expect(node, retire, 200).body);
    EXPECT_EQ(retired["adopted_by"], "n2");
    EXPECT_TRUE(retired["silent"].empty()) << retired;
    EXPECT_TRUE(json::parse(expect(node, retire, 200).body)["adopted_by"].is_null());
    for (const Operation& marking : {Operation{"POST", "/v1/marks"}, Operation{"POST", "/v1/events/s3"}}) {
      expect(node, samples(marking, node).front(), 503, "not_a_member");
    }
    expect(node, samples({"POST", "/v1/peer/adopt"}, node).front(), 409, "not_a_member");
    expect(node, {"GET", "/readyz"}, 503, "not_ready");
  }
  Node node;
  start_with_peer(node, adopter);
  adopter.fill_disks();
  expect(node, retire, 503, "not_retired");
}

TEST_F(AnswersTest, EveryResponse_IsDescribedAndEveryDescribedOneIsSeen) {
  // Requests that never end: the daemon gives up on them while all else is asked.
  Node patient;
  patient.start();
  std::vector<Request> stalling = one_of_each(patient);
  std::deque<support::RawClient> stalled;
  for (const Request& request : stalling) {
    const std::string bytes = request.to_bytes();
    stalled.emplace_back(patient.port()).send(bytes.substr(0, bytes.find("\r\n\r\n")));
  }
  node_.start();
  node_.take_scan_requests();
  unknown_requests();
  malformed_requests();
  before_the_first_scan();
  node_.change_and_scan("bucket/a/file");
  node_.change_and_scan("bucket/b/file");
  examples_are_accepted();
  odd_requests();
  refused_marks();
  refused_events();
  refused_questions();
  refused_adoptions();
  page();
  sessions();
  reports_of_scans();
  unreadable_database();
  drives();
  roles();
  loopback_without_credentials();
  certificates();
  too_many_connections();
  full_disks();
  no_member();
  retirement();
  for (std::size_t i = 0; i < stalled.size(); ++i) {
    expect_described(stalling[i], parse_answer(stalled[i].receive_all()), 408, "timeout");
  }
  for (const Case& missing : conformance_.unseen()) {
    if (!races.contains(missing)) ADD_FAILURE() << "never given: " << to_string(missing);
  }
}

}  // namespace
}  // namespace spoor::openapi
