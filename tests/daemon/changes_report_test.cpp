#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scanner/feed/change_feed.h"
#include "tests/daemon/reports_fixture.h"

namespace spoor::daemon {
namespace {

using nlohmann::json;
using scanner::Change;

class ChangesReportTest : public ReportsTest {
 protected:
  using Query = std::map<std::string, std::string>;

  // The first scan, which found directories of this name.
  void first_scan(const std::vector<std::string>& names) {
    store(names);
    auto database = scanner::UsageDatabase::open(file_).value();
    feed_ = scanner::feed_id(database).value();
  }

  // One more scan, which found these of them changed.
  void scan(const std::map<std::string, Change>& changed) {
    auto database = scanner::UsageDatabase::open(file_).value();
    auto transaction = database.begin_scan().value();
    const std::int64_t drive = transaction->drives().at(0).id;
    for (const auto& [name, change] : changed) transaction->changes().add(drive, name, change);
    transaction->changes().finish({}, 1'000'000);
    transaction->commit({});
  }

  // One more scan, which kept the names of files, and found these changed in the first directory, "a".
  void scan_files(const std::map<std::string, Change>& changed) {
    auto database = scanner::UsageDatabase::open(file_).value();
    auto transaction = database.begin_scan().value();
    transaction->keep_files(true);
    const std::int64_t drive = transaction->drives().at(0).id;
    const auto root = transaction->directories().find(scanner::DirectoryStore::parent_of_root(drive), "");
    const auto directory = transaction->directories().find(root->id, "a");
    if (!changed.empty()) transaction->changes().add(drive, "a", Change::changed);
    for (const auto& [name, change] : changed) transaction->changes().add_file(directory->id, name, change);
    transaction->changes().finish({}, 1'000'000);
    transaction->commit({});
  }

  json page(const Query& query) {
    const HttpResponse response = changes(query);
    EXPECT_EQ(response.status, 200U) << response.body;
    return json::parse(response.body);
  }

  std::string feed_;
};

TEST_F(ChangesReportTest, SinceAScan_ReturnsTheChangesAfterIt) {
  first_scan({"a", "b", "c"});
  scan({{"", Change::changed}, {"b", Change::created}, {"gone", Change::deleted}});
  scan({{"c", Change::changed}});
  const json expected{{"feed", feed_},
                      {"since", 1},
                      {"until", 3},
                      {"changes",
                       {{{"scan", 2}, {"path", ""}, {"change", "changed"}},
                        {{"scan", 2}, {"path", "b"}, {"change", "new"}},
                        {{"scan", 3}, {"path", "c"}, {"change", "changed"}},
                        {{"scan", 2}, {"path", "gone"}, {"change", "deleted"}}}},
                      {"next", nullptr}};
  EXPECT_EQ(page({{"since", "1"}}), expected);
  EXPECT_EQ(page({{"since", "1"}, {"feed", feed_}, {"limit", "4"}}), expected) << "a full page is the last";
  EXPECT_EQ(page({{"since", "3"}})["changes"], json::array());
}

TEST_F(ChangesReportTest, NewReader_IsToCopyEverythingAndContinueFromTheLastScan) {
  first_scan({"a"});
  scan({{"a", Change::changed}});
  const json first = page({});
  EXPECT_EQ(first, json({{"feed", feed_},
                         {"since", 2},
                         {"until", 2},
                         {"everything", true},
                         {"changes", json::array()},
                         {"next", nullptr}}));
  EXPECT_FALSE(page({{"since", "2"}, {"feed", feed_}}).contains("everything"));
  EXPECT_EQ(page({{"wait", "60s"}}), first) << "it does not wait";
}

TEST_F(ChangesReportTest, Wait_EndsWithTheNextScan) {
  first_scan({"a"});
  begin_changes({{"since", "1"}, {"wait", "30s"}});
  settle();
  EXPECT_TRUE(answers_.empty());
  scan({{"a", Change::changed}});
  pass(std::chrono::seconds(1));
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(json::parse(answers_[0].body)["changes"].size(), 1U);
  begin_changes({{"since", "1"}, {"wait", "30s"}});
  settle();
  EXPECT_EQ(answers_.size(), 2U) << "there are changes already";
  begin_changes({{"since", "7"}, {"wait", "30s"}});
  settle();
  ASSERT_EQ(answers_.size(), 3U);
  expect_problem(answers_[2], 410, "reset");
}

TEST_F(ChangesReportTest, Wait_EndsAfterTheTimeOrAtTheStop) {
  first_scan({"a"});
  begin_changes({{"since", "1"}, {"wait", "3s"}});
  for (int second = 0; second < 3; ++second) {
    settle();
    EXPECT_TRUE(answers_.empty()) << second;
    timers_.advance(std::chrono::seconds(1));
  }
  settle();
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(json::parse(answers_[0].body)["changes"], json::array());
  EXPECT_EQ(json::parse(answers_[0].body)["until"], 1);
  begin_changes({{"since", "1"}, {"wait", "60s"}});
  settle();
  EXPECT_EQ(answers_.size(), 1U);
  waits_.stop();
  settle();
  EXPECT_EQ(answers_.size(), 2U);
}

TEST_F(ChangesReportTest, TooManyWaits_AreRefused) {
  first_scan({"a"});
  for (int number = 0; number < 33; ++number) begin_changes({{"since", "1"}, {"wait", "60s"}});
  settle();
  ASSERT_EQ(answers_.size(), 1U) << "a caller has half of the places";
  expect_problem(answers_[0], 503, "overloaded");
  waits_.stop();
  settle();
  EXPECT_EQ(answers_.size(), 33U);
}

// It kept its place for a minute.
TEST_F(ChangesReportTest, WaitOfAClientThatIsGone_Ends) {
  first_scan({"a"});
  std::atomic<bool> is_gone = false;
  begin_changes({{"since", "1"}, {"wait", "60s"}}, [&] { return is_gone.load(); });
  settle();
  EXPECT_TRUE(answers_.empty());
  is_gone = true;
  pass(std::chrono::seconds(1));
  EXPECT_EQ(answers_.size(), 1U);
}

TEST_F(ChangesReportTest, SinceOfUnknownScanOrFeed_IsAReset) {
  first_scan({"a"});
  for (int i = 0; i < 20; ++i) scan({{"a", Change::changed}});
  for (const Query& query :
       {Query{{"since", "0"}}, Query{{"since", "4"}}, Query{{"since", "22"}},
        Query{{"since", "9223372036854775807"}}, Query{{"since", "20"}, {"feed", "another"}},
        Query{{"since", "20"}, {"feed", ""}}}) {
    const auto response = changes(query);
    expect_problem(response, 410, "reset");
    const auto problem = json::parse(response.body);
    EXPECT_EQ(problem["scan"], 21);
    EXPECT_EQ(problem["feed"], feed_);
    EXPECT_EQ(problem["title"], "Gone");
  }
  EXPECT_EQ(page({{"since", "5"}})["changes"].size(), 1U);
}

TEST_F(ChangesReportTest, Pages_ScanInBetween_KeepTheirRange) {
  first_scan({"a", "b", "c", "d", "e"});
  scan({{"a", Change::changed}, {"b", Change::changed}, {"c", Change::changed}, {"d", Change::changed}});
  json one = page({{"since", "1"}, {"limit", "2"}});
  EXPECT_EQ(one["changes"].size(), 2U);
  EXPECT_EQ(one["changes"][1]["path"], "b");
  EXPECT_EQ(one["until"], 2);
  scan({{"a", Change::changed}, {"d", Change::changed}, {"e", Change::changed}});
  const json two = page({{"next", one["next"]}, {"limit", "1"}});
  EXPECT_EQ(two["changes"], json::parse(R"([{"scan":2,"path":"c","change":"changed"}])"));
  EXPECT_EQ(two["until"], 2);
  const json three = page({{"next", two["next"]}});
  EXPECT_EQ(three["changes"], json::parse(R"([{"scan":2,"path":"d","change":"changed"}])"));
  EXPECT_EQ(three["next"], nullptr);
  EXPECT_EQ(page({{"since", "2"}})["changes"].size(), 3U) << "that of the scan between";
  EXPECT_EQ(page({{"next", one["next"]}, {"limit", "1"}}), two) << "a page can be asked for again";
}

TEST_F(ChangesReportTest, NextPage_ChangesNoLongerKept_IsAReset) {
  first_scan({"a", "b"});
  scan({{"a", Change::changed}, {"b", Change::changed}});
  const std::string next = page({{"since", "1"}, {"limit", "1"}})["next"];
  for (int i = 0; i < 15; ++i) scan({});
  EXPECT_EQ(page({{"next", next}})["changes"].size(), 1U);
  scan({});
  expect_problem(changes({{"next", next}}), 410, "reset");
}

TEST_F(ChangesReportTest, DatabaseRebuilt_PagesOfTheOldFeed_AreAReset) {
  first_scan({"a", "b"});
  scan({{"a", Change::changed}, {"b", Change::changed}});
  const std::string next = page({{"since", "1"}, {"limit", "1"}})["next"];
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
    std::filesystem::remove(entry.path());
  }
  const std::string old_feed = feed_;
  first_scan({"a", "b"});
  scan({{"a", Change::changed}, {"b", Change::changed}});
  EXPECT_NE(feed_, old_feed);
  expect_problem(changes({{"next", next}}), 410, "reset");
  expect_problem(changes({{"since", "1"}, {"feed", old_feed}}), 410, "reset");
}

// Its later scans have the same numbers as those that the reader has seen, and other changes.
TEST_F(ChangesReportTest, DatabaseReplacedByAnOlderCopy_PagesBeyondIt_AreAReset) {
  first_scan({"a", "b"});
  scan({{"a", Change::changed}});
  const support::TempDirectory copy;
  const auto all = std::filesystem::copy_options::recursive;
  std::filesystem::copy(directory_.path(), copy.path(), all);
  scan({{"a", Change::changed}, {"b", Change::changed}});
  const std::string next = page({{"since", "1"}, {"limit", "1"}})["next"];
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
    std::filesystem::remove(entry.path());
  std::filesystem::copy(copy.path(), directory_.path(), all);
  expect_problem(changes({{"next", next}}), 410, "reset");
}

TEST_F(ChangesReportTest, ReplacedDirectory_ItsTwoChanges_StayOnOnePage) {
  first_scan({"a", "b"});
  scan({{"a", static_cast<Change>(5)}, {"b", static_cast<Change>(5)}});
  const json one = page({{"since", "1"}, {"limit", "1"}});
  EXPECT_EQ(one["changes"], json::parse(R"([{"scan":2,"path":"a","change":"deleted"},
                                            {"scan":2,"path":"a","change":"new"}])"));
  EXPECT_EQ(page({{"since", "1"}, {"limit", "3"}})["changes"].size(), 2U);
  const json two = page({{"next", one["next"]}, {"limit", "1"}});
  EXPECT_EQ(two["changes"][1]["path"], "b");
  EXPECT_EQ(two["next"], nullptr);
}

TEST_F(ChangesReportTest, FilesParameter_FileFeedKept_ListsFiles) {
  first_scan({"a", "b"});
  expect_problem(changes({{"since", "1"}, {"files", "1"}}), 404, "no_files");
  EXPECT_EQ(page({{"since", "1"}, {"files", "0"}})["changes"], json::array());
  scan_files({});
  expect_problem(changes({{"since", "1"}, {"files", "1"}}), 410, "reset");
  scan_files(
      {{"c", scanner::Change::changed}, {"d", scanner::Change::created}, {"e", scanner::Change::deleted}});
  const json expected = json::parse(R"([{"scan":3,"path":"a","change":"changed"},
                                        {"scan":3,"path":"a/c","change":"changed","type":"file"},
                                        {"scan":3,"path":"a/d","change":"new","type":"file"},
                                        {"scan":3,"path":"a/e","change":"deleted","type":"file"}])");
  EXPECT_EQ(page({{"since", "2"}, {"files", "1"}})["changes"], expected);
  EXPECT_EQ(page({{"since", "2"}})["changes"].size(), 1U);
  json in_pages = json::array();
  json at = page({{"since", "2"}, {"files", "1"}, {"limit", "1"}});
  for (;; at = page({{"next", at["next"]}, {"limit", "1"}})) {
    in_pages.insert(in_pages.end(), at["changes"].begin(), at["changes"].end());
    if (at["next"].is_null()) break;
  }
  EXPECT_EQ(in_pages, expected);
}

TEST_F(ChangesReportTest, PageOfNonUtf8Names_IsBoundedInCountAndBytes) {
  std::vector<std::string> names;
  std::map<std::string, Change> changed;
  for (int i = 0; i < 12'000; ++i) {
    names.push_back(std::to_string(100'000 + i) + "\xff" + std::string(240, '.'));
    changed[names.back()] = Change::changed;
  }
  first_scan(names);
  scan(changed);
  EXPECT_EQ(page({{"since", "1"}})["changes"].size(), 1'000U);
  std::size_t count = 0;
  std::size_t largest = 0;
  for (json at = page({{"since", "1"}, {"limit", "10000"}});;
       at = page({{"next", at["next"]}, {"limit", "10000"}})) {
    EXPECT_LT(at["changes"].size(), 10'000U) << "a bound on the bytes of the paths";
    count += at["changes"].size();
    largest = std::max(largest, at.dump().size());
    if (at["next"].is_null()) break;
  }
  EXPECT_EQ(count, 12'000U);
  EXPECT_LT(largest, std::size_t{4} << 20U);
}

TEST_F(ChangesReportTest, Pages_VeryLongPaths_ListEachChangeOnce) {
  const std::vector<std::string> paths{"a", std::string(5'000, 'b'), std::string(20'000, 'c'), "d", "e"};
  std::map<std::string, Change> changed;
  for (const std::string& path : paths) changed[path] = Change::deleted;
  first_scan({"here"});
  scan(changed);
  std::vector<std::string> told;
  std::vector<std::size_t> sizes;
  for (json at = page({{"since", "1"}, {"limit", "1"}});; at = page({{"next", at["next"]}, {"limit", "1"}})) {
    for (const json& change : at["changes"]) told.push_back(change["path"]);
    sizes.push_back(at["changes"].size());
    if (at["next"].is_null()) break;
    EXPECT_LT(at["next"].get<std::string>().size(), 12'000U) << "a request has room for it";
  }
  EXPECT_EQ(told, paths);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 1, 2, 1})) << "no page ends behind the longest";
}

TEST_F(ChangesReportTest, InvalidParameters_AreRefused) {
  first_scan({"a"});
  const std::string next = "MSBmIDEgMSBh";  // "1 f 1 1 a"
  for (const Query& query :
       {Query{{"feed", feed_}}, Query{{"since", "1"}, {"wait", "61s"}}, Query{{"since", "1"}, {"wait", "30"}},
        Query{{"since", ""}}, Query{{"since", "-1"}}, Query{{"since", "x"}},
        Query{{"since", "9223372036854775808"}}, Query{{"since", "1"}, {"limit", "0"}},
        Query{{"since", "1"}, {"limit", "10001"}}, Query{{"since", "1"}, {"page", "2"}},
        Query{{"since", "1"}, {"files", "2"}}, Query{{"next", next}, {"files", "1"}},
        Query{{"next", next}, {"since", "1"}}, Query{{"next", next}, {"feed", feed_}}, Query{{"next", ""}},
        Query{{"next", "x"}}}) {
    expect_problem(changes(query), 400, "invalid_request");
  }
  expect_problem(changes({{"next", next}}), 410, "reset");
}

TEST_F(ChangesReportTest, RequestWaitedTooLong_ReturnsOverloaded) {
  first_scan({"a"});
  std::promise<void> go_on;
  boost::asio::post(pool_, [blocked = go_on.get_future().share()] { blocked.wait(); });
  begin_changes({{"since", "1"}});
  context_.poll();  // begun, and its time runs
  clock_.advance(std::chrono::seconds(11));
  go_on.set_value();
  expect_problem(finish(), 503, "overloaded");
}

}  // namespace
}  // namespace spoor::daemon
