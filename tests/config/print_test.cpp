#include "config/print.h"

#include <gmock/gmock.h>

#include "tests/config/support.h"

namespace spoor::config {
namespace {

// What loading the printed configuration gives; `listen` was then given, which is no difference.
Config reloaded(const Config& config) {
  Config again = load_text(to_json_text(config), "printed", {}).value();
  again.listen_is_default = config.listen_is_default;
  return again;
}

TEST(PrintTest, Defaults_RoundTrip) {
  const Config config = load_minimal().value();
  EXPECT_EQ(reloaded(config), config);
}

TEST(PrintTest, EverySetting_RoundTrips) {
  Config config;
  config.node = {.name = "n", .cluster = "c", .data_dir = "/d \"quoted\"\n"};
  config.drives = {"/a", "/\xc3\xa4"};
  config.listen = {{.address = "::", .port = 0, .insecure = true},
                   {.unix_path = "/s"},
                   {.unix_path = "/t", .insecure = true},
                   {.unix_path = "/u", .mode = "0600", .group = "g"},
                   {.address = "::1", .tls = Tls{"/c", "credential:k", "/ca"}, .page = false}};
  config.tracker = {.items = 199'999'999,
                    .fp_rate = 0.1 + 1e-15,
                    .history = 1,
                    .save_interval = std::chrono::milliseconds(1001),
                    .durability = Durability::memory,
                    .memory_limit_bytes = (1ULL << 40U) + 1};
  config.name_space = {.exclude = {"*", "\x01"}, .bucket_names = BucketNames::s3};
  config.peers.static_endpoints = {{"::1", 1, {}}, {{}, 0, "/x"}};
  config.peers.dns = {{"a.b", 1, false}, {"_s._tcp.b", 0, true}};
  config.peers.dns_servers = {{"::1", 53}, {"10.0.0.1", 1}};
  config.peers.dns_tls = true;
  config.peers.timeout = std::chrono::milliseconds(1);
  config.scan = {.min_cycle_age = std::chrono::milliseconds(0),
                 .require = Require::all,
                 .threads = 256,
                 .max_dirs_per_second = 1'000'000'000,
                 .audit_period = std::chrono::milliseconds(0)};
  config.usage = {.copies = {{"b*", 1.5}}, .limits = {{"", 1, 2, 0}, {"b", 0, 0, 3ULL << 40U}}};
  config.watch = {.all_drives = true,
                  .drives = {},
                  .batch = std::chrono::milliseconds(1),
                  .timeout = std::chrono::milliseconds(2),
                  .unwatched = Unwatched::partial};
  config.history = {.keep = true, .depth = 0, .prefixes = {"a/b", "b"}};
  config.peers.token_file = "/t";
  config.peers.token_to_all = true;
  config.peers.tls = {.ca = "/ca", .certificate = "/c", .key = "/k"};
  config.auth.tokens = {{.name = "a", .role = Role::mark, .sha256 = std::string(64, '0')},
                        {.name = "b", .role = Role::admin, .file = "/f"}};
  config.auth.unix_peers = {{.user = "u", .role = Role::read}, {.group = "g", .role = Role::peer}};
  config.auth.certificates = {{.name = "*", .role = Role::peer}};
  config.limits = {.max_body_bytes = 1025, .max_bodies_bytes = 4097, .threads = 256, .max_connections = 1};
  config.log = {.level = LogLevel::warn, .format = LogFormat::json};
  EXPECT_EQ(reloaded(config), config);
}

TEST(PrintTest, ChangedKeys_AreListedInFileOrder) {
  const Config before = load_minimal().value();
  EXPECT_TRUE(changed_keys(before, before).empty());
  Config after = before;
  after.log.level = LogLevel::debug;
  after.drives.emplace_back("/mnt/another");
  after.tracker.items += 1;
  EXPECT_EQ(changed_keys(before, after), (std::vector<std::string>{"drives", "tracker.items", "log.level"}));
}

TEST(PrintTest, EveryEnumValue_RoundTrips) {
  Config config = load_minimal().value();
  for (const LogLevel level :
       {LogLevel::trace, LogLevel::debug, LogLevel::info, LogLevel::warn, LogLevel::error}) {
    config.log.level = level;
    EXPECT_EQ(reloaded(config), config);
  }
  for (const Durability durability : {Durability::disk, Durability::os, Durability::memory}) {
    config.tracker.durability = durability;
    EXPECT_EQ(reloaded(config), config);
  }
}

TEST(PrintTest, PrintedConfig_HasLayoutAndUnitsOfFile) {
  const std::string text = to_json_text(load_text(full, "spoor.json", {}).value());
  EXPECT_THAT(text, ::testing::StartsWith(
                        "{\n  \"node\": {\n    \"name\": \"node1\",\n    \"cluster\": \"default\""));
  EXPECT_THAT(text, ::testing::HasSubstr("\"memory_limit\": \"256MiB\""));
  EXPECT_THAT(text, ::testing::HasSubstr("\"audit_period\": \"30d\""));
  EXPECT_THAT(text, ::testing::HasSubstr("\"file_feed\": false"));
  EXPECT_THAT(text, ::testing::HasSubstr("\"etcd\": null"));
  EXPECT_THAT(text, ::testing::EndsWith("}\n"));
}

}  // namespace
}  // namespace spoor::config
