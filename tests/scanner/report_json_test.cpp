#include "scanner/report_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/json_mutations.h"

namespace spoor::scanner {
namespace {

using nlohmann::ordered_json;

UsageEntry entry(const std::string& path, bool is_open = false) {
  UsageEntry made;
  made.path = path;
  made.files = 1;
  made.dirs = 2;
  made.bytes = 3;
  made.allocated = 4;
  made.is_open = is_open;
  return made;
}

TEST(UsageJsonTest, Children_NestToTheQueriedDepth) {
  Usage usage;
  usage.saw_everything = true;
  usage.as_of = base::WallTime(std::chrono::seconds(0));
  usage.total = entry("a", true);
  usage.total.children = {entry("a/b", true), entry("a/c")};
  usage.total.children[1].complete = false;
  usage.total.rest = {{.files = 6, .dirs = 7, .bytes = 8, .allocated = 9, .complete = false}, 5};
  EXPECT_EQ(usage_json(usage), ordered_json::parse(R"({
    "path":"a","files":1,"dirs":2,"bytes":3,"allocated":4,"complete":true,
    "as_of":"1970-01-01T00:00:00Z","truncated":false,
    "children":[
      {"path":"a/b","files":1,"dirs":2,"bytes":3,"allocated":4,"complete":true,"children":[]},
      {"path":"a/c","files":1,"dirs":2,"bytes":3,"allocated":4,"complete":false}],
    "rest":{"count":5,"files":6,"dirs":7,"bytes":8,"allocated":9,"complete":false}})"));
}

TEST(UsageJsonTest, PeerMissing_NothingIsComplete) {
  Usage usage;
  usage.total = entry("", true);
  usage.total.children = {entry("a")};
  usage.total.rest.count = 1;
  const auto json = usage_json(usage);
  EXPECT_EQ(json["complete"], false);
  EXPECT_EQ(json["children"][0]["complete"], false);
  EXPECT_EQ(json["rest"]["complete"], false);
  EXPECT_TRUE(json["as_of"].is_null());
  usage.total.is_open = false;
  EXPECT_EQ(usage_json(usage)["children"], ordered_json::array()) << "none were requested";
}

TEST(UsageJsonTest, UsageJson_RoundTrips) {
  Usage usage;
  usage.saw_everything = true;
  usage.as_of = base::WallTime(std::chrono::seconds(1'700'000'000));
  usage.truncated = true;
  usage.total = entry("a", true);
  usage.total.children = {entry("a/b", true), entry("a/c")};
  usage.total.children[0].rest = {{.files = 6, .dirs = 7, .bytes = 8, .allocated = 9}, 5};
  const auto json = usage_json(usage);
  const auto read = usage_from_json(json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(usage_json(*read), json);
  EXPECT_EQ(read->total.children[1].depth, 1U);
}

TEST(UsageJsonTest, MalformedJson_IsAnError) {
  Usage usage;
  usage.total = entry("a", true);
  const auto good = usage_json(usage);
  ASSERT_TRUE(usage_from_json(good));
  for (const auto& [name, value] : good.items()) {
    auto missing = good;
    missing.erase(name);
    EXPECT_EQ(usage_from_json(missing).has_value(), name == "children") << name;
    auto other = good;
    other[name] = ordered_json{{"x", 1}};
    EXPECT_FALSE(usage_from_json(other)) << name;
  }
  EXPECT_FALSE(usage_from_json(ordered_json::parse("[1]")));
  auto deep = good;
  for (int i = 0; i < 1'000; ++i) {
    auto above = good;
    above["children"].push_back(std::move(deep));
    deep = std::move(above);
  }
  EXPECT_FALSE(usage_from_json(deep));
}

TEST(UsageJsonTest, AnyMemberMissingOrOfAnotherType_IsReadOrAnError) {
  Usage usage;
  usage.saw_everything = usage.has_copy_rules = usage.with_owners = true;
  usage.as_of = usage.since = usage.history_since = base::WallTime(std::chrono::seconds(1'700'000'000));
  usage.total = entry("a", true);
  usage.total.copied[2] = 3;
  usage.total.growth.emplace().from = "before";
  usage.total.children = {entry("a/b")};
  usage.total.rest = {{.files = 6, .dirs = 7, .bytes = 8, .allocated = 9}, 5};
  usage.owners.emplace().list.push_back({Owner{1, 2}, {3, 4, 5}});
  std::size_t refused = 0;
  support::for_each_mutation<ordered_json>(usage_json(usage),
                                           [&](const ordered_json& mutated, const std::string&) {
                                             if (!usage_from_json(mutated)) ++refused;
                                           });
  EXPECT_GT(refused, 300U);
}

TEST(UsageJsonTest, NumberThatIsNoSum_IsAnError) {
  Usage usage;
  usage.total = entry("a", true);
  usage.has_copy_rules = true;
  usage.total.copied[2] = 3;
  usage.total.children = {entry("a/b")};
  usage.total.rest = {{.files = 6, .dirs = 7, .bytes = 8, .allocated = 9}, 5};
  const auto good = usage_json(usage);
  std::vector<std::string> places{"/rest/count", "/copied/0/bytes"};
  for (const std::string of : {"", "/children/0", "/rest"})
    for (const char* const figure : {"/files", "/dirs", "/bytes", "/allocated"})
      places.push_back(of + figure);
  for (const std::string& place : places) {
    for (const char* const bad :
         {"18446744073709551616", "-1", "1e300", "1.5", R"("5")", "true", "null", "[1]"}) {
      auto wrong = good;
      wrong.at(ordered_json::json_pointer(place)) = ordered_json::parse(bad);
      EXPECT_FALSE(usage_from_json(wrong)) << place << ' ' << bad;
    }
  }
}

TEST(UsageJsonTest, PathThatIsNotUtf8_IsExactInBase64) {
  Usage usage;
  usage.total = entry("", true);
  usage.total.children = {entry("a\xff"), entry("a\xfe"), entry("\xc3\xa4")};
  const auto text = usage_json(usage).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  const auto json = ordered_json::parse(text);
  EXPECT_EQ(json["children"][0]["path_base64"], "Yf8=");
  EXPECT_FALSE(json["children"][2].contains("path_base64"));
  const auto back = usage_from_json(json).value();
  EXPECT_EQ(back.total.children[0].path, "a\xff");
  EXPECT_EQ(back.total.children[1].path, "a\xfe");
  auto wrong = json;
  wrong["children"][0]["path_base64"] = "?";
  EXPECT_FALSE(usage_from_json(wrong));
}

TEST(UsageJsonTest, CopiedBytes_RoundTrip) {
  Usage usage;
  usage.total = entry("");
  EXPECT_FALSE(usage_json(usage).contains("logical_bytes")) << "no copies are declared";
  usage.has_copy_rules = true;
  usage.total.bytes = 100;
  usage.total.copied = {{3, 90}, {1.5, 6}};
  const auto json = usage_json(usage);
  EXPECT_EQ(json["logical_bytes"], 4 + 30 + 4);
  const auto back = usage_from_json(json).value();
  EXPECT_TRUE(back.has_copy_rules);
  EXPECT_EQ(back.total.copied, usage.total.copied);
  for (const char* bad :
       {R"([{"factor":0.5,"bytes":1}])", R"([{"factor":0,"bytes":1}])", R"([{"factor":-1,"bytes":1}])",
        R"([{"factor":"3","bytes":1}])", R"([{"factor":null,"bytes":1}])", R"([{"bytes":1}])", R"([7])"}) {
    auto wrong = json;
    wrong["copied"] = ordered_json::parse(bad);
    EXPECT_FALSE(usage_from_json(wrong)) << bad;
  }
}

TEST(ScansJsonTest, Scan_HasItsFigures) {
  ScanRecord scan;
  scan.id = 7;
  scan.cycle = {9};
  scan.started_at = base::WallTime(std::chrono::seconds(60));
  scan.finished_at = base::WallTime(std::chrono::milliseconds(62'500));
  scan.partial = true;
  scan.figures = {.dirs_walked = 10,
                  .dirs_skipped = 20,
                  .dirs_changed = 3,
                  .dirs_new = 2,
                  .dirs_deleted = 1,
                  .audited = 8,
                  .missed = 6};
  scan.files = 30;
  scan.bytes = 40;
  scan.errors = 5;
  EXPECT_EQ(scans_json({scan}), ordered_json::parse(R"({"scans":[
    {"scan":7,"cycle":9,"mode":"incremental","reason":"","partial":true,
     "started_at":"1970-01-01T00:01:00Z","finished_at":"1970-01-01T00:01:02Z","duration_s":2.5,
     "dirs_walked":10,"dirs_skipped":20,"dirs_changed":3,"dirs_new":2,"dirs_deleted":1,
     "false_positives":5,"false_positive_rate":0.5,"files":30,"bytes":40,"errors":5,
     "audited":8,"missed_changes":6}]})"));
}

TEST(ScansJsonTest, FalsePositives_AreThoseOfIncrementalScans) {
  ScanRecord scan;
  scan.started_at = base::WallTime(std::chrono::seconds(60));  // the clock was set back: it ended before
  const auto nothing_read = scans_json({scan})["scans"][0];
  EXPECT_EQ(nothing_read["duration_s"], 0);
  EXPECT_EQ(nothing_read["false_positives"], 0);
  EXPECT_EQ(nothing_read["false_positive_rate"], 0);
  scan.walked_everything = true;
  scan.reason = "it is the first scan";
  scan.figures.dirs_walked = 10;
  const auto full = scans_json({scan})["scans"][0];
  EXPECT_EQ(full["mode"], "full");
  EXPECT_EQ(full["reason"], "it is the first scan");
  EXPECT_TRUE(full["false_positives"].is_null());
  EXPECT_TRUE(full["false_positive_rate"].is_null());
}

TEST(ScansJsonTest, ScansJson_RoundTripsAndMalformedIsRefused) {
  ScanRecord scan;
  scan.id = 7;
  scan.started_at = base::WallTime(std::chrono::seconds(1'700'000'000));
  scan.finished_at = scan.started_at + std::chrono::milliseconds(1'500);
  scan.reason = "it is the first scan";
  scan.walked_everything = true;
  scan.figures = {.dirs_walked = 1, .dirs_skipped = 2, .dirs_changed = 3, .dirs_new = 4, .dirs_deleted = 5};
  const auto json = scans_json({scan, ScanRecord()});
  const auto read = scans_from_json(json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(scans_json(*read)["scans"][0], json["scans"][0]);
  EXPECT_EQ(scans_json(*read), json);
  for (const char* text : {"{}", R"({"scans":[{}]})", R"({"scans":{"a":1}})", "[]"}) {
    EXPECT_FALSE(scans_from_json(ordered_json::parse(text))) << text;
  }
  support::for_each_mutation<ordered_json>(json, [](const ordered_json& mutated, const std::string& what) {
    const auto scans = scans_from_json(mutated);
    const auto is_of = [&](const char* member) { return what.find(member) != std::string::npos; };
    const bool is_no_count = is_of("/finished_at ") || is_of("/duration_s ") || is_of("/false_positive");
    EXPECT_TRUE(!scans || is_no_count || what.find("e+300") == std::string::npos) << what;
  });
}

TEST(UsageJsonTest, Owners_ComeBack) {
  Usage usage;
  usage.saw_everything = true;
  EXPECT_FALSE(usage_json(usage).contains("owners")) << "they were not asked for";
  usage.with_owners = true;
  EXPECT_TRUE(usage_json(usage)["owners"].is_null());
  EXPECT_FALSE(usage_from_json(usage_json(usage))->owners);
  usage.owners.emplace();
  usage.owners->list = {{{1, 4'294'967'294}, {2, 3, 4}}, {other_owners, {5, 6, 7}}};
  usage.owners->rest_count = 8;
  usage.owners->rest = {9, 10, 11};
  const auto json = usage_json(usage);
  EXPECT_EQ(json["owners"]["complete"], true);
  EXPECT_TRUE(json["owners"]["list"][1]["uid"].is_null()) << json;
  const auto back = usage_from_json(json);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(back->with_owners);
  EXPECT_EQ(back->owners->list, usage.owners->list);
  EXPECT_EQ(back->owners->rest_count, 8U);
  EXPECT_EQ(back->owners->rest, usage.owners->rest);
  usage.total.complete = false;
  EXPECT_EQ(usage_json(usage)["owners"]["complete"], false);
  for (const auto& wrong : {ordered_json(4'294'967'296), ordered_json(-1), ordered_json("1")}) {
    auto changed = json;
    changed["owners"]["list"][0]["uid"] = wrong;
    EXPECT_FALSE(usage_from_json(changed)) << wrong;
  }
  auto many = json;
  many["owners"]["list"] = std::vector<ordered_json>(usage_owners_max + 1, json["owners"]["list"][0]);
  EXPECT_FALSE(usage_from_json(many));
}

TEST(UsageJsonTest, Growth_ComesBack) {
  Usage usage;
  usage.since = base::WallTime(std::chrono::seconds(5));
  usage.history_is_full = true;
  usage.total.growth = {.files = -1,
                        .bytes = std::numeric_limits<std::int64_t>::min() + 1,
                        .since = base::WallTime(std::chrono::seconds(7)),
                        .change = UsageGrowth::Change::renamed,
                        .from = "old"};
  usage.total.is_open = true;
  usage.total.children.emplace_back();
  const auto json = usage_json(usage);
  EXPECT_EQ(json["growth"]["change"], "renamed");
  EXPECT_TRUE(json["children"][0]["growth"].is_null());
  const auto back = usage_from_json(json);
  ASSERT_TRUE(back) << back.error().message;
  auto growth = usage.total.growth;
  growth->complete = false;
  EXPECT_EQ(back->total.growth, growth);
  EXPECT_FALSE(back->total.children[0].growth);
  EXPECT_EQ(back->since, usage.since);
  EXPECT_TRUE(back->history_is_full);
  EXPECT_EQ(json["growth"]["complete"], false) << "no scan saw everything";
  usage.saw_everything = true;
  EXPECT_EQ(usage_json(usage)["growth"]["complete"], true);
  usage.total.growth->complete = false;
  EXPECT_EQ(usage_json(usage)["growth"]["complete"], false);
  auto wrong = json;
  wrong["growth"]["change"] = "another";
  EXPECT_FALSE(usage_from_json(wrong));
}

}  // namespace
}  // namespace spoor::scanner
