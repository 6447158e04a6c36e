#include <gtest/gtest.h>

#include "publish/publisher.h"

namespace spoor::publish {
namespace {

using enum Event::Kind;

Event event(Event::Kind kind, const std::string& path, bool is_file = false) {
  return {.kind = kind, .is_file = is_file, .path = path, .scan = 1, .id = path};
}

Event cut(const std::string& path) {
  Event cut = event(changed, path);
  cut.is_deeper = true;
  return cut;
}

TEST(BatchTest, EventThatDependsOnAnother_IsInAnotherBatch) {
  struct Case {
    const char* name;
    std::vector<Event> batch;
    Event next;
    bool ends = true;
  };
  const std::vector<Case> cases = {
      {"an empty batch takes everything", {}, event(reset, ""), false},
      {"also the end of a scan", {}, event(scan, ""), false},
      {"any other path", {event(created, "a")}, event(created, "b"), false},
      {"the number of events is bounded",
       {event(created, "a"), event(created, "b"), event(created, "c")},
       event(created, "d")},
      // The repetition of the replacement alone would delete what follows it.
      {"below a replaced directory", {event(replaced, "a/b")}, event(created, "a/b/c")},
      {"a file there", {event(replaced, "a/b")}, event(created, "a/b/c", true)},
      {"beside it", {event(replaced, "a/b")}, event(created, "a/bc"), false},
      {"in its parent", {event(replaced, "a/b")}, event(created, "a/c"), false},
      {"below the replaced root", {event(replaced, "")}, event(created, "a")},
      // A directory in the place of a file, which was deleted.
      {"a deleted path", {event(deleted, "a", true), event(changed, "b", true)}, event(created, "a")},
      {"a changed path", {event(deleted, "a", true), event(changed, "b", true)}, event(created, "b"), false},
      {"a path that is cut", {event(created, "a")}, cut("b"), false},
      {"behind a path that is cut", {event(created, "a"), cut("b")}, event(created, "c")},
      {"the end of a scan", {event(created, "a")}, event(scan, "")},
      {"behind a reset", {event(reset, "")}, event(created, "a")},
  };
  for (const Case& each : cases) {
    Batch batch(3);
    for (const Event& one : each.batch) batch.add(one);
    EXPECT_EQ(batch.ends_before(each.next), each.ends) << each.name;
    batch.clear();
    EXPECT_FALSE(batch.ends_before(each.next)) << each.name;
  }
}

TEST(BatchTest, Bytes_AreBounded) {
  Batch large(1'000'000);
  std::size_t count = 0;
  for (const Event long_name = event(created, std::string(4096, 'x')); !large.ends_before(long_name); ++count)
    large.add(long_name);
  EXPECT_LE(count * 4096, Batch::bytes_max + 4096);
  EXPECT_GT(count, 100U);
}

}  // namespace
}  // namespace spoor::publish
