#include "scanner/walk/unfinished_scan.h"

#include <gtest/gtest.h>

#include <string>

#include "base/byte_codec.h"
#include "tests/fakes/memory_file_system.h"
#include "tests/scanner/logged_walk.h"
#include "tracker/storage/mark_set_codec.h"

namespace spoor::scanner {
namespace {

std::string encoded(const tracker::MarkSet& marks) {
  base::ByteWriter out;
  tracker::encode_mark_set(out, marks);
  return out.take();
}

void expect_same(const ScanInput& one, const ScanInput& other) {
  ASSERT_EQ(one.marks.group_count(), other.marks.group_count());
  for (std::size_t number = 0; number < one.marks.group_count(); ++number) {
    EXPECT_EQ(encoded(one.marks.group(number)), encoded(other.marks.group(number)));
  }
  EXPECT_EQ(one.marks.tree_marks(), other.marks.tree_marks());
  EXPECT_EQ(one.book, other.book);
  EXPECT_EQ(one.start_level, other.start_level);
  EXPECT_EQ(one.started_at, other.started_at);
  EXPECT_EQ(one.cycle, other.cycle);
  EXPECT_EQ(one.partial, other.partial);
  EXPECT_EQ(one.everything, other.everything);
}

class UnfinishedScanTest : public ::testing::Test {
 protected:
  UnfinishedScanTest() { files_.make_directory("/data"); }

  // A scan that is killed once it has a log; gives its token.
  std::uint64_t leave(const ScanInput& input, bool full = false,
                      const std::string& setting = some_setting()) {
    UnfinishedScan scan(directory_, files_);
    scan.begin(setting, input, full);
    EXPECT_TRUE(scan.add_log_file("log"));
    return scan.token();
  }

  std::optional<ScanInput> find(const std::string& setting = some_setting()) {
    return UnfinishedScan(directory_, files_).find(setting);
  }

  const std::filesystem::path directory_ = "/data/unfinished";
  const std::filesystem::path head_ = directory_ / "scan";
  fakes::MemoryFileSystem files_;
};

TEST_F(UnfinishedScanTest, NoUnfinishedScan_NothingIsFoundOrWritten) {
  EXPECT_FALSE(find());
  UnfinishedScan scan(directory_, files_);
  const ScanInput input = some_input();
  scan.begin(some_setting(), input, false);
  EXPECT_FALSE(files_.exists(directory_)) << "nothing is written before there is a log";
  EXPECT_TRUE(scan.log_files("log").empty());
}

TEST_F(UnfinishedScanTest, ScanInput_RoundTrips) {
  const std::uint64_t token = leave(some_input());
  UnfinishedScan next(directory_, files_);
  EXPECT_NE(next.token(), token);
  const auto found = next.find(some_setting());
  ASSERT_TRUE(found);
  expect_same(*found, some_input());
  EXPECT_EQ(next.token(), token);
  EXPECT_EQ(next.log_files("log").size(), 1U);
}

TEST_F(UnfinishedScanTest, MarksOfManyPeers_StayApart) {
  ScanInput input = some_input();
  for (int peer = 0; peer < 100; ++peer) {
    tracker::MarkSet marks;
    marks.add(tracker::hash_path(std::to_string(peer)), {640, 3});
    marks.add_tree("tree/" + std::to_string(peer));
    ASSERT_TRUE(input.marks.try_add_apart(marks));
  }
  leave(input);
  const auto found = UnfinishedScan(directory_, files_).find(some_setting());
  ASSERT_TRUE(found);
  expect_same(*found, input);
}

// 5 % of the file system, at least 512 MiB and at most 2 GiB.
TEST_F(UnfinishedScanTest, LittleSpace_IsLeft) {
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
  const auto is_written_with = [&](std::uint64_t mebibytes, std::uint64_t free_mebibytes) {
    files_.disk_space = {mebibytes * mebibyte, free_mebibytes * mebibyte};
    UnfinishedScan scan(directory_, files_);
    const ScanInput input = some_input();
    scan.begin(some_setting(), input, false);
    const auto log = scan.add_log_file("log");
    EXPECT_EQ(log.has_value(), scan.check_space().has_value());
    EXPECT_EQ(log.has_value(), files_.exists(head_));
    if (!log) {
      EXPECT_EQ(log.error().code, std::errc::no_space_on_device);
    }
    return log.has_value();
  };
  EXPECT_FALSE(is_written_with(1'000, 511));
  EXPECT_TRUE(is_written_with(1'000, 512));
  EXPECT_FALSE(is_written_with(20'000, 999));
  EXPECT_TRUE(is_written_with(20'000, 1'000));
  EXPECT_FALSE(is_written_with(1'000'000, 2'047));
  EXPECT_TRUE(is_written_with(1'000'000, 2'048));
}

TEST_F(UnfinishedScanTest, EmptyScanInput_RoundTrips) {
  leave(ScanInput());
  const auto found = find();
  ASSERT_TRUE(found);
  expect_same(*found, ScanInput());
}

TEST_F(UnfinishedScanTest, OtherScanSetting_IsNotFound) {
  leave(some_input());
  EXPECT_FALSE(find(encode_setting("another", 7, some_options())));
  EXPECT_FALSE(find(encode_setting("database", 8, some_options())));
  ScanOptions other = some_options();
  other.rules = tracker::NamespaceRules({{"*.tmp"}, false});
  EXPECT_FALSE(find(encode_setting("database", 7, other)));
  other = some_options();
  other.drives.pop_back();
  EXPECT_FALSE(find(encode_setting("database", 7, other)));
  other = some_options();
  std::swap(other.drives[0], other.drives[1]);
  EXPECT_FALSE(find(encode_setting("database", 7, other)));
  other = some_options();
  other.file_feed = true;
  EXPECT_FALSE(find(encode_setting("database", 7, other)));
  EXPECT_TRUE(find());
}

TEST_F(UnfinishedScanTest, FullScan_StaysAFullScan) {
  ScanInput input = some_input();
  input.everything.clear();
  leave(input, true);
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->everything, "a full scan was asked for");
}

TEST_F(UnfinishedScanTest, DamagedOrTornHead_IsNotFound) {
  leave(some_input());
  const std::string whole = files_.content(head_).value();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      files_.put(head_, damaged);
      EXPECT_FALSE(find()) << "byte " << at;
    }
    files_.put(head_, whole.substr(0, at));
    EXPECT_FALSE(find()) << at << " bytes";
  }
  files_.put(head_, whole + "x");
  EXPECT_FALSE(find());
  files_.put(head_, whole);
  EXPECT_TRUE(find());
}

TEST_F(UnfinishedScanTest, Begin_RemovesScanThatCannotBeResumed) {
  leave(some_input());
  UnfinishedScan next(directory_, files_);
  const std::string other = encode_setting("database", 8, some_options());
  EXPECT_FALSE(next.find(other));
  const ScanInput input = some_input();
  next.begin(other, input, false);
  EXPECT_FALSE(files_.exists(directory_));
  EXPECT_TRUE(next.log_files("log").empty());
}

// A scan by another user, root perhaps, could make nothing in a directory of this one.
TEST_F(UnfinishedScanTest, Remove_DeletesTheDirectory) {
  leave(some_input());
  UnfinishedScan scan(directory_, files_);
  ASSERT_TRUE(scan.find(some_setting()));
  scan.remove();
  EXPECT_FALSE(files_.exists(directory_));
  leave(some_input());
  EXPECT_TRUE(find()) << "it is made anew";
}

TEST_F(UnfinishedScanTest, EmptyUnlistableDirectory_IsRemoved) {
  files_.make_directory(directory_);
  files_.fail_call(1, EACCES);
  UnfinishedScan(directory_, files_).remove();
  EXPECT_FALSE(files_.exists(directory_));
}

TEST_F(UnfinishedScanTest, PowerCutAfterLogging_ScanIsFound) {
  leave(some_input());
  files_.crash();
  EXPECT_TRUE(find());
}

TEST_F(UnfinishedScanTest, RemoveLeavesLogFile_ScanIsNotFound) {
  leave(some_input());
  UnfinishedScan scan(directory_, files_);
  ASSERT_TRUE(scan.find(some_setting()));
  files_.fail_call(3, EACCES);  // the list, the head, the log
  scan.remove();
  EXPECT_EQ(files_.names_in(directory_), (std::vector<std::string>{"log.000001"}));
  EXPECT_TRUE(scan.log_files("log").empty());
  EXPECT_FALSE(find());
}

TEST_F(UnfinishedScanTest, AddLogFile_CreatesNextNumber) {
  leave(some_input());
  UnfinishedScan scan(directory_, files_);
  ASSERT_TRUE(scan.find(some_setting()));
  ASSERT_TRUE(scan.add_log_file("log"));
  ASSERT_TRUE(scan.add_log_file("logbook"));
  EXPECT_EQ(scan.log_files("log"), (std::vector<std::string>{"log.000001", "log.000002"}));
  EXPECT_EQ(scan.log_files("logbook"), (std::vector<std::string>{"logbook.000001"}));
}

TEST_F(UnfinishedScanTest, PowerCutDuringBegin_LeavesWholeHeadOrNone) {
  for (std::size_t calls = 1; calls < 12; ++calls) {
    for (const auto fate : {fakes::MemoryFileSystem::Fate::lost, fakes::MemoryFileSystem::Fate::torn,
                            fakes::MemoryFileSystem::Fate::kept}) {
      const auto copy = files_.clone();
      copy->stop_at_call(calls);
      UnfinishedScan scan(directory_, *copy);
      const ScanInput input = some_input();
      scan.begin(some_setting(), input, false);
      static_cast<void>(scan.add_log_file("log"));
      copy->crash(fate);
      const auto found = UnfinishedScan(directory_, *copy).find(some_setting());
      if (found) expect_same(*found, some_input());
    }
  }
}

}  // namespace
}  // namespace spoor::scanner
