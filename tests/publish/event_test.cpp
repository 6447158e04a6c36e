#include "publish/event.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/base64.h"

namespace spoor::publish {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

const Source source{"cluster", "node1", "feed"};

scanner::FeedEntry entry(const std::string& path) { return {.path = path, .scan = 7, .is_there = true}; }

json json_of(const scanner::FeedEntry& of) {
  return json::parse(to_json(source, make_event(source, of, "")));
}

TEST(EventTest, ChangedDirectory_HasTheAttributesOfCloudEvents) {
  const json event = json_of(entry("bucket/a"));
  EXPECT_EQ(event["specversion"], "1.0");
  EXPECT_EQ(event["type"], "spoor.changed");
  EXPECT_EQ(event["source"], "/spoor/cluster/node1");
  EXPECT_EQ(event["subject"], "bucket/a");
  EXPECT_EQ(event["datacontenttype"], "application/json");
  EXPECT_THAT(event["id"].get<std::string>(), StartsWith("node1/feed/7/changed/"));
  EXPECT_EQ(event["data"], (json{{"scan", 7}, {"kind", "dir"}, {"path", "bucket/a"}}));
}

TEST(EventTest, KindOfAChange_FollowsFromTheEntry) {
  const auto kind = [](bool there, bool is_new, bool deleted, bool file_now) {
    return make_event(source,
                      {.path = "a",
                       .scan = 1,
                       .is_there = there,
                       .is_new = is_new,
                       .is_deleted = deleted,
                       .is_file_now = file_now},
                      "");
  };
  EXPECT_EQ(kind(true, false, false, false).kind, Event::Kind::changed);
  EXPECT_EQ(kind(true, true, false, false).kind, Event::Kind::created);
  EXPECT_EQ(kind(true, true, true, false).kind, Event::Kind::replaced);
  EXPECT_EQ(kind(false, false, true, false).kind, Event::Kind::deleted);
  const Event file = kind(false, false, true, true);
  EXPECT_EQ(file.kind, Event::Kind::replaced);
  EXPECT_TRUE(file.is_file);
}

// A sink may drop an event whose id it has seen.
TEST(EventTest, Id_IsThatOfTheChange) {
  std::set<std::string> ids;
  const auto add = [&](const Event& event) { return ids.insert(event.id).second; };
  EXPECT_TRUE(add(make_event(source, entry("a"), "")));
  EXPECT_FALSE(add(make_event(source, entry("a"), ""))) << "the same change";
  EXPECT_TRUE(add(make_event(source, entry("b"), ""))) << "another path";
  auto other = entry("a");
  other.is_file = true;
  EXPECT_TRUE(add(make_event(source, other, ""))) << "a file";
  other = entry("a");
  other.scan = 8;
  EXPECT_TRUE(add(make_event(source, other, ""))) << "another scan";
  other = entry("a");
  other.is_new = true;
  EXPECT_TRUE(add(make_event(source, other, ""))) << "another change";
  EXPECT_TRUE(add(make_event(source, entry("a"), "again"))) << "after a reset";
  EXPECT_TRUE(add(make_event({"cluster", "node2", "feed"}, entry("a"), ""))) << "another node";
  EXPECT_TRUE(add(make_event({"cluster", "node1", "other"}, entry("a"), ""))) << "another feed";
}

TEST(EventTest, PathThatIsNotUtf8_IsExactInBase64) {
  const json event = json_of(entry("a\xFF"));
  EXPECT_FALSE(event.contains("subject"));
  EXPECT_EQ(base::from_base64(event["data"]["path_base64"].get<std::string>()), "a\xFF");
  EXPECT_EQ(event["data"]["path"], "a\uFFFD");
}

// The strings of CloudEvents have no control characters, and no code points that are not characters.
TEST(EventTest, PathWithControlOrNoncharacters_IsNoSubject) {
  for (const char* path : {"a\nb", "a\x7F", "a\u0085b", "a\u202Eb", "a\uFDD0", "\uFDEFb", "\uFFFE",
                           "a\uFFFFb", "\U0001FFFE", "\U0010FFFF"}) {
    const json event = json_of(entry(path));
    EXPECT_FALSE(event.contains("subject")) << path;
    EXPECT_EQ(event["data"]["path"], path);
  }
  EXPECT_FALSE(json_of(entry("")).contains("subject")) << "the root";
  for (const char* path : {"ünïcode \"quoted\"", "\uFDCF\uFDF0", "\uFFFD", "\u07FF\u00E9", "\U0001FFFD"})
    EXPECT_EQ(json_of(entry(path))["subject"], path);
}

TEST(EventTest, EndOfScan_HasItsFigures) {
  scanner::ScanRecord scan;
  scan.id = 7;
  scan.started_at = base::WallTime(std::chrono::hours(24));
  scan.finished_at = base::WallTime(std::chrono::hours(25));
  scan.files = 3;
  scan.bytes = 10;
  const json event = json::parse(to_json(source, make_scan_end(source, 7, scan, "")));
  EXPECT_EQ(event["type"], "spoor.scan");
  EXPECT_EQ(event["id"], "node1/feed/7/scan");
  EXPECT_EQ(event["data"], (json{{"scan", 7},
                                 {"started_at", "1970-01-02T00:00:00Z"},
                                 {"finished_at", "1970-01-02T01:00:00Z"},
                                 {"partial", false},
                                 {"files", 3},
                                 {"bytes", 10}}));
}

TEST(EventTest, EndOfScan_WithoutItsRecord_HasNoFigures) {
  EXPECT_EQ(json::parse(to_json(source, make_scan_end(source, 7, std::nullopt, "")))["data"],
            (json{{"scan", 7}}));
}

// Servers refuse larger messages, and would refuse it again and again.
TEST(EventTest, PathThatIsTooLong_IsAChangeOfADirectoryAboveIt) {
  std::string path = "a";
  while (path.size() < 200'000) path += '/' + std::string(255, '\x01');
  for (const bool is_file : {true, false}) {
    const Event event =
        make_event(source, {.path = path, .scan = 7, .is_file = is_file, .is_deleted = true}, "");
    EXPECT_EQ(event.kind, Event::Kind::changed);
    EXPECT_EQ(event.id, make_event(source, {.path = path + "/b", .scan = 7, .is_there = true}, "").id);
    const std::string text = to_json(source, event);
    EXPECT_LT(text.size(), 600'000U);
    const json data = json::parse(text)["data"];
    EXPECT_EQ(data["deeper"], true);
    EXPECT_EQ(data["kind"], "dir");
    const auto above = data["path"].get<std::string>();
    EXPECT_GT(above.size(), 65'000U);
    EXPECT_TRUE(path.starts_with(above + '/'));
  }
}

TEST(EventTest, Reset_HasAnIdOfItsOwnEachTime) {
  const json event = json::parse(to_json(source, make_reset(source, 7, "x")));
  EXPECT_EQ(event["type"], "spoor.reset");
  EXPECT_EQ(event["data"], (json{{"scan", 7}}));
  EXPECT_NE(make_reset(source, 7, "x").id, make_reset(source, 7, "y").id);
}

}  // namespace
}  // namespace spoor::publish
