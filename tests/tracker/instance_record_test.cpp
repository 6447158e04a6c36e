#include "tracker/storage/instance_record.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "tests/fakes/memory_file_system.h"
#include "tests/support/json_mutations.h"
#include "tests/tracker/samples.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

using Fate = fakes::MemoryFileSystem::Fate;

class InstanceRecordTest : public ::testing::Test {
 protected:
  InstanceRecordTest() { files_.make_directory("/data"); }

  base::Result<std::optional<InstanceRecord>> read() { return read_instance_record(files_, "/data"); }

  fakes::MemoryFileSystem files_;
  const InstanceRecord clean_{instance_of(3), CleanStop{17, 1234}, "any", Durability::os,
                              "boot",         Birth{{5}, false}};
  const InstanceRecord running_{instance_of(3), std::nullopt};
};

TEST_F(InstanceRecordTest, MissingRecord_ReadsAsNone) { EXPECT_FALSE(read().value()); }

TEST_F(InstanceRecordTest, WrittenRecord_IsReadBack) {
  for (const InstanceRecord& record : {clean_, running_}) {
    ASSERT_TRUE(write_instance_record(files_, "/data", record));
    EXPECT_EQ(read().value(), record);
  }
}

TEST_F(InstanceRecordTest, WrittenRecord_SurvivesPowerCut) {
  ASSERT_TRUE(write_instance_record(files_, "/data", clean_));
  ASSERT_TRUE(write_instance_record(files_, "/data", running_));
  files_.crash(Fate::lost);
  EXPECT_EQ(read().value(), running_) << "an unclean run would pass for a clean one";
}

TEST_F(InstanceRecordTest, MalformedRecord_IsCorruptNotNone) {
  // "None" would let a loss pass for a birth.
  for (const char* text : {"", "{", "null", "[]", "{}", R"({"instance":7})", R"({"instance":"xyz"})",
                           R"({"instance":"0303"})"}) {
    files_.put("/data/instance.json", text);
    const auto record = read();
    ASSERT_FALSE(record) << text;
    EXPECT_EQ(record.error().code, Errc::snapshot_corrupt) << text;
  }
}

TEST_F(InstanceRecordTest, AnyMemberMissingOrOfAnotherType_ProvesNoMore) {
  using nlohmann::json;
  ASSERT_TRUE(write_instance_record(files_, "/data", clean_));
  const auto whole = json::parse(files_.read("/data/instance.json", 1U << 20U).value());
  support::for_each_mutation<json>(whole, [&](const json& mutated, const std::string& what) {
    files_.put("/data/instance.json", mutated.dump());
    const auto record = read();
    if (!record) return;
    ASSERT_TRUE(*record) << what;
    EXPECT_EQ((*record)->instance, clean_.instance) << what;
    const auto is_number = [&](const char* key) { return mutated.value(key, json()).is_number_unsigned(); };
    const bool is_clean = is_number("clean_generation") && is_number("clean_position");
    EXPECT_EQ((*record)->clean_stop.has_value(), is_clean) << what;
    const Durability durability = (*record)->durability;
    EXPECT_TRUE(durability == clean_.durability || durability == Durability::memory) << what;
  });
}

TEST_F(InstanceRecordTest, DiskError_IsAnErrorNotNone) {
  ASSERT_TRUE(write_instance_record(files_, "/data", clean_));
  files_.fail_below("/data", EIO);
  EXPECT_FALSE(read());
}

TEST_F(InstanceRecordTest, InvalidGeneration_IsNotACleanStop) {
  for (const char* generation : {"-1", "1.5", "\"17\"", "null", "true"}) {
    files_.put("/data/instance.json", R"({"instance":")" + clean_.instance.to_string() +
                                          R"(","clean_position":7,"clean_generation":)" + generation + "}");
    const auto record = read();
    ASSERT_TRUE(record) << generation;
    EXPECT_EQ(*record, running_) << generation;
  }
}

}  // namespace
}  // namespace spoor::tracker
