#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/config/support.h"
#include "tests/support/temp_directory.h"

namespace spoor::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// The error of a file that is valid but for the `rest`.
std::string error_with(std::string_view rest) {
  return error_of_text(fmt::format(R"({{"node":{{"name":"x"}},"drives":["/a"],{}}})", rest));
}

// What loading the printed configuration gives; `listen` was then given, which is no difference.
Config reloaded(const Config& config) {
  Config again = load_text(to_json_text(config), "printed", {}).value();
  again.listen_is_default = config.listen_is_default;
  return again;
}

TEST(LoadTest, MinimalFile_HasDefaults) {
  const Config config = load_minimal().value();

  Config expected;
  expected.node.name = "x";
  expected.drives = {"/srv/data"};
  EXPECT_EQ(config, expected);
  EXPECT_TRUE(config.listen_is_default);
}

Config example() {
  return load(std::filesystem::path(SPOOR_SOURCE_DIR) / "config/spoor.example.json", {}).value();
}

TEST(ExampleFileTest, ExampleFile_HasEveryKey) {
  std::ifstream file(std::filesystem::path(SPOOR_SOURCE_DIR) / "config/spoor.example.json");
  const auto shown = nlohmann::json::parse(file, nullptr, true, true);
  const auto all = nlohmann::json::parse(to_json_text(Config()));
  for (const auto& [section, settings] : all.items()) {
    ASSERT_TRUE(shown.contains(section)) << section;
    if (!settings.is_object()) continue;
    for (const auto& [key, value] : settings.items())
      EXPECT_TRUE(shown[section].contains(key)) << section << '.' << key;
  }
}

TEST(ExampleFileTest, ExampleFile_LoadsAndShowsDefaults) {
  Config expected;
  expected.node.name = "node1";
  expected.drives = {"/mnt/disk1", "/mnt/disk2"};
  expected.peers.static_endpoints = {{"10.0.0.2", 7420, {}}};
  expected.listen_is_default = false;
  EXPECT_EQ(example(), expected);
}

Config expected_everything() {
  Config expected;
  expected.node = {.name = "n-1.a_B", .cluster = "c", .data_dir = "/d \"quoted\"\n"};
  expected.drives = {"/a", "/\xc3\xa4"};
  expected.listen = {{.address = "::1", .port = 0},
                     {.address = "0.0.0.0", .port = 1, .insecure = true, .page = false},
                     {.unix_path = "/s", .insecure = true},
                     {.unix_path = "/u", .mode = "0600", .group = "g"},
                     {.address = "::1", .tls = Tls{"/c", "credential:k", "/ca"}}};
  expected.listen_is_default = false;
  expected.tracker = {.items = 199'999,
                      .fp_rate = 0.1 + 1e-15,
                      .history = 3,
                      .save_interval = std::chrono::milliseconds(1001),
                      .durability = Durability::os,
                      .memory_limit_bytes = (1ULL << 40U) + 1};
  expected.name_space = {.exclude = {"*/tmp/*", "\x01"}, .bucket_names = BucketNames::s3};
  expected.peers = {.static_endpoints = {{{}, 0, "/run/p.sock"}, {"::1", 1, {}}},
                    .dns = {{"a.b", 1, false}, {"_s._tcp.b", 0, true}},
                    .dns_servers = {{"::1", 53}, {"10.0.0.1", 1}},
                    .dns_tls = true,
                    .forget_after = std::chrono::hours(1),
                    .etcd = Etcd{.endpoints = {{"::1", 1, {}}, {{}, 0, "/e"}},
                                 .prefix = "a/b",
                                 .ttl = std::chrono::seconds(5),
                                 .forget_after = std::chrono::minutes(2),
                                 .url = "http://me:2",
                                 .tls = {},
                                 .user = "spoor",
                                 .password_file = "credential:etcd"},
                    .token_file = "/t",
                    .token_to_all = true,
                    .tls = PeerTls{.ca = "/ca", .certificate = "/c", .key = "/k"},
                    .timeout = std::chrono::milliseconds(250)};
  expected.scan = {.min_cycle_age = std::chrono::seconds(0),
                   .daemons = Daemons::own,
                   .require = Require::all,
                   .threads = 7,
                   .max_dirs_per_second = 9,
                   .audit_period = std::chrono::seconds(0),
                   .file_feed = true};
  expected.usage = {.copies = {{.path = "b*/c", .factor = 1.5}},
                    .limits = {{.bytes = 1ULL << 40U, .files = 5},
                               {.path = "b", .growth_per_day_bytes = 1024, .cluster = true}},
                    .limit_command = "logger x",
                    .owners = true};
  expected.history = {.keep = true, .depth = 3, .prefixes = {"b/c/d/e"}};
  expected.watch = {.all_drives = true,
                    .drives = {},
                    .batch = std::chrono::milliseconds(1),
                    .timeout = std::chrono::milliseconds(2),
                    .unwatched = Unwatched::partial};
  expected.publish = {.interval = std::chrono::seconds(1),
                      .sinks = {{.name = "b",
                                 .url = "nats://h",
                                 .topic = "t",
                                 .format = EventFormat::structured,
                                 .batch = 7,
                                 .existing = false,
                                 .user = "u",
                                 .password_file = "/p"}}};
  expected.auth = {.tokens = {{.name = "a", .role = Role::mark, .file = "/f"},
                              {.name = "b", .role = Role::admin, .sha256 = std::string(64, '0')}},
                   .unix_peers = {{.user = "u", .role = Role::read}},
                   .certificates = {{.name = "*", .role = Role::peer}}};
  expected.limits = {.max_body_bytes = 1024, .max_bodies_bytes = 4097, .threads = 256, .max_connections = 2};
  expected.log = {.level = LogLevel::warn, .format = LogFormat::json};
  return expected;
}

TEST(LoadTest, EverySetting_IsReadAndPrinted) {
  const Config config = load_text(everything, "spoor.json", {}).value();
  const Config expected = expected_everything();
  EXPECT_EQ(config, expected);
  EXPECT_EQ(reloaded(expected), expected);
  EXPECT_EQ(reloaded(load_minimal().value()), load_minimal().value());
}

TEST(LoadTest, SettingOfEarlierVersions_IsIgnored) {
  EXPECT_EQ(load_minimal({"scan.new_peers=trust"}).has_value(), false) << "no override has it";
  const Config config =
      load_text(R"({"node": {"name": "n"}, "drives": ["/a"], "scan": {"new_peers": "trust", "threads": 2}})",
                "f", {})
          .value();
  EXPECT_EQ(config.scan.threads, 2U);
}

TEST(LoadTest, Paths_AreNormalized) {
  const Config config =
      load_text(R"({"node":{"name":"x","data_dir":"//var/./lib/"},"drives":["/mnt//disk1/"]})", "f", {})
          .value();
  EXPECT_EQ(config.node.data_dir.native(), "/var/lib");
  EXPECT_EQ(config.drives.at(0).native(), "/mnt/disk1");
}

TEST(LoadTest, Comments_AreAllowed) {
  EXPECT_TRUE(
      load_text("// one\n{\"node\": {\"name\": \"x\"}, // two\n\"drives\": [\"/a\"]}\n// three", "f", {}));
}

TEST(LoadTest, UnknownKey_ErrorSuggestsNearestKey) {
  for (const auto& [rest, key, suggestion] :
       {std::tuple{R"("tracker":{"item":1})", "tracker.item", "tracker.items"},
        {R"("tracker":{"itmes":1})", "tracker.itmes", "tracker.items"},
        {R"("treacker":{})", "treacker", "tracker"},
        {R"("items":5)", "items", "tracker.items"},
        {R"("scan":{"timeout":"1s"})", "scan.timeout", "peers.timeout"},
        {R"("listen":[{"address":"::1","prot":1}])", "listen[0].prot", "listen[0].port"}}) {
    EXPECT_THAT(error_with(rest),
                HasSubstr(fmt::format("unknown key '{}': did you mean '{}'?", key, suggestion)));
  }
  for (const std::string& key : {std::string(), std::string(100'000, 'z')})
    EXPECT_THAT(error_with(fmt::format(R"("{}":1)", key)), HasSubstr("did you mean '"));
}

TEST(LoadTest, DottedKeyInFile_ErrorExplainsNesting) {
  EXPECT_THAT(error_of_text(R"({"node.name":"x","drives":["/a"]})"),
              HasSubstr(R"(key 'node.name' is written {"node": {"name": ...}} in a file)"));
}

TEST(LoadTest, WrongForm_ErrorNamesKeyValueAndWhatIsAccepted) {
  const std::pair<std::string_view, std::string_view> refused[] = {
      {R"("tracker":{"items":"many"})",
       R"(tracker.items: "many" is wrong: expected a whole number from 1 to 200000000)"},
      {R"("tracker":{"items":-1})",
       "tracker.items: -1 is wrong: expected a whole number from 1 to 200000000"},
      {R"("tracker":{"items":1.5})",
       "tracker.items: 1.5 is wrong: expected a whole number from 1 to 200000000"},
      {R"("tracker":{"history":4294967296})",
       "tracker.history: 4294967296 is wrong: expected a whole number from 1 to 1024"},
      {R"("tracker":{"fp_rate":"0.1"})", R"(tracker.fp_rate: "0.1" is wrong: expected a number)"},
      {R"("tracker":{"fp_rate":null})", "tracker.fp_rate: null is wrong: expected a number"},
      {R"("tracker":{"save_interval":5})",
       R"(tracker.save_interval: 5 is wrong: expected a duration in quotes, such as "10s")"},
      {R"("tracker":{"save_interval":"5 m"})",
       R"(tracker.save_interval: "5 m" is not a duration: expected a whole number and a unit (ms, s, m, h, d), such as "10s")"},
      {R"("tracker":{"memory_limit":"8M"})",
       R"(tracker.memory_limit: "8M" is not a size: expected a whole number and a unit (B, KiB, MiB, GiB, TiB, KB, MB, GB, TB), such as "8MiB")"},
      {R"("tracker":{"memory_limit":-8})",
       R"(tracker.memory_limit: -8 is wrong: expected a size, such as "8MiB" or 8388608)"},
      {R"("tracker":{"durability":"none"})",
       R"(tracker.durability: "none" is wrong: expected one of "disk", "os", "memory")"},
      {R"("log":{"level":3})",
       R"(log.level: 3 is wrong: expected one of "trace", "debug", "info", "warn", "error", "warning")"},
      {R"("namespace":{"exclude":"*"})", R"(namespace.exclude: "*" is wrong: expected a list in [ ])"},
      {R"("namespace":{"exclude":[1]})", "namespace.exclude[0]: 1 is wrong: expected text in quotes"},
      {R"("listen":[7420])",
       R"(listen[0]: 7420 is wrong: expected {"address": "127.0.0.1", "port": 7420} or {"unix": "/path"})"},
      {R"("listen":[{"address":"::1","port":65536}])",
       "listen[0].port: 65536 is wrong: expected a whole number from 0 to 65535"},
      {R"("listen":[{"address":"::1","insecure":1}])",
       "listen[0].insecure: 1 is wrong: expected true or false"},
      {R"("listen":[{"unix":"/a","port":1}])",
       "listen[0]: a Unix socket has no port: remove 'port' or 'unix'"},
      {R"("scan":[])", "scan: expected an object in { }"},
      {R"("auth":{"tokens":"hush"})", "auth.tokens: the value is wrong: expected a list in [ ]"},
      {R"("auth":{"tokens":["hush"]})",
       R"(auth.tokens[0]: the value is wrong: expected {"name": "app", "role": "mark", "file": "/path"})"},
      {R"("auth":{"tokens":[{"sha256":7}]})",
       "auth.tokens[0].sha256: the value is wrong: expected text in quotes"},
      {R"("auth":"hush")", "auth: expected an object in { }"},
      {R"("scan":{"file_feed":1})", "scan.file_feed: 1 is wrong: expected true or false"},
      {R"("scan":{"file_feed":"yes"})", "scan.file_feed: \"yes\" is wrong: expected true or false"},
  };
  for (const auto& [rest, message] : refused)
    EXPECT_EQ(error_with(rest), fmt::format("spoor.json: {}", message));
}

TEST(LoadTest, RequiredSettingOfWrongType_IsReportedOnce) {
  EXPECT_EQ(error_of_text(R"({"node":{"name":7},"drives":[7]})"),
            "spoor.json: node.name: 7 is wrong: expected text in quotes\n"
            "spoor.json: drives[0]: 7 is wrong: expected a path in quotes");
}

TEST(LoadTest, SeveralErrors_AreReportedTogether) {
  const std::string message = error_of_text(
      R"({"drives":["a"],"tracker":{"itmes":1,"history":0,"fp_rate":true},"peers":{"dns":["x y"]}})");
  EXPECT_THAT(message, HasSubstr("'tracker.items'"));
  EXPECT_THAT(message, HasSubstr("tracker.fp_rate: true"));
  EXPECT_THAT(message, HasSubstr("node.name is required"));
  EXPECT_THAT(message, HasSubstr("drives[0]: \"a\""));
  EXPECT_THAT(message, HasSubstr("tracker.history: 0"));
  EXPECT_THAT(message, HasSubstr("peers.dns[0]: 'x y'"));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 5);
}

TEST(LoadTest, ErrorsOverLimit_AreCounted) {
  std::string text = R"({"node":{"name":"x"},"drives":["/a")";
  for (int i = 0; i < 250; ++i) text += ",\"b\"";
  const std::string message = error_of_text(text + "]}");
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 100);
  EXPECT_THAT(message, HasSubstr("\nand 150 more"));
}

TEST(LoadTest, DuplicateKeys_AreRefused) {
  EXPECT_EQ(error_with(R"("tracker":{"items":1,"items":2})"),
            "spoor.json: key 'tracker.items' is given twice: keep one of them");
  EXPECT_THAT(error_with(R"("drives":["/b"])"), HasSubstr("given twice"));
  EXPECT_THAT(error_with(R"("listen":[{"unix":"/a"},{"unix":"/b"}])"), HasSubstr("loaded without an error"));
}

TEST(LoadTest, InvalidJson_ErrorNamesLineAndColumn) {
  EXPECT_THAT(error_of_text("{\n  \"node\": {,\n}"),
              HasSubstr("spoor.json: not valid JSON: parse error at line 2, column 12"));
  EXPECT_THAT(error_of_text(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of_text(std::string(minimal) + "x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of_text(std::string(minimal) + std::string(minimal)), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of_text("{\"a\": 1e999}"), HasSubstr("not valid JSON: a number is out of range"));
  EXPECT_THAT(error_of_text("{\"a\": \"\xff\"}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of_text("{\"auth\": {\"tokens\": [\"hush\n\"]}}"), Not(HasSubstr("hush")));
}

TEST(LoadTest, NonObjectJson_IsRefused) {
  for (const std::string_view text : {"[]", "null", "5", "\"x\""}) {
    EXPECT_EQ(error_of_text(text), "spoor.json: the configuration must be one JSON object: { ... }");
  }
}

TEST(LoadTest, DeepNesting_IsRefused) {
  const auto nested = [](std::size_t levels) {
    return fmt::format("{{\"a\": {}{}}}", std::string(levels - 1, '['), std::string(levels - 1, ']'));
  };
  EXPECT_THAT(error_of_text(nested(64)), HasSubstr("unknown key 'a'"));
  EXPECT_EQ(error_of_text(nested(65)), "spoor.json: the JSON is nested deeper than 64 levels");
  EXPECT_EQ(error_of_text(nested(400'000)), "spoor.json: the JSON is nested deeper than 64 levels");
}

TEST(LoadTest, ControlCharactersInInput_AreEscapedInErrors) {
  const std::string message =
      error_of_text(R"({"a\nb\u001b":1,"node":{"name":"x\ny\u007f"},"drives":["/a"]})");
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1);
  EXPECT_THAT(message, Not(HasSubstr("\x1b")));
  EXPECT_THAT(message, Not(HasSubstr("\x7f")));
}

TEST(PrintTest, ChangedKeys_AreListedInFileOrder) {
  const Config before = load_minimal().value();
  EXPECT_THAT(changed_keys(before, before), IsEmpty());
  Config after = before;
  after.log.level = LogLevel::debug;
  after.drives.emplace_back("/mnt/another");
  after.tracker.items += 1;
  EXPECT_THAT(changed_keys(before, after), ElementsAre("drives", "tracker.items", "log.level"));
}

TEST(PrintTest, EveryEnumValue_RoundTrips) {
  for (const std::string level : {"trace", "debug", "info", "warn", "error"})
    EXPECT_THAT(to_json_text(load_minimal({"log.level=" + level}).value()), HasSubstr('"' + level + '"'));
  for (const std::string durability : {"disk", "os", "memory"}) {
    EXPECT_THAT(to_json_text(load_minimal({"tracker.durability=" + durability}).value()),
                HasSubstr("\"durability\": \"" + durability + '"'));
  }
}

TEST(PrintTest, PrintedConfig_HasLayoutAndUnitsOfFile) {
  const std::string text = to_json_text(example());
  EXPECT_THAT(text, StartsWith("{\n  \"node\": {\n    \"name\": \"node1\",\n    \"cluster\": \"default\""));
  for (const char* line : {"\"memory_limit\": \"256MiB\"", "\"audit_period\": \"30d\"",
                           "\"file_feed\": false", "\"etcd\": null"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, ::testing::EndsWith("}\n"));
}

TEST(OverrideTest, Override_ReplacesFileValueAndTheLastOneApplies) {
  const Config config =
      load_minimal({"node.name=y", "tracker.items=5", "tracker.save_interval=1h", R"(tracker={"history":3})",
                    "limits.max_body=4KiB", "limits.max_bodies=4096", "scan.threads=1", "scan.threads=2"})
          .value();
  EXPECT_EQ(config.node.name, "y");
  EXPECT_EQ(config.tracker.items, 5U) << "that of a section keeps other settings";
  EXPECT_EQ(config.tracker.save_interval, std::chrono::hours(1));
  EXPECT_EQ(config.tracker.history, 3U);
  EXPECT_EQ(config.limits.max_body_bytes, 4096U);
  EXPECT_EQ(config.limits.max_bodies_bytes, 4096U);
  EXPECT_EQ(config.scan.threads, 2U);
}

TEST(OverrideTest, TextSetting_TakesValueVerbatim) {
  for (const std::string text : {"1", "1.50", "true", "null"})
    EXPECT_EQ(load_minimal({"node.name=" + text}).value().node.name, text);
  EXPECT_EQ(load_minimal({R"(node.name="quoted")"}).value().node.name, "quoted");
  EXPECT_EQ(load_minimal({R"(namespace.exclude=["a=b"])"}).value().name_space.exclude.at(0), "a=b");
}

TEST(OverrideTest, ListSetting_IsParsedAsJson) {
  const Config config = load_minimal({R"(drives=["/a","/b"])", R"(listen=[{"address":"127.0.0.1","port":0}])",
                                      "peers.static=[]"})
                            .value();
  EXPECT_THAT(config.drives, ElementsAre("/a", "/b"));
  EXPECT_THAT(config.listen, ElementsAre(Listener{.address = "127.0.0.1", .port = 0}));
  EXPECT_FALSE(config.listen_is_default);
}

TEST(OverrideTest, ListOfWatchedDrives_ReplacesAll) {
  const auto watched = [](const std::string& drives) {
    const std::vector<std::string> overrides{"watch.drives=" + drives};
    return load_text(R"({"node": {"name": "n"}, "drives": ["/a", "/b"], "watch": {"drives": "all"}})", "f",
                     overrides)
        .value()
        .watch;
  };
  EXPECT_TRUE(watched("all").all_drives);
  EXPECT_FALSE(watched(R"(["/a"])").all_drives);
  EXPECT_FALSE(watched("[]").all_drives);
}

TEST(OverrideTest, BadOverride_ErrorExplainsForm) {
  for (const auto& [override_text, error] : {
           std::pair{"tracker.itmes=5", "--set: unknown key 'tracker.itmes': did you mean 'tracker.items'?"},
           {"itmes=5", "--set: unknown key 'itmes': did you mean 'tracker.items'?"},
           {"tracker.items.more=5", "--set: unknown key 'tracker.items.more': did you mean 'tracker.items'?"},
           {"tracker.items",
            R"(--set: "tracker.items" is wrong: expected key=value in UTF-8, such as tracker.items=500000)"},
           {"tracker.items=many",
            R"(--set: tracker.items: "many" is wrong: expected a whole number from 1 to 200000000)"},
           {"drives=/a", R"(--set: drives: "/a" is wrong: expected a list in [ ])"},
           {"drives=[5]", "--set: drives[0]: 5 is wrong: expected a path in quotes"},
           {"tracker=5", "--set: tracker: expected an object in { }"},
           {R"(tracker={"items":1,"items":2})", "--set: tracker: expected an object in { }"},
           {"scan.file_feed=on", "--set: scan.file_feed: \"on\" is wrong: expected true or false"},
           {"node.name=", "node.name is required"},
       })
    EXPECT_THAT(problems({override_text}), ElementsAre(error));
  EXPECT_THAT(problems({".=5"}), ElementsAre(HasSubstr("unknown key '.'")));
  for (const char* bad : {"=5", "", "node.name=\xff"})
    EXPECT_THAT(problems({bad}), ElementsAre(HasSubstr("expected key=value in UTF-8")));
}

TEST(OverrideTest, ErrorsInFileAndOverrides_AreReportedTogether) {
  const std::vector<std::string> overrides = {"tracker.history=0", "log.level=loud"};
  const std::string message = error_of(load_text(R"({"drives":["/a"],"nodes":{}})", "spoor.json", overrides));
  for (const char* part :
       {"spoor.json: unknown key 'nodes': did you mean 'node'?", "--set: log.level: \"loud\"",
        "node.name is required", "tracker.history: 0 is out of range"})
    EXPECT_THAT(message, HasSubstr(part));
}

TEST(OverrideTest, InvalidSecret_IsNotShown) {
  for (const char* secret : {R"(auth.tokens=["hush"])", "auth.tokens=hush", "auth=hush"})
    EXPECT_THAT(error_of(load_minimal({secret})), Not(HasSubstr("hush")));
}

class LoadFileTest : public ::testing::Test {
 protected:
  std::filesystem::path write(std::string_view text) const {
    const std::filesystem::path path = directory_ / "spoor.json";
    std::ofstream(path) << text;
    return path;
  }

  support::TempDirectory directory_;
};

TEST_F(LoadFileTest, GivenFile_IsRead) { EXPECT_EQ(load(write(minimal), {}).value().node.name, "x"); }

TEST_F(LoadFileTest, InvalidFile_ErrorNamesFile) {
  const auto path = write("{");
  EXPECT_THAT(error_of(load(path, {})), HasSubstr(path.native() + ": not valid JSON"));
}

TEST_F(LoadFileTest, GivenFileMissing_IsAnError) {
  const auto loaded = load(directory_ / "none.json", {});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, std::errc::no_such_file_or_directory);
  EXPECT_THAT(loaded.error().message, HasSubstr("none.json"));
}

TEST_F(LoadFileTest, Directory_IsRefused) { EXPECT_FALSE(load(directory_.path(), {})); }

TEST_F(LoadFileTest, FileOverOneMebibyte_IsRefused) {
  const std::string text(minimal);
  EXPECT_TRUE(load(write(text + std::string(file_bytes_max - text.size(), ' ')), {}));
  const auto loaded = load(write(text + std::string(file_bytes_max + 1 - text.size(), ' ')), {});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, std::errc::file_too_large);
}

TEST_F(LoadFileTest, DefaultFileMissing_IsAccepted) {
  if (std::filesystem::exists(default_file)) GTEST_SKIP() << default_file << " exists on this machine";
  const std::vector<std::string> enough = {"node.name=x", R"(drives=["/a"])"};
  EXPECT_TRUE(load(std::nullopt, enough));
  EXPECT_EQ(error_of(load(std::nullopt, {})),
            "node.name is required\n"
            "drives: at least one is required, such as \"drives\": [\"/srv/data\"]\n"
            "/etc/spoor/spoor.json does not exist: name another file with --config");
}

}  // namespace
}  // namespace spoor::config
