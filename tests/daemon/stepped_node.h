// What runs on a thread of its own, on a file system in memory, while time passes by hand.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/durability/snapshot_scheduler.h"
#include "daemon/process/task.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fakes/manual_timers.h"
#include "tests/fakes/memory_file_system.h"
#include "tracker/cycles/member_marks.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

class SteppedTest : public testing::Test {
 protected:
  // What is there to do on this thread, whatever the pool is at.
  void poll() {
    context_.restart();
    context_.poll();
  }

  // Until nothing is left to do before time passes.
  virtual void settle() { fakes::settle(context_, pool_); }

  void pass(std::chrono::nanoseconds time) {
    timers_.advance(time);
    settle();
  }

  // Its result, once it is done.
  template <class T>
  std::shared_ptr<std::optional<T>> begin(boost::asio::awaitable<T> task) {
    const auto result = std::make_shared<std::optional<T>>();
    boost::asio::co_spawn(context_, std::move(task), [result](const std::exception_ptr& failure, T done) {
      rethrow(failure);
      *result = std::move(done);
    });
    return result;
  }
  template <class T>
  std::shared_ptr<std::optional<T>> run(boost::asio::awaitable<T> task) {
    const auto result = begin(std::move(task));
    settle();
    return result;
  }
  void run(boost::asio::awaitable<void> task) {
    boost::asio::co_spawn(context_, std::move(task), rethrow);
    settle();
  }

  fakes::ManualClock clock_;
  boost::asio::io_context context_{1};
  boost::asio::thread_pool pool_{1};
  fakes::ManualTimers timers_{context_, clock_};
};

// A node with two drives.
class SteppedNode : public SteppedTest {
 protected:
  std::unique_ptr<tracker::Persistence> start_persistence() {
    files_.make_directory("/data");
    for (const auto& drive : drives_) files_.make_directory(drive);
    return tracker::Persistence::start(files_, clock_, options()).value();
  }
  tracker::Persistence::Options options() const {
    tracker::Persistence::Options options;
    options.data_dir = "/data";
    options.drives = drives_;
    options.owner = {"cluster", "node"};
    options.boot_id = boot_id_;
    return options;
  }

  // Except for the drives that hang.
  void settle(const SnapshotScheduler& scheduler) {
    fakes::settle(context_, pool_);
    const auto more_work = boost::asio::make_work_guard(context_);
    while (scheduler.busy_drives() > hanging_) {
      context_.run_one();
      fakes::settle(context_, pool_);
    }
  }
  void settle() override { settle(snapshot_scheduler_); }

  tracker::JournalPosition mark(const std::string& path) {
    const tracker::Mark mark{path, tracker::MarkKind::dir};
    return persistence_->tracker().mark({&mark, 1}).position;
  }

  bool is_dirty(const std::string& path) {
    return persistence_->tracker().dirty(path, {}).latest.has_value();
  }

  // The members of which this node has a record.
  std::set<tracker::PeerId> recorded() const {
    std::set<tracker::PeerId> ids;
    for (const auto& [id, run] : tracker::member_marks(*persistence_->tracker().state().current_marks).joined)
      ids.insert(id);
    return ids;
  }

  void fail_drives() {
    for (const auto& drive : drives_) files_.fail_below(drive, EIO);
  }
  void heal_drives() {
    for (const auto& drive : drives_) files_.heal(drive);
  }

  static constexpr std::chrono::minutes interval{5};

  const std::vector<std::filesystem::path> drives_{"/mnt/1", "/mnt/2"};
  std::string boot_id_ = "this boot";
  fakes::MemoryFileSystem files_;
  std::unique_ptr<tracker::Persistence> persistence_ = start_persistence();
  SnapshotScheduler snapshot_scheduler_{context_, pool_, *persistence_, clock_, timers_, interval};
  std::size_t hanging_ = 0;  // drives
};

// One whose snapshots are saved on a schedule.
class SavingNode : public SteppedNode {
 protected:
  void start() {
    run(snapshot_scheduler_.save());
    snapshot_scheduler_.start();
    settle();
  }

  void TearDown() override {
    snapshot_scheduler_.stop();
    settle();
    EXPECT_THAT(timers_.waiting(), testing::IsEmpty());
  }
};

}  // namespace spoor::daemon
