#include "tracker/storage/instance_record.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <vector>

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
                              "boot",         Birth{{5}, false},   true,  7};
  const InstanceRecord running_{instance_of(3), std::nullopt};
};

TEST_F(InstanceRecordTest, WrittenRecord_IsReadBackAfterAPowerCut) {
  EXPECT_FALSE(read().value()) << "there is none";
  std::vector<InstanceRecord> records{clean_, running_};
  for (const Membership each :
       {Membership::member, Membership::returned, Membership::retiring, Membership::retired}) {
    records.push_back(running_);
    records.back().membership = each;
  }
  for (const Durability each : {Durability::disk, Durability::os, Durability::memory}) {
    records.push_back(running_);
    records.back().durability = each;
  }
  for (const InstanceRecord& record : records) {
    ASSERT_TRUE(write_instance_record(files_, "/data", record));
    files_.crash(Fate::lost);
    EXPECT_EQ(read().value(), record) << "an unclean run would pass for a clean one";
  }
  files_.fail_below("/data", EIO);
  EXPECT_FALSE(read()) << "not none";
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
    EXPECT_EQ((*record)->is_introduced, mutated.value("introduced", json(true)) == true) << what;
    const Durability durability = (*record)->durability;
    EXPECT_TRUE(durability == clean_.durability || durability == Durability::memory) << what;
  });
}

TEST_F(InstanceRecordTest, RecordOf100_AcknowledgesMarks) {
  files_.put("/data/instance.json",
             R"({"birth_complete":true,"birth_cycle":1,"boot_id":"b","durability":"disk","instance":")" +
                 clean_.instance.to_string() + R"(","rules":"any"})");
  const InstanceRecord record = read().value().value();
  EXPECT_TRUE(record.is_introduced);
  EXPECT_EQ(record.membership, Membership::member);
  EXPECT_EQ(record.runs, 0U);
}

TEST_F(InstanceRecordTest, InvalidGenerationOrMembership_ProvesNoMore) {
  const std::string instance = R"({"instance":")" + clean_.instance.to_string() + '"';
  for (const char* generation : {"-1", "1.5", "\"17\"", "null", "true"}) {
    files_.put("/data/instance.json",
               instance + R"(,"clean_position":7,"clean_generation":)" + generation + "}");
    EXPECT_FALSE(read().value().value().clean_stop) << generation;
  }
  // What a later version may write: it is not known that marks may be acknowledged.
  for (const char* membership : {R"("observer")", "7", R"("")"}) {
    files_.put("/data/instance.json", instance + R"(,"membership":)" + membership + "}");
    EXPECT_EQ(read().value().value().membership, Membership::retiring) << membership;
  }
}

}  // namespace
}  // namespace spoor::tracker
