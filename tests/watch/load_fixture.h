// A watched drive that changes without pause.
#pragma once

#include <memory>
#include <string>

#include "tests/watch/tree_load.h"
#include "tests/watch/tree_snapshot.h"
#include "tests/watch/watch_fixture.h"

namespace spoor::watch {

class LoadTest : public WatchTest {
 protected:
  // Ends before the drive is unmounted.
  void TearDown() override { load_.reset(); }

  void start_load(support::Random& random, FdStore* manager = nullptr) {
    load_ = std::make_unique<TreeLoad>(random, disk().path() / "load");
    start(disk().path(), manager);
    before_ = take_snapshot(disk().path());
  }

  TreeLoad& load() { return *load_; }

  // Stops the load, scans, and expects the true totals and the whole change feed. The
  // load stays stopped.
  void expect_nothing_lost() {
    load().stop();
    const auto since = last_scan_["scan"].get<std::uint64_t>();
    expect_truth();
    const TreeSnapshot after = take_snapshot(disk().path());
    const auto listed = node().changes_since(since);
    for (const std::string& path : changed_directories(before_, after)) {
      EXPECT_TRUE(listed.contains(path)) << "not in the feed: '" << path << "'\n"
                                         << load().operations_on(path);
    }
    if (HasFailure()) print_differences(after);
    before_ = after;
  }

 private:
  void print_differences(const TreeSnapshot& tree) {
    const auto usage = node().directory_usage();
    for (const auto& [path, totals] : directory_totals(tree)) {
      const auto found = usage.find(path);
      if (found != usage.end() && found->second == totals) continue;
      ADD_FAILURE() << "'" << path << "' has " << totals << '\n' << load().operations_on(path);
    }
  }

  std::unique_ptr<TreeLoad> load_;
  TreeSnapshot before_;
};

}  // namespace spoor::watch
