// kill -9 of either daemon while the drive changes: the next scan must find every change, and walk the whole
// drive only for a gap that spoor-watch has reported. SPOOR_KILL_ROUNDS sets how often.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/sanitizer.h"
#include "tests/watch/tree_snapshot.h"
#include "tests/watch/watch_fixture.h"

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;

// Few names, so that most operations meet what earlier ones left. Many directories, so that a change that was
// missed is not found by the mark of a later one.
constexpr std::uint64_t directory_names = 20;
constexpr std::uint64_t file_names = 10;
// Some thousand operations a second: they must not fill the machine that the daemons run on.
constexpr std::chrono::microseconds pause{200};

// A writer that creates, writes, renames and removes files and directories below one directory without pause,
// and records each operation. start() and stop() alternate.
class TreeLoad {
 public:
  TreeLoad(support::Random& random, fs::path top) : random_(random), top_(std::move(top)) {
    for (std::uint64_t one = 0; one < directory_names; ++one) {
      for (std::uint64_t two = 0; two < directory_names; ++two)
        fs::create_directories(top_ / ("d" + std::to_string(one)) / ("d" + std::to_string(two)));
    }
  }
  TreeLoad(const TreeLoad&) = delete;
  TreeLoad& operator=(const TreeLoad&) = delete;
  ~TreeLoad() { stop(); }

  void start() {
    writer_ = std::jthread([this, random = random_.fork()](const std::stop_token& stop) mutable {
      while (!stop.stop_requested()) {
        change(random);
        std::this_thread::sleep_for(pause);
      }
    });
  }

  void stop() {
    writer_.request_stop();
    if (writer_.joinable()) writer_.join();
  }

  // Waits until it has done so many operations more. Only while it runs.
  void wait_for_more(std::size_t operations) {
    std::unique_lock lock(mutex_);
    const std::size_t wanted = operations_.size() + operations;
    changed_.wait(lock, [&] { return operations_.size() >= wanted; });
  }

  // The latest operations on a path that contains `path`, for messages.
  std::string operations_on(const std::string& path) const {
    constexpr std::size_t lines_max = 20;
    const std::scoped_lock lock(mutex_);
    std::string found;
    std::size_t lines = 0;
    for (auto each = operations_.rbegin(); each != operations_.rend() && lines < lines_max; ++each) {
      if (each->find(path) == std::string::npos) continue;
      found.insert(0, std::to_string(operations_.rend() - each) + ": " + *each + '\n');
      ++lines;
    }
    return found;
  }

  std::size_t count() const {
    const std::scoped_lock lock(mutex_);
    return operations_.size();
  }

 private:
  static std::string directory_name(support::Random& random) {
    return "d" + std::to_string(random.below(directory_names));
  }
  static std::string file_name(support::Random& random) {
    return "f" + std::to_string(random.below(file_names));
  }

  fs::path some_directory(support::Random& random) const {
    fs::path directory = top_;
    while (!random.one_in(6)) {
      const fs::path below = directory / directory_name(random);
      if (!fs::is_directory(below)) break;
      directory = below;
    }
    return directory;
  }

  void change(support::Random& random) {
    const auto some_path = [&] {
      return some_directory(random) / (random.one_in(4) ? directory_name(random) : file_name(random));
    };
    const std::uint64_t kind = random.below(8);
    std::error_code failed;
    if (kind == 0) {
      const fs::path path = some_directory(random) / directory_name(random);
      fs::create_directory(path, failed);
      record("mkdir " + path.native());
    } else if (kind == 1) {
      const fs::path from = some_path();
      const fs::path to = some_path();
      fs::rename(from, to, failed);
      if (!failed) record("rename " + from.native() + " to " + to.native());
    } else if (kind < 4) {
      const fs::path path = some_path();
      // Mostly a file or an empty directory: most directories have to last.
      const bool is_removed = random.one_in(20) ? fs::remove_all(path, failed) > 0 : fs::remove(path, failed);
      if (is_removed) record("remove " + path.native());
    } else {
      const fs::path path = some_directory(random) / file_name(random);
      std::ofstream(path, random.one_in(2) ? std::ios::trunc : std::ios::app)
          << random.letters(random.below(500));
      record("write " + path.native());
    }
  }

  void record(const std::string& operation) {
    const std::scoped_lock lock(mutex_);
    operations_.push_back(operation);
    changed_.notify_all();
  }

  support::Random& random_;
  const fs::path top_;
  mutable std::mutex mutex_;  // of the operations
  std::condition_variable changed_;
  std::vector<std::string> operations_;
  std::jthread writer_;
};

std::size_t kill_rounds() {
  const char* const given = std::getenv("SPOOR_KILL_ROUNDS");
  if (given != nullptr) return std::strtoull(given, nullptr, 10);
  return support::is_sanitized ? 3 : 6;
}

enum class Killed { daemon, watch, both };

class KillTest : public WatchTest {
 protected:
  void SetUp() override { mount(FileSystem::ext4); }
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

  static Killed choose(support::Random& random) {
    static const std::vector<Killed> all{Killed::daemon, Killed::watch, Killed::both};
    return random.pick(all);
  }

  // Changes go on before, between and after the kill and the start.
  void kill_and_start(Killed killed, support::Random& random) {
    load().start();
    load().wait_for_more(random.between(1, 300));
    if (killed != Killed::watch) node().kill_daemon();
    load().wait_for_more(random.below(200));
    if (killed != Killed::daemon) node().kill_watch();
    load().wait_for_more(random.below(200));
    if (killed != Killed::watch) node().start_daemon();
    if (killed != Killed::daemon) node().start_watch();
    load().wait_for_more(random.between(1, 20));
  }

  void print_figures(std::size_t rounds, std::size_t gaps) {
    std::cout << "[ FIGURES  ] " << rounds << " kills, " << gaps << " gaps, " << load().count()
              << " operations" << std::endl;
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

TEST_F(KillTest, KillsUnderLoad_LoseNoChange) {
  SPOOR_RANDOM(random);
  start_load(random);
  std::size_t gaps = 0;
  for (std::size_t round = 0; round < kill_rounds() && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const std::string gap = node().gap_id();
    const Killed killed = choose(random);
    kill_and_start(killed, random);
    expect_nothing_lost();
    EXPECT_EQ(node().gap_id() != gap, killed != Killed::daemon) << "a start without proof is a gap";
    EXPECT_EQ(drive_gaps(last_scan_).empty(), killed == Killed::daemon) << last_scan_;
    gaps += drive_gaps(last_scan_).size();
  }
  print_figures(kill_rounds(), gaps);
}

// The kernel's queue outlives spoor-watch: only a batch that was not acknowledged is lost.
TEST_F(KillTest, KillsUnderLoad_WithStoredDescriptors_LoseNoChange) {
  SPOOR_RANDOM(random);
  start_load(random, &manager_);
  std::size_t gaps = 0;
  for (std::size_t round = 0; round < kill_rounds() && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const std::string gap = node().gap_id();
    kill_and_start(choose(random), random);
    expect_nothing_lost();
    EXPECT_EQ(drive_gaps(last_scan_).empty(), node().gap_id() == gap) << last_scan_ << node().watch().log();
    gaps += drive_gaps(last_scan_).size();
  }
  print_figures(kill_rounds(), gaps);
}

// Stops with SIGTERM acknowledge what was read: with the queue kept, none is a gap.
TEST_F(KillTest, StopsUnderLoad_WithStoredDescriptors_AreNoGaps) {
  SPOOR_RANDOM(random);
  start_load(random, &manager_);
  const std::string gap = node().gap_id();
  for (std::size_t round = 0; round < kill_rounds() && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    load().start();
    load().wait_for_more(random.between(1, 300));
    EXPECT_EQ(node().stop_watch(), 0) << node().watch().log();
    load().wait_for_more(random.below(200));
    node().start_watch();
    expect_nothing_lost();
    EXPECT_TRUE(drive_gaps(last_scan_).empty()) << last_scan_ << node().watch().log();
  }
  EXPECT_EQ(node().gap_id(), gap);
}

// The queue has no bound of its own.
TEST_F(KillTest, FrozenWatch_Resumed_FindsEveryChangeWithoutGap) {
  SPOOR_RANDOM(random);
  start_load(random);
  node().watch().freeze();
  load().start();
  load().wait_for_more(3000);
  node().watch().signal(SIGCONT);
  expect_nothing_lost();
  EXPECT_TRUE(drive_gaps(last_scan_).empty()) << last_scan_;
}

// A scan may begin between a change and its event, its mark, or the acknowledgement.
TEST_F(KillTest, ScansUnderLoad_LeaveNoChangeToNoScan) {
  SPOOR_RANDOM(random);
  start_load(random);
  for (std::size_t round = 0; round < kill_rounds() && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    load().start();
    for (std::uint64_t count = random.between(1, 5); count > 0; --count) {
      load().wait_for_more(random.below(100));
      node().scan_while_changing();
    }
    expect_nothing_lost();
    EXPECT_TRUE(drive_gaps(last_scan_).empty()) << last_scan_;
  }
}

}  // namespace
}  // namespace spoor::watch
