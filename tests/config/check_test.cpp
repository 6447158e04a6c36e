// Which settings are valid, and what is said of the others.
#include "config/check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/config/support.h"

namespace spoor::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Settings = std::vector<std::string>;  // key=value

void expect_valid(const std::vector<Settings>& all) {
  for (const Settings& settings : all) EXPECT_THAT(problems(settings), IsEmpty()) << settings.back();
}

// Settings, and what their only problem says.
void expect_problem(const std::vector<std::pair<Settings, std::string>>& all) {
  for (const auto& [settings, problem] : all)
    EXPECT_THAT(problems(settings), ElementsAre(HasSubstr(problem))) << settings.back();
}

// `values`: JSON. The values of a list with one element.
std::string one(std::string_view key, const nlohmann::json& value) {
  return fmt::format("{}=[{}]", key, value.dump());
}

TEST(CheckTest, EmptyConfiguration_LacksNameAndDrives) {
  EXPECT_THAT(validate(Config()), ElementsAre("node.name is required", HasSubstr("drives: at least one")));
}

TEST(CheckTest, NodeAndClusterNames_HaveLimitedCharactersAndLength) {
  const auto settings = [](const std::string& name) {
    const std::string value = nlohmann::json(name).dump();
    return Settings{"node.name=" + value, "node.cluster=" + value};
  };
  for (const std::string& good : {std::string("a"), std::string("node-1"), std::string("A.b_C"),
                                  std::string("1"), std::string("-"), std::string(64, 'a')})
    expect_valid({settings(good)});
  for (const std::string& bad : {std::string("a b"), std::string("a/b"), std::string("é"),
                                 std::string(65, 'a'), std::string("a\0b", 3)}) {
    EXPECT_THAT(problems(settings(bad)), ElementsAre(HasSubstr("node.name: "), HasSubstr("node.cluster: ")))
        << bad;
  }
}

TEST(CheckTest, OwnDaemonAlone_NeedsAllDrivesWatched) {
  const auto settings = [](const char* watched) {
    return Settings{R"(drives=["/mnt/a","/mnt/b"])", "scan.daemons=own", watched};
  };
  EXPECT_THAT(problems(settings(R"(watch.drives=["/mnt/b"])")),
              ElementsAre(AllOf(HasSubstr("scan.daemons: "), HasSubstr("\"/mnt/a\""))));
  expect_valid({settings(R"(watch.drives=["/mnt/b","/mnt/a"])"), settings("watch.drives=all")});
}

TEST(CheckTest, WatchedDrives_AreThoseOfTheNodeAndEachOnce) {
  expect_problem(
      {{{R"(watch.drives=["/a"])"}, "watch.drives[0]: \"/a\" is not one of \"drives\""},
       {{R"(watch.drives=["/srv/data","/srv/data"])"}, "watch.drives[1]: \"/srv/data\" is listed"}});
}

TEST(CheckTest, CopiesLimitsAndHistory_NameWhatIsWrong) {
  expect_valid(
      {{R"(usage.copies=[{"path":"bucket*","factor":3},{"path":"a/*","factor":1.5}])",
        R"(usage.limits=[{"bytes":1},{"path":"a/b","growth_per_day":1}])", R"(history.prefixes=["a/b/c"])"}});
  EXPECT_THAT(problems({R"(usage.copies=[{"path":"","factor":1},{"path":"/a","factor":0.9}])"}),
              ElementsAre(HasSubstr("usage.copies[0].path: \"\" is wrong"),
                          HasSubstr("usage.copies[1].path: \"/a\" is wrong: expected a path below"),
                          HasSubstr("usage.copies[1].factor: 0.9 is out of range")));
  EXPECT_THAT(problems({R"(usage.limits=[{"path":"a"},{"path":"a","files":1},{"path":"../a","bytes":1},
                                         {"path":"b","bytes":18446744073709551615}])"}),
              ElementsAre(HasSubstr("usage.limits[0]: sets no limit"),
                          HasSubstr("usage.limits[1].path: \"a\" has a limit already"),
                          HasSubstr("usage.limits[2].path: \"../a\" is wrong"),
                          HasSubstr("usage.limits[3]: is out of range")));
  expect_problem({{{R"(history.prefixes=["a/"])"}, "history.prefixes[0]: \"a/\" is wrong"}});
}

TEST(CheckTest, LimitOfGrowth_NeedsTheHistoryOfItsPath) {
  const std::string limit = R"(usage.limits=[{"path":"a/b/c","growth_per_day":1}])";
  expect_problem({{{limit}, "usage.limits[0].growth_per_day: no history is kept of \"a/b/c\""},
                  {{"history.keep=false", "history.depth=3", limit}, "usage.limits[0].growth_per_day"}});
  expect_valid({{"history.depth=3", limit}, {R"(history.prefixes=["a/b/c"])", limit}});
}

TEST(CheckTest, Drives_MustBeAbsoluteAndNotOverlap) {
  expect_valid({{R"(drives=["/a","/ab","/b/c","/b/d"])"}, {R"(drives=["/"])"}});
  expect_problem({{{"drives=[]"}, "at least one"},
                  {{R"(drives=["a"])"}, "drives[0]: \"a\" is wrong: expected an absolute path"},
                  {{R"(drives=["/a",""])"}, "drives[1]: \"\" is wrong"},
                  {{R"(drives=["/a/../b"])"}, "without \"..\""},
                  {{R"(drives=["/a\u0000b"])"}, "NUL"},
                  {{R"(drives=["/b","/a","/b"])"}, "\"/b\" is listed twice"},
                  {{R"(drives=["/a/b/c","/x","/a"])"}, "\"/a/b/c\" is inside \"/a\""},
                  {{R"(drives=["/a-b","/a","/a/b"])"}, "\"/a/b\" is inside \"/a\""},
                  {{R"(drives=["/","/a"])"}, "\"/a\" is inside \"/\""},
                  {{"node.data_dir=lib"}, "node.data_dir: \"lib\" is wrong"}});
}

TEST(CheckTest, ManyDrives_AreComparedQuickly) {
  Config config = load_minimal().value();
  for (int i = 0; i < 100'000; ++i) config.drives.emplace_back(fmt::format("/d{}", i));
  EXPECT_THAT(validate(config), IsEmpty());
}

TEST(CheckTest, Bounds_AreInclusive) {
  struct Range {
    std::string key, too_low, least, most, too_high;
  };
  const std::string century = "3153600000000ms";
  const std::string over = "3153600000001ms";
  for (const Range& range : std::vector<Range>{
           {"tracker.items", "0", "1", "200000000", "200000001"},
           {"tracker.history", "0", "1", "1024", "1025"},
           {"tracker.save_interval", "999ms", "1s", century, over},
           {"peers.timeout", "0ms", "1ms", century, over},
           {"peers.forget_after", "", "0s", century, over},
           {"scan.min_cycle_age", "", "0s", century, over},
           {"scan.audit_period", "", "0s", century, over},
           {"scan.threads", "", "0", "256", "257"},
           {"watch.batch", "0ms", "1ms", "10s", "10001ms"},
           {"watch.timeout", "0ms", "1ms", "1h", "3600001ms"},
           {"limits.max_body", "1023", "1024", "1GiB", "1073741825"},
           {"limits.max_connections", "0", "1", "1000000", "1000001"},
       }) {
    const auto set = [&](const std::string& value) {
      return Settings{"tracker.memory_limit=1024TiB", range.key + "=" + value};
    };
    expect_valid({set(range.least), set(range.most)});
    expect_problem({{set(range.too_high), range.key + ": "}});
    if (!range.too_low.empty()) expect_problem({{set(range.too_low), range.key + ": "}});
  }
}

TEST(CheckTest, NumbersThatNoFileHolds_AreRefused) {
  Config config = load_minimal().value();
  config.scan.audit_period = -std::chrono::hours(1);
  config.usage.copies = {{"a", std::nan("")}};
  EXPECT_THAT(validate(config),
              ElementsAre("usage.copies[0].factor: nan is out of range: expected a number from 1 to "
                          "1000, such as 3",
                          "scan.audit_period: -3600000ms is out of range: expected a duration "
                          "from 0s to 36500d"));
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    config = load_minimal().value();
    config.tracker.fp_rate = bad;
    EXPECT_THAT(validate(config), ElementsAre(HasSubstr("tracker.fp_rate: "))) << bad;
  }
}

TEST(CheckTest, FpRate_MustBeBetweenZeroAndOne) {
  for (const char* bad : {"0.0", "1.0", "-0.5", "2.0"})
    expect_problem({{{fmt::format("tracker.fp_rate={}", bad)}, "tracker.fp_rate: "}});
  expect_problem({{{"tracker.fp_rate=5e-324"}, "tracker.memory_limit: \"256MiB\" is too small"}});
}

TEST(CheckTest, FiltersOverMemoryLimit_AreRefused) {
  // 200,000 items at 0.1: 958,506 bits, 119,814 bytes, for each of 17 cycles.
  expect_valid({{"tracker.memory_limit=2036838"}});
  EXPECT_THAT(
      problems({"tracker.memory_limit=2036837"}),
      ElementsAre("tracker.memory_limit: \"2036837B\" is too small: 17 cycles of 200000 items at fp_rate "
                  "0.1 need at least 2MiB; raise it, or lower tracker.items or tracker.history"));
}

TEST(CheckTest, FilterTooLargeForResponse_IsRefused) {
  const Settings large{"tracker.memory_limit=1TiB", "tracker.items=200000000"};
  expect_valid({large});
  expect_problem({{{large[0], large[1], "tracker.fp_rate=0.01"},
                   "tracker.items: 200000000 at fp_rate 0.01 need a filter"}});
}

TEST(CheckTest, ExcludeGlobs_MustBeRelative) {
  expect_problem(
      {{{R"(namespace.exclude=["*/tmp/*","a b","[x",""])"}, "namespace.exclude[3]: \"\" is wrong"}});
  EXPECT_THAT(problems({R"(namespace.exclude=["/a","a/","a//b","a\u0000"])"}),
              ElementsAre(HasSubstr("remove the leading '/'"), HasSubstr("remove the trailing '/'"),
                          HasSubstr("empty component"), HasSubstr("NUL")));
}

// --- listen ---

std::string listener(const nlohmann::json& value) { return one("listen", value); }

TEST(ListenerTest, LoopbackAndUnixSockets_AreAccepted) {
  for (const char* good : {"127.0.0.1", "127.255.0.9", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"})
    expect_valid({{listener({{"address", good}})}});
  expect_valid({{listener({{"unix", "/" + std::string(106, 'a')}})}});
}

TEST(ListenerTest, ReachableAddress_NeedsAuthenticationOrInsecure) {
  for (const char* address : {"0.0.0.0", "10.0.0.1", "::", "fe80::1", "::ffff:10.0.0.1", "128.0.0.1"}) {
    expect_problem({{{listener({{"address", address}})}, "\"insecure\": true"}});
    expect_valid({{listener({{"address", address}, {"insecure", true}})}});
  }
  const std::string plain = listener({{"address", "10.0.0.1"}});
  const std::string tls = R"(listen=[{"address":"10.0.0.1","tls":{"certificate":"/c","key":"/k"}}])";
  const std::string mutual =
      R"(listen=[{"address":"10.0.0.1","tls":{"certificate":"/c","key":"/k","client_ca":"/ca"}}])";
  expect_valid({{R"(auth.tokens=[{"name":"a","role":"mark","file":"/t"}])", plain},
                {R"(auth.certificates=[{"name":"*","role":"peer"}])", mutual}});
  expect_problem(
      {{{tls}, "10.0.0.1\" is refused"}, {{mutual}, "no client would have a role on this listener"}});
}

TEST(ListenerTest, OptionsOfOtherListenerKind_AreRefused) {
  expect_valid({{R"(listen=[{"unix":"/a","mode":"0600","group":"g"}])"}});
  const std::string bad_tls = R"(listen=[{"address":"::1","tls":)";
  expect_problem(
      {{{R"(listen=[{"unix":"/a","mode":"rw"}])"}, "three octal digits"},
       {{R"(listen=[{"unix":"/a","tls":{"certificate":"/c","key":"/k"}}])"}, "no TLS on a Unix socket"},
       {{R"(listen=[{"address":"::1","mode":"0600"}])"}, "only a Unix socket"},
       {{bad_tls + R"({"certificate":"/c"}}])"}, "needs a 'certificate' and its 'key'"},
       {{bad_tls + R"({"certificate":"c","key":"/k"}}])"}, "expected an absolute path"}});
}

TEST(ListenerTest, AddressNotAnIpLiteral_IsRefused) {
  for (const std::string& bad :
       {std::string("localhost"), std::string("[::1]"), std::string("127.1"), std::string("1.2.3.4.5"),
        std::string(" ::1"), std::string("127.0.0.1\0x", 11)})
    expect_problem({{{listener({{"address", bad}, {"insecure", true}})}, "expected an IP address"}});
}

TEST(ListenerTest, Listener_IsEitherAddressOrUnixSocketWithAnAbsoluteShortPath) {
  expect_problem({{{"listen=[]"}, "listen: at least one"},
                  {{"listen=[{}]"}, "either 'address' and 'port', or 'unix'"},
                  {{R"(listen=[{"address":"::1","unix":"/a"}])"}, "and not both"},
                  {{listener({{"unix", "/" + std::string(107, 'a')}})}, "shorter than 108 bytes"},
                  {{R"(listen=[{"unix":"a"}])"}, "absolute"},
                  {{R"(listen=[{"unix":"/a\u0000b"}])"}, "NUL"}});
}

// --- peers ---

// Which are valid: base/endpoint.h, base/dns_source.h.
TEST(PeerTest, UrlsNamesAndServers_AreChecked) {
  expect_valid({{one("peers.static", "http://a")},
                {one("peers.dns", "spoor.example")},
                {one("peers.dns_servers", "10.0.0.1")}});
  expect_problem({{{one("peers.static", "a")}, "peers.static[0]: "},
                  {{one("peers.dns", "10.0.0.1")}, "peers.dns[0]: '10.0.0.1' is wrong: it is an address"},
                  {{one("peers.dns_servers", "dns.example")}, "peers.dns_servers[0]: "}});
}

TEST(PeerTest, TokenFileOrTls_NeedTheirFiles) {
  EXPECT_THAT(problems({"peers.token_file=t", R"(peers.tls={"ca":"/ca","certificate":"/c"})"}),
              ElementsAre(HasSubstr("peers.token_file: "), HasSubstr("peers.tls: a 'certificate'")));
}

// --- auth ---

TEST(AuthTest, Token_RequiresNameRoleAndOneSource) {
  const std::string sha256 = fmt::format(R"("sha256":"{}")", std::string(64, 'a'));
  const auto token = [](const std::string& members) { return Settings{"auth.tokens=[{" + members + "}]"}; };
  expect_valid({token(R"("name":"a","role":"mark",)" + sha256),
                token(R"("name":"b","role":"admin","file":"/t")"),
                token(R"("name":"c","role":"peer","file":"credential:peer-token")")});
  expect_problem({{token(R"("name":"","role":"mark",)" + sha256), "auth.tokens[0].name: "},
                  {token(R"("name":"a",)" + sha256), "auth.tokens[0].role: expected \"mark\""},
                  {token(R"("name":"a","role":"mark")"), "expected either 'file'"},
                  {token(R"("name":"a","role":"mark","file":"/t",)" + sha256), "and not both"}});
  for (const char* file : {"t", "credential:", "credential:a/b", "credential:../x"})
    expect_problem({{token(fmt::format(R"("name":"a","role":"mark","file":"{}")", file)),
                     "auth.tokens[0].file: expected"}});
  EXPECT_THAT(problems(token(R"("name":"a","role":"mark","sha256":"hush")")),
              ElementsAre(AllOf(HasSubstr("auth.tokens[0].sha256: "), Not(HasSubstr("hush")))));
}

TEST(AuthTest, UnixAndCertificateRules_RequireNameAndRole) {
  expect_valid({{R"(auth.unix=[{"user":"u","role":"mark"},{"group":"g","role":"read"}])",
                 R"(auth.certificates=[{"name":"*.nodes","role":"peer"}])"}});
  EXPECT_THAT(
      problems({R"(auth.unix=[{"user":"u","group":"g","role":"mark"},{"user":"u"}])",
                R"(auth.certificates=[{"role":"peer"},{"name":"n"}])"}),
      ElementsAre(HasSubstr("auth.unix[0]: "), HasSubstr("auth.unix[1].role: "),
                  HasSubstr("auth.certificates[0].name: "), HasSubstr("auth.certificates[1].role: ")));
}

// --- publish ---

// A sink "bus" with this URL, and these members.
Settings sink(const std::string& url, const std::string& members = {}) {
  return {fmt::format(R"(publish.sinks=[{{"name":"bus","url":"{}"{}{}}}])", url, members.empty() ? "" : ",",
                      members)};
}

TEST(SinkTest, EachKind_IsAccepted) {
  for (const char* url : {"http://h/", "https://h/", "nats://h", "tls://h", "kafka://h", "postgresql://h/db"})
    expect_valid({sink(url)});
}

TEST(SinkTest, NameAndTopic_AreChecked) {
  expect_problem({{{R"(publish.sinks=[{"url":"http://h/"}])"}, "publish.sinks[0].name: a sink needs a name"},
                  {{R"(publish.sinks=[{"name":"bus","url":"http://h/"},{"name":"bus","url":"http://i/"}])"},
                   "publish.sinks[1].name: \"bus\" is the name of another sink"}});
  for (const char* bad : {"", "a.*", "a.>", "a..b", ".a", "a b"})
    expect_problem({{sink("nats://h", fmt::format(R"("topic":"{}")", bad)), "publish.sinks[0].topic"}});
}

TEST(SinkTest, BatchAndNumberOfSinks_AreBounded) {
  expect_valid({sink("nats://h", R"("batch":1)"), sink("nats://h", R"("batch":100000)")});
  for (const char* batch : {"0", "100001"}) {
    expect_problem(
        {{sink("nats://h", fmt::format(R"("batch":{})", batch)),
          fmt::format("publish.sinks[0].batch: {} is out of range: expected a whole number from 1 to",
                      batch)}});
  }
  nlohmann::json many = nlohmann::json::array();
  for (int i = 0; i < 17; ++i) many.push_back({{"name", std::to_string(i)}, {"url", "http://h/"}});
  expect_problem({{{"publish.sinks=" + many.dump()}, "at most 16 sinks"}});
}

TEST(SinkTest, Credentials_BelongToTheKind) {
  expect_valid({sink("postgresql://h/db", R"("tls":{"ca":"/ca"})")});
  expect_problem({{sink("kafka://h", R"("token_file":"/token")"), "publish.sinks[0].token_file"},
                  {sink("https://h/", R"("user":"me")"), "an HTTP sink has a 'token_file' instead"},
                  {sink("nats://h", R"("password_file":"/password")"), "publish.sinks[0].user"},
                  {sink("nats://h", R"("user":"me","password_file":"/password","token_file":"/token")"),
                   "either 'token_file', or 'user'"},
                  {sink("http://h/", R"("tls":{"ca":"/ca"})"), "with 'tls' the URL starts with https://"},
                  {sink("tls://h", R"("tls":{"ca":"ca"})"), "publish.sinks[0].tls.ca"},
                  {sink("postgresql://h/db", R"("tls":{})"), "publish.sinks[0].tls.ca"}});
}

}  // namespace
}  // namespace spoor::config
