#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/config/support.h"
#include "tests/support/temp_directory.h"

namespace spoor::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(LoadTest, MinimalFile_HasDefaults) {
  const Config config = load_minimal().value();

  Config expected;
  expected.node.name = "x";
  expected.drives = {"/srv/data"};
  EXPECT_EQ(config, expected);
  EXPECT_TRUE(config.listen_is_default);
}

TEST(LoadTest, FullExample_EqualsDefaults) {
  const Config config = load_text(full, "spoor.json", {}).value();

  Config expected;
  expected.node.name = "node1";
  expected.drives = {"/mnt/disk1", "/mnt/disk2"};
  expected.peers.static_endpoints = {{"10.0.0.2", 7420, {}}};
  expected.listen_is_default = false;
  EXPECT_EQ(config, expected);
}

TEST(LoadTest, EverySetting_IsRead) {
  const Config config = load_text(R"({
    "node": {"name": "n-1.a_B", "cluster": "c", "data_dir": "/d"},
    "drives": ["/a"],
    "listen": [{"address": "::1", "port": 0}, {"address": "0.0.0.0", "port": 1, "insecure": true, "page": false}],
    "tracker": {"items": 5, "fp_rate": 0.01, "history": 3, "save_interval": "250s", "durability": "os", "memory_limit": 4096},
    "namespace": {"exclude": ["*/tmp/*"], "bucket_names": "s3"},
    "peers": {"static": ["unix:/run/p.sock"], "dns": ["a.b:1", "srv:_s._tcp.b"], "dns_servers": ["::1"], "forget_after": "1h", "timeout": "250ms"},
    "scan": {"min_cycle_age": "0s", "require": "all", "threads": 7, "max_dirs_per_second": 9, "audit_period": "0s", "file_feed": true},
    "usage": {"copies": [{"path": "b*/c", "factor": 1.5}],
              "limits": [{"bytes": "1TiB", "files": 5}, {"path": "b", "growth_per_day": 1024, "cluster": true}],
              "limit_command": "logger x",
              "owners": true},
    "history": {"keep": true, "depth": 3, "prefixes": ["b/c/d/e"]},
    "limits": {"max_body": "1KiB", "max_connections": 2},
    "log": {"level": "warning", "format": "json"}
  })",
                                  "spoor.json", {})
                            .value();

  Config expected;
  expected.node = {.name = "n-1.a_B", .cluster = "c", .data_dir = "/d"};
  expected.drives = {"/a"};
  expected.listen = {{.address = "::1", .port = 0},
                     {.address = "0.0.0.0", .port = 1, .insecure = true, .page = false}};
  expected.listen_is_default = false;
  expected.tracker = {.items = 5,
                      .fp_rate = 0.01,
                      .history = 3,
                      .save_interval = std::chrono::seconds(250),
                      .durability = Durability::os,
                      .memory_limit_bytes = 4096};
  expected.name_space = {.exclude = {"*/tmp/*"}, .bucket_names = BucketNames::s3};
  expected.peers.static_endpoints = {{{}, 0, "/run/p.sock"}};
  expected.peers.dns = {{"a.b", 1, false}, {"_s._tcp.b", 0, true}};
  expected.peers.dns_servers = {{"::1", 53}};
  expected.peers.forget_after = std::chrono::hours(1);
  expected.peers.timeout = std::chrono::milliseconds(250);
  expected.scan = {.min_cycle_age = std::chrono::seconds(0),
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
  expected.limits = {.max_body_bytes = 1024, .max_connections = 2};
  expected.log = {.level = LogLevel::warn, .format = LogFormat::json};
  EXPECT_EQ(config, expected);
}

TEST(LoadTest, SettingOfEarlierVersions_IsIgnored) {
  EXPECT_EQ(load_minimal({"scan.new_peers=trust"}).has_value(), false) << "no override has it";
  const Config config =
      load_text(R"({"node": {"name": "n"}, "drives": ["/a"], "scan": {"new_peers": "trust", "threads": 2}})",
                "f", {})
          .value();
  EXPECT_EQ(config.scan.threads, 2U);
}

TEST(LoadTest, Boolean_AcceptsOnlyTrueOrFalse) {
  EXPECT_TRUE(load_minimal({"scan.file_feed=true"}).value().scan.file_feed);
  for (const char* bad : {"1", "\"yes\"", "on"}) {
    EXPECT_THAT(error_of(load_minimal({std::string("scan.file_feed=") + bad})),
                HasSubstr("expected true or false"))
        << bad;
  }
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
  EXPECT_THAT(error_of_text(R"({"node":{"name":"x"},"drives":["/a"],"tracker":{"item":1}})"),
              HasSubstr("unknown key 'tracker.item': did you mean 'tracker.items'?"));
  EXPECT_THAT(error_of_text(R"({"node":{"name":"x"},"drives":["/a"],"treacker":{}})"),
              HasSubstr("unknown key 'treacker': did you mean 'tracker'?"));
  EXPECT_THAT(error_of_text(R"({"node":{"name":"x"},"drives":["/a"],"items":5})"),
              HasSubstr("unknown key 'items': did you mean 'tracker.items'?"));
  EXPECT_THAT(error_of_text(R"({"node":{"name":"x"},"drives":["/a"],"listen":[{"address":"::1","prot":1}]})"),
              HasSubstr("unknown key 'listen[0].prot': did you mean 'listen[0].port'?"));
}

TEST(LoadTest, DottedKeyInFile_ErrorExplainsNesting) {
  EXPECT_THAT(error_of_text(R"({"node.name":"x","drives":["/a"]})"),
              HasSubstr(R"(key 'node.name' is written {"node": {"name": ...}} in a file)"));
}

struct Refusal {
  std::string_view rest;  // Of a configuration that is otherwise fine.
  std::string_view message;
};

class RefusedValueTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedValueTest, Error_NamesKeyValueAndWhatIsAccepted) {
  const std::string text = fmt::format(R"({{"node":{{"name":"x"}},"drives":["/a"],{}}})", GetParam().rest);
  EXPECT_EQ(error_of_text(text), fmt::format("spoor.json: {}", GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    WrongForm, RefusedValueTest,
    ::testing::Values(
        Refusal{R"("tracker":{"items":"many"})",
                R"(tracker.items: "many" is wrong: expected a whole number from 1 to 200000000)"},
        Refusal{R"("tracker":{"items":-1})",
                "tracker.items: -1 is wrong: expected a whole number from 1 to 200000000"},
        Refusal{R"("tracker":{"items":1.5})",
                "tracker.items: 1.5 is wrong: expected a whole number from 1 to 200000000"},
        Refusal{R"("tracker":{"history":4294967296})",
                "tracker.history: 4294967296 is wrong: expected a whole number from 1 to 1024"},
        Refusal{R"("tracker":{"fp_rate":"0.1"})", R"(tracker.fp_rate: "0.1" is wrong: expected a number)"},
        Refusal{R"("tracker":{"fp_rate":null})", "tracker.fp_rate: null is wrong: expected a number"},
        Refusal{R"("tracker":{"save_interval":5})",
                R"(tracker.save_interval: 5 is wrong: expected a duration in quotes, such as "10s")"},
        Refusal{
            R"("tracker":{"save_interval":"5 m"})",
            R"(tracker.save_interval: "5 m" is not a duration: expected a whole number and a unit (ms, s, m, h, d), such as "10s")"},
        Refusal{
            R"("tracker":{"memory_limit":"8M"})",
            R"(tracker.memory_limit: "8M" is not a size: expected a whole number and a unit (B, KiB, MiB, GiB, TiB, KB, MB, GB, TB), such as "8MiB")"},
        Refusal{R"("tracker":{"memory_limit":-8})",
                R"(tracker.memory_limit: -8 is wrong: expected a size, such as "8MiB" or 8388608)"},
        Refusal{R"("tracker":{"durability":"none"})",
                R"(tracker.durability: "none" is wrong: expected one of "disk", "os", "memory")"},
        Refusal{
            R"("log":{"level":3})",
            R"(log.level: 3 is wrong: expected one of "trace", "debug", "info", "warn", "error", "warning")"},
        Refusal{R"("namespace":{"exclude":"*"})",
                R"(namespace.exclude: "*" is wrong: expected a list in [ ])"},
        Refusal{R"("namespace":{"exclude":[1]})",
                "namespace.exclude[0]: 1 is wrong: expected text in quotes"},
        Refusal{
            R"("listen":[7420])",
            R"(listen[0]: 7420 is wrong: expected {"address": "127.0.0.1", "port": 7420} or {"unix": "/path"})"},
        Refusal{R"("listen":[{"address":"::1","port":65536}])",
                "listen[0].port: 65536 is wrong: expected a whole number from 0 to 65535"},
        Refusal{R"("listen":[{"address":"::1","insecure":1}])",
                "listen[0].insecure: 1 is wrong: expected true or false"},
        Refusal{R"("listen":[{"unix":"/a","port":1}])",
                "listen[0]: a Unix socket has no port: remove 'port' or 'unix'"},
        Refusal{R"("scan":[])", "scan: expected an object in { }"},
        Refusal{R"("auth":{"tokens":"hush"})", "auth.tokens: the value is wrong: expected a list in [ ]"},
        Refusal{
            R"("auth":{"tokens":["hush"]})",
            R"(auth.tokens[0]: the value is wrong: expected {"name": "app", "role": "mark", "file": "/path"})"},
        Refusal{R"("auth":{"tokens":[{"sha256":7}]})",
                "auth.tokens[0].sha256: the value is wrong: expected text in quotes"},
        Refusal{R"("auth":"hush")", "auth: expected an object in { }"}));

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
  EXPECT_EQ(error_of_text(R"({"node":{"name":"x"},"drives":["/a"],"tracker":{"items":1,"items":2}})"),
            "spoor.json: key 'tracker.items' is given twice: keep one of them");
  EXPECT_THAT(error_of_text(R"({"node":{"name":"x"},"drives":["/a"],"drives":["/b"]})"),
              HasSubstr("given twice"));
}

TEST(LoadTest, SameKeyInTwoListeners_IsAccepted) {
  EXPECT_TRUE(
      load_text(R"({"node":{"name":"x"},"drives":["/a"],"listen":[{"unix":"/a"},{"unix":"/b"}]})", "f", {}));
}

TEST(LoadTest, InvalidJson_ErrorNamesLineAndColumn) {
  EXPECT_THAT(error_of_text("{\n  \"node\": {,\n}"),
              HasSubstr("spoor.json: not valid JSON: parse error at line 2, column 12"));
  EXPECT_THAT(error_of_text(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of_text(std::string(minimal) + "x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of_text(std::string(minimal) + std::string(minimal)), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of_text("{\"a\": 1e999}"), HasSubstr("not valid JSON: a number is out of range"));
  EXPECT_THAT(error_of_text("{\"a\": \"\xff\"}"), HasSubstr("not valid JSON"));
}

TEST(LoadTest, InvalidJson_ErrorHidesSecrets) {
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

class LoadFileTest : public ::testing::Test {
 protected:
  std::filesystem::path write(std::string_view text) const {
    const std::filesystem::path path = directory_ / "spoor.json";
    std::ofstream(path) << text;
    return path;
  }

  support::TempDirectory directory_;
};

TEST_F(LoadFileTest, GivenFile_IsRead) {
  const Config config = load(write(full), {}).value();
  EXPECT_EQ(config.node.name, "node1");
}

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

TEST(ExampleFileTest, ExampleFile_LoadsAndShowsDefaults) {
  const Config config =
      load(std::filesystem::path(SPOOR_SOURCE_DIR) / "config/spoor.example.json", {}).value();
  EXPECT_EQ(config, load_text(full, "spoor.json", {}).value());
  EXPECT_THAT(config.drives, ElementsAre("/mnt/disk1", "/mnt/disk2"));
}

}  // namespace
}  // namespace spoor::config
