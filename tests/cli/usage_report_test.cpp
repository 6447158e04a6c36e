#include "cli/usage/usage_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spoor::cli {
namespace {

using scanner::Usage;
using scanner::UsageEntry;
using scanner::UsageOrder;
using testing::HasSubstr;
using testing::Not;

UsageEntry entry(const std::string& path, std::uint64_t depth, std::uint64_t bytes, std::uint64_t files) {
  UsageEntry made;
  made.path = path;
  made.depth = depth;
  made.bytes = bytes;
  made.allocated = bytes;
  made.files = files;
  return made;
}

// bucket holds a/b, c and seven more.
Usage sample() {
  Usage usage;
  usage.saw_everything = true;
  usage.as_of = base::WallTime(std::chrono::seconds(0));
  usage.total = entry("bucket", 0, 1024, 100);
  usage.total.dirs = 10;
  usage.total.children = {entry("bucket/a", 1, 512, 10), entry("bucket/c", 1, 256, 80)};
  usage.total.children[0].children = {entry("bucket/a/b", 2, 512, 10)};
  usage.total.rest = {{.files = 5, .dirs = 0, .bytes = 128, .allocated = 128, .complete = true}, 7};
  return usage;
}

// Those of root and of an id without a name.
Usage with_owners() {
  Usage usage = sample();
  usage.owners.emplace();
  usage.owners->list = {{{0, 0}, {4, 2048, 4096}}, {{4'294'900'000, 4'294'900'001}, {1, 10, 0}}};
  return usage;
}

TEST(OwnersTextTest, NamesAreThoseOfThisMachine) {
  Usage usage = with_owners();
  EXPECT_EQ(owners_text(usage),
            "size     on disk  files  user        group\n"
            "2.0 KiB  4.0 KiB      4  root        root\n"
            "10 B         0 B      1  4294900000  4294900001\n"
            "as of 1970-01-01T00:00:00Z\n");
  usage.owners->list = {{scanner::other_owners, {4, 2048, 4096}}};
  usage.owners->rest_count = 1234;
  usage.owners->rest = {5, 6, 7};
  usage.owners->complete = false;
  EXPECT_EQ(owners_text(usage),
            "size     on disk  files  user          group\n"
            "2.0 KiB  4.0 KiB      4  (others)\n"
            "6 B          7 B      5  (1,234 more)\n"
            "(incomplete)\n"
            "as of 1970-01-01T00:00:00Z\n");
}

TEST(OwnersCsvTest, RestHasNoIds) {
  Usage usage = with_owners();
  usage.owners->rest_count = 2;
  usage.owners->rest = {5, 6, 7};
  usage.owners->list.back().owner = scanner::other_owners;
  EXPECT_EQ(owners_csv(usage),
            "uid,gid,files,bytes,allocated,as_of,complete\r\n"
            "0,0,4,2048,4096,1970-01-01T00:00:00Z,true\r\n"
            ",,1,10,0,1970-01-01T00:00:00Z,true\r\n"
            ",,5,6,7,1970-01-01T00:00:00Z,true\r\n");
}

TEST(UsageTextTest, Terminal_ShowsTreeWithBars) {
  EXPECT_EQ(usage_text(sample(), UsageOrder::size, 80),
            "size     on disk  files  directories    share                    path\n"
            "1.0 KiB  1.0 KiB    100           10  100.0 %  ################  bucket\n"
            "512 B      512 B     10            0   50.0 %  ########........    a\n"
            "512 B      512 B     10            0   50.0 %  ########........      b\n"
            "256 B      256 B     80            0   25.0 %  ####............    c\n"
            "128 B      128 B      5            0   12.5 %  ##..............    (7 more)\n"
            "as of 1970-01-01T00:00:00Z\n");
}

TEST(UsageTextTest, SortedByFiles_BarsShowFiles) {
  const std::string text = usage_text(sample(), UsageOrder::files, 80);
  EXPECT_THAT(text, HasSubstr(" 10.0 %  ##..............    a\n"));
  EXPECT_THAT(text, HasSubstr(" 80.0 %  #############...    c\n"));
}

TEST(UsageTextTest, NoTerminal_ShowsWholePathsWithoutBars) {
  EXPECT_EQ(usage_text(sample(), UsageOrder::size, std::nullopt),
            "size     on disk  files  directories  path\n"
            "1.0 KiB  1.0 KiB    100           10  bucket\n"
            "512 B      512 B     10            0  bucket/a\n"
            "512 B      512 B     10            0  bucket/a/b\n"
            "256 B      256 B     80            0  bucket/c\n"
            "128 B      128 B      5            0  (7 more in bucket)\n"
            "as of 1970-01-01T00:00:00Z\n");
}

TEST(UsageTextTest, NarrowTerminal_HasNoBars) {
  EXPECT_THAT(usage_text(sample(), UsageOrder::size, 60), HasSubstr("10            0    a\n"));
}

TEST(UsageTextTest, EmptyTotal_HasEmptyBars) {
  Usage usage = sample();
  usage.total = entry("", 0, 0, 0);
  EXPECT_THAT(usage_text(usage, UsageOrder::size, 80), HasSubstr("  0.0 %  ................  (all)\n"));
}

TEST(UsageTextTest, ControlCharactersInNames_AreEscaped) {
  Usage usage = sample();
  usage.total.children[1].path = "bucket/\x1b[2J\n\xff";
  for (const auto columns : {std::optional<std::size_t>(80), std::optional<std::size_t>()}) {
    const std::string text = usage_text(usage, UsageOrder::size, columns);
    EXPECT_THAT(text, HasSubstr("\\x1b[2J\\x0a\\xff\n"));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  }
}

TEST(UsageTextTest, ClusterWithoutOneNode_GrewByAbout) {
  Usage usage = sample();
  usage.since = base::WallTime();
  usage.total.growth.emplace().bytes = 1024;
  const auto shown = [&](UsageScope scope) {
    return usage_text(usage, UsageOrder::size, std::nullopt, scope);
  };
  EXPECT_THAT(shown(UsageScope::cluster), Not(HasSubstr("about")));
  usage.total.complete = false;
  EXPECT_THAT(shown(UsageScope::cluster), HasSubstr("about +1.0 KiB  bucket  (incomplete)\n"));
  EXPECT_THAT(shown(UsageScope::node), Not(HasSubstr("about")));
}

TEST(UsageTextTest, IncompleteUsage_ReportsPendingChanges) {
  Usage usage = sample();
  usage.total.complete = false;
  usage.total.children[1].complete = false;
  const std::string text = usage_text(usage, UsageOrder::size, std::nullopt);
  EXPECT_THAT(text, HasSubstr("bucket/c  (a part was left for the next scan)\n"));
  EXPECT_THAT(text, HasSubstr("bucket/a\n"));
  EXPECT_THAT(text, HasSubstr("; newer changes are pending\n"));

  usage = sample();
  usage.saw_everything = false;
  EXPECT_THAT(usage_text(usage, UsageOrder::size, std::nullopt), HasSubstr("; newer changes are pending\n"));
}

TEST(UsageCsvTest, Csv_IsQuotedPerRfc4180) {
  Usage usage = sample();
  usage.total.children[0].path = "bucket/a \"b\",\nc\xff";
  usage.total.children[1].complete = false;
  EXPECT_EQ(usage_csv(usage, false),
            "path,depth,files,dirs,bytes,allocated,as_of,complete\r\n"
            "\"bucket\",0,100,10,1024,1024,1970-01-01T00:00:00Z,true\r\n"
            "\"bucket/a \"\"b\"\",\nc\xff\",1,10,0,512,512,1970-01-01T00:00:00Z,true\r\n"
            "\"bucket/a/b\",2,10,0,512,512,1970-01-01T00:00:00Z,true\r\n"
            "\"bucket/c\",1,80,0,256,256,1970-01-01T00:00:00Z,false\r\n");
}

TEST(UsageCsvTest, ControlCharactersOnTerminal_AreEscaped) {
  Usage usage = sample();
  usage.total.children[0].path = "bucket/\x1b[2J";
  EXPECT_THAT(usage_csv(usage, true), HasSubstr("\"bucket/\\x1b[2J\",1,"));
}

Usage grown_sample() {
  using Change = scanner::UsageGrowth::Change;
  Usage usage = sample();
  usage.since = usage.as_of;
  usage.total.growth = {.bytes = 2048};
  usage.total.children[0].growth = {.files = -1, .bytes = -512, .change = Change::renamed, .from = "x\ny"};
  usage.total.children[1].growth = {.change = Change::created};
  return usage;
}

TEST(UsageTextTest, Growth_HasASignAndWhatHappened) {
  EXPECT_EQ(usage_text(grown_sample(), UsageOrder::size, std::nullopt),
            "size     on disk  files  directories    growth  path\n"
            "1.0 KiB  1.0 KiB    100           10  +2.0 KiB  bucket\n"
            "512 B      512 B     10            0    -512 B  bucket/a  (renamed from x\\x0ay)\n"
            "512 B      512 B     10            0         -  bucket/a/b\n"
            "256 B      256 B     80            0       0 B  bucket/c  (new)\n"
            "128 B      128 B      5            0         -  (7 more in bucket)\n"
            "as of 1970-01-01T00:00:00Z\n");
  EXPECT_THAT(usage_text(grown_sample(), UsageOrder::size, 100), HasSubstr("-512 B   50.0 %  ##########"));
}

TEST(UsageTextTest, GrowthSinceIncompleteTotals_IsNoted) {
  Usage usage = grown_sample();
  usage.total.children[1].growth->complete = false;
  EXPECT_THAT(usage_text(usage, UsageOrder::size, 60), HasSubstr(" c  (new)  (incomplete then)\n"));
}

TEST(UsageTextTest, FullHistory_IsNoted) {
  Usage usage = grown_sample();
  usage.history_is_full = true;
  EXPECT_THAT(usage_text(usage, UsageOrder::size, 60), HasSubstr("\nthe history has reached its bounds"));
}

TEST(UsageCsvTest, Growth_HasFurtherColumns) {
  const std::string csv = usage_csv(grown_sample(), true);
  EXPECT_THAT(csv, HasSubstr(",complete,files_grown,dirs_grown,bytes_grown,allocated_grown,since,change,from,"
                             "growth_complete\r\n"));
  EXPECT_THAT(csv, HasSubstr(",true,-1,0,-512,0,1970-01-01T00:00:00Z,renamed,\"x\\x0ay\",true\r\n"));
  EXPECT_THAT(csv, HasSubstr(",true,,,,,,,,\r\n")) << "no history";
}

}  // namespace
}  // namespace spoor::cli
