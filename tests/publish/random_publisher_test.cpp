#include <gtest/gtest.h>

#include <filesystem>

#include "tests/publish/publisher_fixture.h"
#include "tests/support/sanitizer.h"
#include "tracker/paths/path.h"

namespace spoor::publish {
namespace {

// Any changes, any failures of the sink and the process, scans in between: a consumer that applies the events
// in the order in which the sink stored them has the tree.
class RandomPublisherTest : public PublisherTest, public testing::WithParamInterface<bool> {
 protected:
  static constexpr int rounds = support::is_sanitized ? 40 : 150;

  std::string any_path() {
    std::string path = random_.letters(1, 'c');
    while (path.size() < 5 && !random_.one_in(3)) path += '/' + random_.letters(1, 'c');
    return path;
  }

  void remove_if_there(const std::string& path) {
    std::error_code error;
    if (!std::filesystem::remove(on_drive(path), error)) std::filesystem::remove_all(on_drive(path), error);
  }

  // A path whose parents are directories.
  void make(const std::string& path, bool is_file) {
    const auto parent = on_drive(std::string(tracker::parent_path(path)));
    for (auto at = on_drive(path); at != drive(); at = at.parent_path())
      if (std::error_code error; std::filesystem::is_regular_file(at, error)) std::filesystem::remove(at);
    std::filesystem::create_directories(parent);
    if (is_file) {
      remove_if_there(path);
      make_file(path, random_.below(100));
    } else {
      if (random_.one_in(2)) remove_if_there(path);
      make_directory(path);
    }
  }

  void change() {
    const std::string path = any_path();
    switch (random_.below(4)) {
      case 0:
        remove_if_there(path);
        break;
      case 1:
        make(path, false);
        break;
      default:
        make(path, true);
    }
    mark(path);
    if (!random_.one_in(4)) return;
    const std::string other = any_path();
    if (other.starts_with(path) || path.starts_with(other)) return;
    make(other, false);
    remove_if_there(other);
    mark(other);
    if (!std::filesystem::exists(on_drive(path))) return;
    rename(path, other);
    mark(other, tracker::MarkKind::tree);
    mark(path);
  }

  void change_and_scan() {
    for (std::uint64_t count = random_.below(8); count > 0; --count) change();
    scan();
  }
};

TEST_P(RandomPublisherTest, CopyMadeOfTheEvents_IsTheSource) {
  sink_.drops_repetitions = GetParam();
  sink_.fails_one_in = 4;
  std::size_t batch = 0;
  int scans_between = 5;  // each waits a second for the reader of the feed
  for (int round = 0; round < rounds; ++round) {
    change_and_scan();
    sink_.on_publish = [&] {
      if (random_.one_in(20)) fail_commits(true);
      if (scans_between == 0 || !random_.one_in(10)) return;
      --scans_between;
      change_and_scan();
    };
    if (random_.one_in(15)) forget();
    if (!sink_.has_deferred()) {
      batch = random_.between(1, 12);
      sink_.is_deferring = random_.one_in(2);
      sink_.request_max = random_.between(1, batch);
    }
    sink_.largest_batch = 0;
    const auto published = publish(batch, std::chrono::seconds(random_.below(3)));
    fail_commits(false);
    if (published || random_.one_in(3)) {
      sink_.on_publish = [] {};
      while (!publish(batch)) continue;
      ASSERT_EQ(sink_.copy.tree(), tree_of(drive())) << "round " << round;
      ASSERT_EQ(sink_.late_proof.tree(), tree_of(drive())) << "round " << round;
      // Of the same scan: what was published is published again, as other events.
      if (random_.one_in(10)) forget();
      while (!publish(batch)) continue;
      ASSERT_EQ(sink_.copy.tree(), tree_of(drive())) << "round " << round;
      ASSERT_EQ(sink_.late_proof.tree(), tree_of(drive())) << "round " << round;
    }
    ASSERT_LE(sink_.largest_batch, batch);
    sink_.stored.clear();
  }
}

INSTANTIATE_TEST_SUITE_P(Sinks, RandomPublisherTest, testing::Bool(), [](const auto& test) {
  return std::string(test.param ? "WithoutRepetitions" : "WithRepetitions");
});

}  // namespace
}  // namespace spoor::publish
