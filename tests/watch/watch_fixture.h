// A node whose drive is a file system of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "tests/support/temp_directory.h"
#include "tests/watch/disk.h"
#include "tests/watch/fd_store.h"
#include "tests/watch/watched_node.h"

namespace spoor::watch {

class WatchTest : public testing::Test {
 protected:
  // Skips the test where such a file system cannot be mounted and watched. For SetUp().
  void mount(FileSystem type) {
    if (auto why = faults::why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
    try {
      disk_.emplace(type, directory_.path());
    } catch (const std::exception& error) {
      GTEST_SKIP() << "needs " << name_of(type) << ", mkfs and loop devices: " << error.what();
    }
    if (auto why = disk_->why_unwatchable(); !why.empty())
      GTEST_SKIP() << "needs fanotify on " << name_of(type) << ": " << why;
  }

  // Starts both daemons of the node with this drive, and reads all of it once.
  void start(const std::filesystem::path& drive, FdStore* manager = nullptr,
             const nlohmann::json& settings = nlohmann::json::object()) {
    node_ = std::make_unique<WatchedNode>(drive, manager, settings);
    node_->start_daemon();
    node_->start_watch();
    last_scan_ = node_->scan();
    EXPECT_EQ(last_scan_["mode"], "full");
  }

  WatchedNode& node() { return *node_; }
  Disk& disk() { return *disk_; }

  // Scans, and expects the true totals from marks alone.
  void expect_truth(const std::string& patience = "60s") {
    last_scan_ = node().scan(patience);
    EXPECT_EQ(last_scan_["mode"], "incremental") << last_scan_;
    EXPECT_EQ(last_scan_["errors"], 0) << last_scan_;
    EXPECT_EQ(node().usage(), support::walk_independently({node().drive()})) << last_scan_ << '\n'
                                                                             << node().watch().log();
  }

  support::TempDirectory directory_;
  std::optional<Disk> disk_;
  FdStore manager_;  // used by a test that passes it to start()
  std::unique_ptr<WatchedNode> node_;
  nlohmann::json last_scan_;
};

}  // namespace spoor::watch
