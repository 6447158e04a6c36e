#include "tracker/storage/watch_record.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tests/fakes/memory_file_system.h"
#include "tests/support/json_mutations.h"

namespace spoor::tracker {
namespace {

class WatchRecordTest : public ::testing::Test {
 protected:
  WatchRecordTest() {
    files_.make_directory("/data");
    record_.written_at = base::WallTime(std::chrono::nanoseconds(1'234'567'890'123));
    WatchedDrive& one = record_.drives.emplace_back();
    one.drive = "/mnt/disk1";
    one.gap = {"0123", "events were lost", record_.written_at};
    one.is_wanted = false;
    one.error = "it is not mounted";
    one.figures = {.events = 1,
                   .marks = 2,
                   .coalesced = 3,
                   .gaps = 4,
                   .queue_bytes_max = 5,
                   .pending_marks = 6,
                   .lag_seconds = 0.5};
    record_.drives.emplace_back().drive = "/mnt/\xff\n \"";  // no UTF-8, and not printable
  }

  base::Result<std::optional<WatchRecord>> read() { return read_watch_record(files_, "/data"); }

  fakes::MemoryFileSystem files_;
  WatchRecord record_;
};

TEST_F(WatchRecordTest, MissingRecord_ReadsAsNone) { EXPECT_FALSE(read().value()); }

TEST_F(WatchRecordTest, WrittenRecord_IsReadBackAndSurvivesPowerCut) {
  ASSERT_TRUE(write_watch_record(files_, "/data", record_));
  files_.crash(fakes::MemoryFileSystem::Fate::lost);
  EXPECT_EQ(read().value(), record_);
}

TEST_F(WatchRecordTest, Find_ReturnsTheDriveOrNull) {
  ASSERT_NE(record_.find("/mnt/disk1"), nullptr);
  EXPECT_EQ(record_.find("/mnt/disk1")->gap.id, "0123");
  EXPECT_EQ(record_.find("/mnt/disk2"), nullptr);
}

TEST_F(WatchRecordTest, CorruptRecord_IsAnErrorThatNamesTheFile) {
  ASSERT_TRUE(write_watch_record(files_, "/data", record_));
  const std::string whole = files_.read("/data/watch.json", 1U << 20U).value();
  for (const std::string& bytes : {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"),
                                   std::string(R"({"version": 2})"), std::string(R"({"version": 1})")}) {
    ASSERT_TRUE(base::replace_file(files_, "/data/watch.json", bytes));
    ASSERT_FALSE(read()) << bytes;
    EXPECT_NE(read().error().message.find("watch.json is corrupt"), std::string::npos);
  }
}

TEST_F(WatchRecordTest, AnyMemberMissingOrOfAnotherType_IsReadOrCorrupt) {
  using nlohmann::json;
  ASSERT_TRUE(write_watch_record(files_, "/data", record_));
  const auto whole = json::parse(files_.read("/data/watch.json", 1U << 20U).value());
  support::for_each_mutation<json>(whole, [&](const json& mutated, const std::string& what) {
    files_.put("/data/watch.json", mutated.dump());
    const auto record = read();
    EXPECT_TRUE(record || record.error().message.find("watch.json is corrupt") != std::string::npos) << what;
    const bool is_no_count =
        what.find("/path ") != std::string::npos || what.find("/lag_s ") != std::string::npos;
    EXPECT_TRUE(!record || is_no_count || what.find("e+300") == std::string::npos) << what;
  });
}

}  // namespace
}  // namespace spoor::tracker
