#include "scanner/feed/publish_record.h"

#include <gmock/gmock.h>

#include <chrono>

#include "tests/fakes/memory_file_system.h"

namespace spoor::scanner {
namespace {

class PublishRecordTest : public ::testing::Test {
 protected:
  PublishRecordTest() {
    files_.make_directory("/data");
    record_.written_at = base::WallTime(std::chrono::nanoseconds(1'234'567'890'123));
    record_.sinks.push_back({.name = "bus",
                             .scan = 1,
                             .events = 2,
                             .failures = 3,
                             .resets = 4,
                             .last_success = record_.written_at,
                             .error = "no response"});
    record_.sinks.push_back({.name = "sql"});
  }

  base::Result<std::optional<PublishRecord>> read() { return read_publish_record(files_, "/data"); }

  fakes::MemoryFileSystem files_;
  PublishRecord record_;
};

TEST_F(PublishRecordTest, MissingRecord_ReadsAsNone) { EXPECT_FALSE(read().value()); }

TEST_F(PublishRecordTest, WrittenRecord_IsReadBackAndSurvivesPowerCut) {
  ASSERT_TRUE(write_publish_record(files_, "/data", record_));
  files_.crash(fakes::MemoryFileSystem::Fate::lost);
  EXPECT_EQ(read().value(), record_);
}

TEST_F(PublishRecordTest, CorruptRecord_IsAnErrorThatNamesTheFile) {
  ASSERT_TRUE(write_publish_record(files_, "/data", record_));
  const std::string whole = files_.read("/data/publish.json", 1U << 20U).value();
  for (const std::string& bytes :
       {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"), std::string(R"({"version": 2})"),
        std::string(R"({"version": 1})"),
        std::string(R"({"version": 1, "written_at_ns": 1, "sinks": [{"name": 7}]})")}) {
    ASSERT_TRUE(base::replace_file(files_, "/data/publish.json", bytes));
    ASSERT_FALSE(read()) << bytes;
    EXPECT_THAT(read().error().message, testing::HasSubstr("/data/publish.json is corrupt"));
  }
}

}  // namespace
}  // namespace spoor::scanner
