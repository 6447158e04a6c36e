// Peers whose filters have nothing in common: other sizes, other levels, shapes of no schedule at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "peer/gather/gather.h"
#include "tests/fakes/fake_cluster.h"
#include "tests/fakes/manual_clock.h"
#include "tests/support/random.h"

namespace spoor::peer {
namespace {

using fakes::FakeCluster;
using tracker::BloomShape;
using tracker::LevelSchedule;
using tracker::MarkSet;

// One cluster, and all that was ever marked in it.
class MixedCluster {
 public:
  explicit MixedCluster(support::Random& random) : random_(random) {
    for (const auto& host : hosts_) configure(host);
  }

  void gather_and_check() {
    GatherOptions options;
    options.cluster = "c";
    if (random_.one_in(4)) options.marks_bytes_max = random_.below(2'000);
    options.members.endpoints = FakeCluster::endpoints(hosts_);
    const auto gathered = gather(cluster_, {}, options);
    ASSERT_TRUE(gathered.complete());
    if (options.marks_bytes_max == MarkSet::memory_bytes_max) {
      ASSERT_TRUE(gathered.gaps.empty()) << gathered.gaps.front();
    }
    for (const std::string& path : marked_) ASSERT_TRUE(holds_all_of(gathered.marks, path)) << path;
    for (const std::string& path : trees_) ASSERT_TRUE(gathered.marks.tree_marks().covers(path)) << path;
  }

 private:
  void configure(const std::string& host) {
    const std::vector<double> rates{0.5, 0.1, 0.01, 1e-4};
    const LevelSchedule levels(random_.between(1, 300), random_.pick(rates));
    cluster_.add(host);
    auto& tracker = cluster_[host].tracker;
    tracker::TrackerState state = tracker->state();
    state.current = {random_.between(1, 8)};
    for (std::uint64_t cycle = 1; cycle < state.current.value; ++cycle) {
      if (random_.one_in(2)) {
        state.history.push_back({{cycle}, std::make_shared<const MarkSet>(some_marks(levels))});
      }
    }
    state.current_marks = std::make_shared<const MarkSet>(some_marks(levels));
    tracker = std::make_unique<tracker::Tracker>(tracker::Tracker::Options{.levels = levels}, clock_,
                                                 std::move(state));
    for (std::uint64_t count = random_.below(300); count > 0; --count) {
      const tracker::Mark mark{some_path(), tracker::MarkKind::dir};
      tracker->mark({&mark, 1});
      marked_.push_back(mark.path);
    }
  }

  MarkSet some_marks(const LevelSchedule& levels) {
    MarkSet marks;
    for (std::uint64_t count = random_.below(60); count > 0; --count) {
      marked_.push_back(some_path());
      const BloomShape shape = some_shape(levels);
      tracker::for_each_prefix_hash(
          marked_.back(), [&](const tracker::PathHash& hash, bool /*is_last*/) { marks.add(hash, shape); });
    }
    if (random_.one_in(4)) {
      trees_.push_back(some_path());
      marks.add_tree(trees_.back());
    }
    return marks;
  }

  BloomShape some_shape(const LevelSchedule& levels) {
    if (random_.one_in(8)) return {random_.between(1, 200), random_.between(1, 10)};
    return levels.shape(random_.below(std::min<std::size_t>(levels.last() + 1, 4)));
  }

  std::string some_path() {
    std::string path = random_.letters(2);
    for (std::uint64_t depth = random_.below(4); depth > 0; --depth)
      path = tracker::join_path(path, random_.letters(2));
    return path;
  }

  // Whether a scan would get down to the path.
  static bool holds_all_of(const MarkSet& marks, std::string_view path) {
    bool all = true;
    for (tracker::ComponentCursor at(path); at.next();) {
      if (!marks.may_contain(at.prefix(), tracker::hash_path(at.prefix()))) all = false;
    }
    return all;
  }

  support::Random& random_;
  fakes::ManualClock clock_;
  FakeCluster cluster_{clock_};
  std::vector<std::string> hosts_{"a", "b", "c"};
  std::vector<std::string> marked_;
  std::vector<std::string> trees_;
};

TEST(MixedFiltersTest, DifferentFilterShapes_GatherKeepsEveryMark) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 200 && !testing::Test::HasFatalFailure(); ++round) {
    MixedCluster(random).gather_and_check();
  }
}

}  // namespace
}  // namespace spoor::peer
