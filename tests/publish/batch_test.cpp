#include "publish/batch.h"

#include <gtest/gtest.h>

namespace spoor::publish {
namespace {

Event event(Event::Kind kind, const std::string& path, bool is_file = false) {
  return {.kind = kind, .is_file = is_file, .path = path, .scan = 1, .id = path};
}

class BatchTest : public testing::Test {
 protected:
  Batch batch_{3};
};

TEST_F(BatchTest, Empty_TakesEverything) {
  EXPECT_FALSE(batch_.ends_before(event(Event::Kind::reset, "")));
  EXPECT_FALSE(batch_.ends_before(event(Event::Kind::scan, "")));
}

TEST_F(BatchTest, NumberOfEvents_IsBounded) {
  for (const char* path : {"a", "b", "c"}) {
    EXPECT_FALSE(batch_.ends_before(event(Event::Kind::created, path)));
    batch_.add(event(Event::Kind::created, path));
  }
  EXPECT_TRUE(batch_.ends_before(event(Event::Kind::created, "d")));
  batch_.clear();
  EXPECT_FALSE(batch_.ends_before(event(Event::Kind::created, "d")));
}

TEST_F(BatchTest, Bytes_AreBounded) {
  Batch large(1'000'000);
  std::size_t count = 0;
  for (const Event long_name = event(Event::Kind::created, std::string(4096, 'x'));
       !large.ends_before(long_name); ++count)
    large.add(long_name);
  EXPECT_LE(count * 4096, Batch::bytes_max + 4096);
  EXPECT_GT(count, 100U);
}

// The repetition of the replacement alone would delete what follows it.
TEST_F(BatchTest, BelowAReplacedDirectory_IsAnotherBatch) {
  batch_.add(event(Event::Kind::replaced, "a/b"));
  EXPECT_TRUE(batch_.ends_before(event(Event::Kind::created, "a/b/c")));
  EXPECT_TRUE(batch_.ends_before(event(Event::Kind::created, "a/b/c", true)));
  EXPECT_FALSE(batch_.ends_before(event(Event::Kind::created, "a/bc")));
  EXPECT_FALSE(batch_.ends_before(event(Event::Kind::created, "a/c")));
  batch_.clear();
  EXPECT_FALSE(batch_.ends_before(event(Event::Kind::created, "a/b/c")));
}

TEST_F(BatchTest, ReplacedRoot_IsABatchOfItsOwn) {
  batch_.add(event(Event::Kind::replaced, ""));
  EXPECT_TRUE(batch_.ends_before(event(Event::Kind::created, "a")));
}

// A directory in the place of a file, which was deleted.
TEST_F(BatchTest, AnotherEventOfADeletedPath_IsAnotherBatch) {
  batch_.add(event(Event::Kind::deleted, "a", true));
  batch_.add(event(Event::Kind::changed, "b", true));
  EXPECT_TRUE(batch_.ends_before(event(Event::Kind::created, "a")));
  EXPECT_FALSE(batch_.ends_before(event(Event::Kind::created, "b")));
}

TEST_F(BatchTest, PathThatIsCut_EndsTheBatch) {
  batch_.add(event(Event::Kind::created, "a"));
  Event cut = event(Event::Kind::changed, "b");
  cut.is_deeper = true;
  EXPECT_FALSE(batch_.ends_before(cut));
  batch_.add(cut);
  EXPECT_TRUE(batch_.ends_before(event(Event::Kind::created, "c")));
}

TEST_F(BatchTest, ResetAndEndOfScan_AreBatchesOfTheirOwn) {
  batch_.add(event(Event::Kind::created, "a"));
  EXPECT_TRUE(batch_.ends_before(event(Event::Kind::scan, "")));
  batch_.clear();
  batch_.add(event(Event::Kind::reset, ""));
  EXPECT_TRUE(batch_.ends_before(event(Event::Kind::created, "a")));
}

}  // namespace
}  // namespace spoor::publish
