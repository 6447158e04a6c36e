#include "config/validate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

#include "tests/config/support.h"
#include "tests/support/temp_directory.h"

namespace spoor::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Config valid() { return load_minimal().value(); }

TEST(ValidateTest, EmptyConfiguration_LacksNameAndDrives) {
  EXPECT_THAT(validate(Config()), ElementsAre("node.name is required", HasSubstr("drives: at least one")));
}

TEST(ValidateTest, NodeAndClusterNames_HaveLimitedCharactersAndLength) {
  for (const std::string good : {"a", "node-1", "A.b_C", "1", "-"}) {
    Config config = valid();
    config.node.name = good;
    config.node.cluster = good;
    EXPECT_THAT(validate(config), IsEmpty()) << good;
  }
  for (const std::string& bad : {std::string("a b"), std::string("a/b"), std::string("é"),
                                 std::string(65, 'a'), std::string("a\0b", 3)}) {
    Config config = valid();
    config.node.name = bad;
    config.node.cluster = bad;
    EXPECT_THAT(validate(config), ElementsAre(HasSubstr("node.name: "), HasSubstr("node.cluster: "))) << bad;
  }
  Config config = valid();
  config.node.name = std::string(64, 'a');
  EXPECT_THAT(validate(config), IsEmpty());
}

TEST(ValidateTest, OwnDaemonAlone_NeedsAllDrivesWatched) {
  Config config = valid();
  config.drives = {"/mnt/a", "/mnt/b"};
  config.scan.daemons = Daemons::own;
  config.watch.drives = {"/mnt/b"};
  EXPECT_THAT(validate(config), ElementsAre(AllOf(HasSubstr("scan.daemons: "), HasSubstr("\"/mnt/a\""))));
  config.watch.drives = {"/mnt/b", "/mnt/a"};
  EXPECT_THAT(validate(config), IsEmpty());
  config.watch.drives.clear();
  config.watch.all_drives = true;
  EXPECT_THAT(validate(config), IsEmpty());
}

TEST(ValidateTest, CopiesLimitsAndHistory_NameWhatIsWrong) {
  const auto problems = [](auto change) {
    Config config = valid();
    change(config);
    return validate(config);
  };
  EXPECT_THAT(problems([](Config& config) {
                config.usage.copies = {{"bucket*", 3}, {"a/*", 1.5}};
                config.usage.limits = {{.bytes = 1}, {.path = "a/b", .growth_per_day_bytes = 1}};
                config.history.prefixes = {"a/b/c"};
              }),
              IsEmpty());
  EXPECT_THAT(
      problems([](Config& config) { config.usage.copies = {{"", 1}, {"/a", 0.9}, {"a", std::nan("")}}; }),
      ElementsAre(HasSubstr("usage.copies[0].path: \"\" is wrong"),
                  HasSubstr("usage.copies[1].path: \"/a\" is wrong: expected a path below"),
                  HasSubstr("usage.copies[1].factor: 0.9 is out of range"),
                  HasSubstr("usage.copies[2].factor: nan is out of range")));
  EXPECT_THAT(problems([](Config& config) {
                config.usage.limits = {{.path = "a"},
                                       {.path = "a", .files = 1},
                                       {.path = "../a", .bytes = 1},
                                       {.path = "b", .bytes = ~0ULL}};
              }),
              ElementsAre(HasSubstr("usage.limits[0]: sets no limit"),
                          HasSubstr("usage.limits[1].path: \"a\" has a limit already"),
                          HasSubstr("usage.limits[2].path: \"../a\" is wrong"),
                          HasSubstr("usage.limits[3]: is out of range")));
  EXPECT_THAT(problems([](Config& config) { config.history.prefixes = {"a/"}; }),
              ElementsAre(HasSubstr("history.prefixes[0]: \"a/\" is wrong")));
}

TEST(ValidateTest, LimitOfGrowth_NeedsTheHistoryOfItsPath) {
  Config config = valid();
  config.usage.limits = {{.path = "a/b/c", .growth_per_day_bytes = 1}};
  EXPECT_THAT(validate(config), ElementsAre(HasSubstr("no history is kept of \"a/b/c\"")));
  config.history.depth = 3;
  EXPECT_THAT(validate(config), IsEmpty());
  config.history.keep = false;
  EXPECT_THAT(validate(config), ElementsAre(HasSubstr("usage.limits[0].growth_per_day")));
}

TEST(ValidateTest, Drives_MustBeAbsoluteAndNotOverlap) {
  const auto problems = [](std::vector<std::filesystem::path> drives) {
    Config config = valid();
    config.drives = std::move(drives);
    return validate(config);
  };
  EXPECT_THAT(problems({"/a", "/ab", "/b/c", "/b/d"}), IsEmpty());
  EXPECT_THAT(problems({"/"}), IsEmpty());
  EXPECT_THAT(problems({}), ElementsAre(HasSubstr("at least one")));
  EXPECT_THAT(problems({"a"}),
              ElementsAre(HasSubstr("drives[0]: \"a\" is wrong: expected an absolute path")));
  EXPECT_THAT(problems({"/a", ""}), ElementsAre(HasSubstr("drives[1]: \"\" is wrong")));
  EXPECT_THAT(problems({"/a/../b"}), ElementsAre(HasSubstr("without \"..\"")));
  EXPECT_THAT(problems({std::string("/a\0b", 4)}), ElementsAre(HasSubstr("NUL")));
  EXPECT_THAT(problems({"/b", "/a", "/b"}), ElementsAre(HasSubstr("\"/b\" is listed twice")));
  EXPECT_THAT(problems({"/a/b/c", "/x", "/a"}), ElementsAre(HasSubstr("\"/a/b/c\" is inside \"/a\"")));
  EXPECT_THAT(problems({"/a-b", "/a", "/a/b"}), ElementsAre(HasSubstr("\"/a/b\" is inside \"/a\"")));
  EXPECT_THAT(problems({"/", "/a"}), ElementsAre(HasSubstr("\"/a\" is inside \"/\"")));
}

TEST(ValidateTest, DrivesThatAreOneDirectory_AreFoundThroughSymlinks) {
  const support::TempDirectory directory;
  std::filesystem::create_directories(directory / "disk/inner");
  std::filesystem::create_directory_symlink(directory / "disk", directory / "link");
  Config config = valid();
  config.drives = {directory / "disk", directory / "link", directory / "link/inner", directory / "missing"};
  EXPECT_THAT(validate(config), ElementsAre(HasSubstr("is inside"))) << "by their paths alone";
  EXPECT_THAT(
      find_drive_overlaps(config),
      ElementsAre(AllOf(HasSubstr("drives: "), HasSubstr("link is the same")), HasSubstr("inner is inside")));
}

TEST(ValidateTest, OverlapOfLongPaths_NamesBothAndWhatToDo) {
  const support::TempDirectory directory;
  const auto disk = directory / std::string(200, 'd');
  std::filesystem::create_directory(disk);
  std::filesystem::create_directory_symlink(disk, directory / "link");
  Config config = valid();
  config.drives = {directory / "link", disk};
  EXPECT_THAT(find_drive_overlaps(config),
              ElementsAre(AllOf(HasSubstr(disk.native()), HasSubstr((directory / "link").native()),
                                HasSubstr("remove one of the two"))));
}

TEST(ValidateTest, ManyDrives_AreComparedQuickly) {
  Config config = valid();
  config.drives.clear();
  for (int i = 0; i < 100'000; ++i) config.drives.emplace_back(fmt::format("/d{}", i));
  EXPECT_THAT(validate(config), IsEmpty());
}

TEST(ValidateTest, DataDirectory_MustBeAbsolute) {
  Config config = valid();
  config.node.data_dir = "lib";
  EXPECT_THAT(validate(config), ElementsAre(HasSubstr("node.data_dir: \"lib\" is wrong")));
}

struct Range {
  const char* key;
  void (*set)(Config&, std::uint64_t);
  std::uint64_t least;
  std::uint64_t most;
};

class RangeTest : public ::testing::TestWithParam<Range> {};

TEST_P(RangeTest, Bounds_AreInclusive) {
  const Range& range = GetParam();
  const auto problems = [&](std::uint64_t value) {
    Config config = valid();
    config.tracker.memory_limit_bytes = 1ULL << 50U;
    range.set(config, value);
    return validate(config);
  };
  EXPECT_THAT(problems(range.least), IsEmpty());
  EXPECT_THAT(problems(range.most), IsEmpty());
  const auto refused = ElementsAre(HasSubstr(fmt::format("{}: ", range.key)));
  if (range.least > 0) {
    EXPECT_THAT(problems(range.least - 1), refused);
  }
  EXPECT_THAT(problems(range.most + 1), refused);
}

std::chrono::milliseconds ms(std::uint64_t count) { return std::chrono::milliseconds(count); }
constexpr std::uint64_t century_ms = 36'500ULL * 86'400'000;

INSTANTIATE_TEST_SUITE_P(
    All, RangeTest,
    ::testing::Values(
        Range{"tracker.items", [](Config& c, std::uint64_t v) { c.tracker.items = v; }, 1, 200'000'000},
        Range{"tracker.history",
              [](Config& c, std::uint64_t v) { c.tracker.history = static_cast<std::uint32_t>(v); }, 1, 1024},
        Range{"tracker.save_interval", [](Config& c, std::uint64_t v) { c.tracker.save_interval = ms(v); },
              1000, century_ms},
        Range{"peers.timeout", [](Config& c, std::uint64_t v) { c.peers.timeout = ms(v); }, 1, century_ms},
        Range{"peers.forget_after", [](Config& c, std::uint64_t v) { c.peers.forget_after = ms(v); }, 0,
              century_ms},
        Range{"scan.min_cycle_age", [](Config& c, std::uint64_t v) { c.scan.min_cycle_age = ms(v); }, 0,
              century_ms},
        Range{"scan.audit_period", [](Config& c, std::uint64_t v) { c.scan.audit_period = ms(v); }, 0,
              century_ms},
        Range{"scan.threads",
              [](Config& c, std::uint64_t v) { c.scan.threads = static_cast<std::uint32_t>(v); }, 0, 256},
        Range{"limits.max_body", [](Config& c, std::uint64_t v) { c.limits.max_body_bytes = v; }, 1024,
              1ULL << 30U},
        Range{"limits.max_connections",
              [](Config& c, std::uint64_t v) { c.limits.max_connections = static_cast<std::uint32_t>(v); }, 1,
              1'000'000}),
    [](const auto& instance) {
      std::string name = instance.param.key;
      std::ranges::replace(name, '.', '_');
      return name;
    });

TEST(ValidateTest, NegativeDuration_IsRefused) {
  Config config = valid();
  config.scan.audit_period = ms(0) - std::chrono::hours(1);
  EXPECT_THAT(
      validate(config),
      ElementsAre("scan.audit_period: -3600000ms is out of range: expected a duration from 0s to 36500d"));
}

TEST(ValidateTest, FpRate_MustBeBetweenZeroAndOne) {
  for (const double bad : {0.0, 1.0, -0.5, 2.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    Config config = valid();
    config.tracker.fp_rate = bad;
    EXPECT_THAT(validate(config), ElementsAre(HasSubstr("tracker.fp_rate: "))) << bad;
  }
  Config config = valid();
  config.tracker.fp_rate = std::numeric_limits<double>::denorm_min();
  EXPECT_THAT(validate(config), ElementsAre(HasSubstr("tracker.memory_limit: \"256MiB\" is too small")));
}

TEST(ValidateTest, FiltersOverMemoryLimit_AreRefused) {
  Config config = valid();
  // 200,000 items at 0.1: 958,506 bits, 119,814 bytes, for each of 17 cycles.
  config.tracker.memory_limit_bytes = 17ULL * 119'814;
  EXPECT_THAT(validate(config), IsEmpty());
  config.tracker.memory_limit_bytes -= 1;
  EXPECT_THAT(
      validate(config),
      ElementsAre("tracker.memory_limit: \"2036837B\" is too small: 17 cycles of 200000 items at fp_rate "
                  "0.1 need at least 2MiB; raise it, or lower tracker.items or tracker.history"));
}

class ListenerTest : public ::testing::Test {
 protected:
  static std::vector<std::string> problems(Listener listener) {
    Config config = valid();
    config.listen = {std::move(listener)};
    return validate(config);
  }
};

TEST_F(ListenerTest, LoopbackAndUnixSockets_AreAccepted) {
  for (const std::string good : {"127.0.0.1", "127.255.0.9", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"}) {
    EXPECT_THAT(problems({.address = good}), IsEmpty()) << good;
  }
  EXPECT_THAT(problems({.unix_path = "/" + std::string(106, 'a')}), IsEmpty());
}

TEST_F(ListenerTest, ReachableAddress_RequiresInsecureFlag) {
  for (const std::string address : {"0.0.0.0", "10.0.0.1", "::", "fe80::1", "::ffff:10.0.0.1", "128.0.0.1"}) {
    EXPECT_THAT(problems({.address = address}), ElementsAre(HasSubstr("\"insecure\": true"))) << address;
    EXPECT_THAT(problems({.address = address, .insecure = true}), IsEmpty()) << address;
  }
}

TEST_F(ListenerTest, ReachableAddressWithAuthentication_IsAccepted) {
  Config config = valid();
  config.listen = {{.address = "10.0.0.1"}};
  config.auth.tokens = {{.name = "a", .role = Role::mark, .file = "/t"}};
  EXPECT_THAT(validate(config), IsEmpty());
  config.auth.tokens.clear();
  config.listen[0].tls = {.certificate = "/c", .key = "/k"};
  EXPECT_THAT(validate(config), ElementsAre(HasSubstr("10.0.0.1\" is refused"))) << "TLS alone asks nobody";
  config.listen[0].tls->client_ca = "/ca";
  EXPECT_THAT(validate(config), ElementsAre(HasSubstr("no client would have a role on this listener")));
  config.auth.certificates = {{.name = "*", .role = Role::peer}};
  EXPECT_THAT(validate(config), IsEmpty());
}

TEST_F(ListenerTest, OptionsOfOtherListenerKind_AreRefused) {
  EXPECT_THAT(problems({.unix_path = "/a", .mode = "0600", .group = "g"}), IsEmpty());
  EXPECT_THAT(problems({.unix_path = "/a", .mode = "rw"}), ElementsAre(HasSubstr("three octal digits")));
  EXPECT_THAT(problems({.unix_path = "/a", .tls = Tls{"/c", "/k", ""}}),
              ElementsAre(HasSubstr("no TLS on a Unix socket")));
  EXPECT_THAT(problems({.address = "::1", .mode = "0600"}), ElementsAre(HasSubstr("only a Unix socket")));
  EXPECT_THAT(problems({.address = "::1", .tls = Tls{"/c", "", ""}}),
              ElementsAre(HasSubstr("needs a 'certificate' and its 'key'")));
  EXPECT_THAT(problems({.address = "::1", .tls = Tls{"c", "/k", ""}}),
              ElementsAre(HasSubstr("expected an absolute path")));
}

TEST_F(ListenerTest, AddressNotAnIpLiteral_IsRefused) {
  for (const std::string& bad :
       {std::string("localhost"), std::string("[::1]"), std::string("127.1"), std::string("1.2.3.4.5"),
        std::string(" ::1"), std::string("127.0.0.1\0x", 11)}) {
    EXPECT_THAT(problems({.address = bad, .insecure = true}),
                ElementsAre(HasSubstr("expected an IP address")))
        << bad;
  }
}

TEST_F(ListenerTest, Listener_IsEitherAddressOrUnixSocket) {
  EXPECT_THAT(problems({}), ElementsAre(HasSubstr("either 'address' and 'port', or 'unix'")));
  EXPECT_THAT(problems({.address = "::1", .unix_path = "/a"}), ElementsAre(HasSubstr("and not both")));
}

TEST_F(ListenerTest, UnixSocketPath_MustBeAbsoluteAndShort) {
  EXPECT_THAT(problems({.unix_path = "/" + std::string(107, 'a')}),
              ElementsAre(HasSubstr("shorter than 108 bytes")));
  EXPECT_THAT(problems({.unix_path = "a"}), ElementsAre(HasSubstr("absolute")));
  EXPECT_THAT(problems({.unix_path = std::string("/a\0b", 4)}), ElementsAre(HasSubstr("NUL")));
}

TEST_F(ListenerTest, NoListener_IsRefused) {
  Config config = valid();
  config.listen.clear();
  EXPECT_THAT(validate(config), ElementsAre(HasSubstr("listen: at least one")));
}

TEST(PeerTest, InvalidStaticUrl_IsRefused) {
  const auto problem = [](const std::string& text) {
    return error_of(load_minimal({"peers.static=[" + nlohmann::json(text).dump() + "]"}));
  };
  for (const std::string good : {"http://a", "http://a:1", "http://a-b.example:65535", "http://10.0.0.1:7420",
                                 "http://[::1]", "http://[fe80::1]:7420", "unix:/run/s.sock"}) {
    EXPECT_THAT(problem(good), HasSubstr("loaded without")) << good;
  }
  for (const std::string bad : {"",
                                "a",
                                "a:7420",
                                "http://",
                                "http://:1",
                                "http://a:",
                                "http://a:0",
                                "http://a:65536",
                                "http://a:1x",
                                "http://a:1/x",
                                "http://u@a",
                                "http://a b",
                                "http://[::1",
                                "http://[1.2.3.4]",
                                "http://[x]",
                                "http://[::1]x",
                                "HTTP://a",
                                "ftp://a",
                                "unix:run",
                                "unix:"}) {
    EXPECT_THAT(problem(bad), HasSubstr("peers.static[0]: ")) << bad;
  }
  for (const std::string good : {"https://a", "https://a/", "https://10.0.0.1:1#node1.example"}) {
    EXPECT_THAT(problem(good), HasSubstr("loaded without")) << good;
  }
  for (const std::string bad : {"http://a#b", "https://a#", "https://a#b c", "https://a#b/"}) {
    EXPECT_THAT(problem(bad), HasSubstr("peers.static[0]: ")) << bad;
  }
}

TEST(PeerTest, InvalidDnsName_IsRefused) {
  const auto problem = [](const std::string& text) {
    return error_of(load_minimal({"peers.dns=[" + nlohmann::json(text).dump() + "]"}));
  };
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'a');
  for (const std::string& good :
       {std::string("a"), std::string("a:1"), std::string("spoor.example"),
        std::string("spoor.example.:65535"), std::string("1-a_b.example"), longest,
        std::string("srv:_spoor._tcp.example"), std::string("srv:_spoor._tcp.example."),
        std::string("srv:_spoor._tcp.storage.svc.cluster.local")}) {
    EXPECT_THAT(problem(good), HasSubstr("loaded without")) << good;
  }
  for (const std::string& bad : {std::string(),
                                 std::string("."),
                                 std::string(":1"),
                                 std::string("a:"),
                                 std::string("a:0"),
                                 std::string("a:65536"),
                                 std::string("a:1x"),
                                 std::string("a..b"),
                                 std::string(".a"),
                                 std::string("a b"),
                                 std::string("a\0b", 3),
                                 std::string("\xc3\xa9"),
                                 std::string("http://a"),
                                 std::string("a/b"),
                                 std::string(64, 'a'),
                                 longest + "a",
                                 std::string("10.0.0.1"),
                                 std::string("10.0.0.1:7420"),
                                 std::string("::1"),
                                 std::string("[::1]:1"),
                                 std::string("srv:"),
                                 std::string("srv:example"),
                                 std::string("srv:_spoor.example"),
                                 std::string("srv:_spoor._tcp"),
                                 std::string("srv:_spoor._tcp."),
                                 std::string("srv:_spoor.x._tcp.example"),
                                 std::string("srv:_spoor._tcp.example:7420"),
                                 std::string("srv:_spoor._tcp.a..b")}) {
    EXPECT_THAT(problem(bad), HasSubstr("peers.dns[0]: ")) << bad;
  }
  EXPECT_THAT(problem("10.0.0.1"), HasSubstr("list it in peers.static"));
}

TEST(PeerTest, InvalidDnsServer_IsRefused) {
  const auto problem = [](const std::string& text) {
    return error_of(load_minimal({"peers.dns_servers=[" + nlohmann::json(text).dump() + "]"}));
  };
  for (const std::string good : {"10.0.0.1", "127.0.0.1:8600", "::1", "[::1]", "[fe80::1]:53"}) {
    EXPECT_THAT(problem(good), HasSubstr("loaded without")) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("dns.example"), std::string("10.0.0.1:"), std::string("10.0.0.1:0"),
        std::string("10.0.0.1:x"), std::string("[::1"), std::string("[::1]x"), std::string("[10.0.0.1]:53"),
        std::string("10.0.0.1\0x", 10), std::string("["), std::string("[]")}) {
    EXPECT_THAT(problem(bad), HasSubstr("peers.dns_servers[0]: ")) << bad;
  }
}

class AuthTest : public ::testing::Test {
 protected:
  std::vector<std::string> problems() { return validate(config_); }

  Config config_ = valid();
  const std::string sha256_ = std::string(64, 'a');
};

TEST_F(AuthTest, Token_RequiresNameRoleAndOneSource) {
  config_.auth.tokens = {{.name = "a", .role = Role::mark, .sha256 = sha256_},
                         {.name = "b", .role = Role::admin, .file = "/t"},
                         {.name = "c", .role = Role::peer, .file = "credential:peer-token"}};
  EXPECT_THAT(problems(), IsEmpty());
  config_.auth.tokens = {{.name = "", .role = Role::mark, .sha256 = sha256_}};
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("auth.tokens[0].name: ")));
  config_.auth.tokens = {{.name = "a", .sha256 = sha256_}};
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("auth.tokens[0].role: expected \"mark\"")));
  config_.auth.tokens = {{.name = "a", .role = Role::mark}};
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("expected either 'file'")));
  config_.auth.tokens = {{.name = "a", .role = Role::mark, .sha256 = sha256_, .file = "/t"}};
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("and not both")));
  for (const char* file : {"t", "credential:", "credential:a/b", "credential:../x"}) {
    config_.auth.tokens = {{.name = "a", .role = Role::mark, .file = file}};
    EXPECT_THAT(problems(), ElementsAre(HasSubstr("auth.tokens[0].file: expected"))) << file;
  }
}

TEST_F(AuthTest, TokenInPlaceOfItsHash_IsNotShown) {
  config_.auth.tokens = {{.name = "a", .role = Role::mark, .sha256 = "hush"}};
  EXPECT_THAT(problems(), ElementsAre(AllOf(HasSubstr("auth.tokens[0].sha256: "), Not(HasSubstr("hush")))));
}

TEST_F(AuthTest, UnixAndCertificateRules_RequireNameAndRole) {
  config_.auth.unix_peers = {{.user = "u", .role = Role::mark}, {.group = "g", .role = Role::read}};
  config_.auth.certificates = {{.name = "*.nodes", .role = Role::peer}};
  EXPECT_THAT(problems(), IsEmpty());
  config_.auth.unix_peers = {{.user = "u", .group = "g", .role = Role::mark}, {.user = "u"}};
  config_.auth.certificates = {{.name = "", .role = Role::peer}, {.name = "n"}};
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("auth.unix[0]: "), HasSubstr("auth.unix[1].role: "),
                                      HasSubstr("auth.certificates[0].name: "),
                                      HasSubstr("auth.certificates[1].role: ")));
}

TEST_F(AuthTest, InvalidPeerTokenFileOrTls_IsRefused) {
  config_.peers.token_file = "t";
  config_.peers.tls = {.ca = "/ca", .certificate = "/c"};
  EXPECT_THAT(problems(),
              ElementsAre(HasSubstr("peers.token_file: "), HasSubstr("peers.tls: a 'certificate'")));
}

TEST(ValidateTest, FilterTooLargeForResponse_IsRefused) {
  Config config = valid();
  config.tracker.memory_limit_bytes = std::uint64_t{1} << 40U;
  config.tracker.items = 200'000'000;
  EXPECT_TRUE(validate(config).empty());
  config.tracker.fp_rate = 0.01;
  EXPECT_THAT(validate(config),
              ElementsAre(HasSubstr("tracker.items: 200000000 at fp_rate 0.01 need a filter")));
}

TEST(ValidateTest, ExcludeGlobs_MustBeRelative) {
  Config config = valid();
  config.name_space.exclude = {"*/tmp/*", "a b", "[x", ""};
  EXPECT_THAT(validate(config), ElementsAre(HasSubstr("namespace.exclude[3]: \"\" is wrong")));
  config.name_space.exclude = {"/a", "a/", "a//b", std::string("a\0", 2)};
  EXPECT_THAT(validate(config),
              ElementsAre(HasSubstr("remove the leading '/'"), HasSubstr("remove the trailing '/'"),
                          HasSubstr("empty component"), HasSubstr("NUL")));
}

}  // namespace
}  // namespace spoor::config
