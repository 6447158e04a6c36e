// A daemon under load whose node.data_dir is on a disk of its own, which fails.
#pragma once

#include <optional>

#include "tests/faults/fault_fixture.h"
#include "tests/faults/mounts.h"

namespace spoor::faults {

class DataDirTest : public FaultTest {
 protected:
  void SetUp() override {
    if (auto why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
    data_.emplace(data_dir());
  }

  fs::path data_dir() const { return directory_ / "data"; }
  MountPoint& data() { return *data_; }

  void mark_until_refused() {
    load_.start(port());
    ASSERT_TRUE(load_.wait_for_acknowledged(100)) << daemon_->log();
    ASSERT_EQ(load_.refused(), 0U);
    break_disk_();
    ASSERT_TRUE(load_.wait_for_refused(20)) << daemon_->log();
    expect_journal_error();
  }

  // By one client: the last page of the journal may have room for some marks.
  void mark_alone_until_refused() {
    for (int i = 0; mark(std::to_string(i)); ++i) {
    }
  }

  void expect_an_outage_loses_nothing() {
    start();
    ASSERT_NO_FATAL_FAILURE(mark_until_refused());
    mend_disk_();
    wait_until_ready();
    expect_healthy();
    ASSERT_TRUE(load_.wait_for_acknowledged(100)) << daemon_->log();
    expect_kill_loses_nothing(load_);
  }

  void expect_a_kill_in_an_outage_loses_nothing() {
    start();
    const std::string before = instance();
    ASSERT_NO_FATAL_FAILURE(mark_until_refused());
    kill_hard();
    load_.stop();
    mend_disk_();
    start();
    EXPECT_EQ(instance(), before) << daemon_->log();
    expect_healthy();
    expect_kept(load_);
  }

  void fills_up() {
    break_disk_ = [this] { filler_.emplace(data_dir() / "filler"); };
    mend_disk_ = [this] { filler_.reset(); };
  }

  support::Random random_;
  Load load_{random_};
  std::function<void()> break_disk_;
  std::function<void()> mend_disk_;

 private:
  std::optional<MountPoint> data_;
  std::optional<Filler> filler_;
};

class DataImageTest : public DataDirTest {
 protected:
  void SetUp() override {
    DataDirTest::SetUp();
    if (auto why = why_no_images(); !why.empty()) GTEST_SKIP() << why;
    make_image(image_, std::size_t{16} << 20U);
    data().mount_image(image_);
  }

  void mount_anew() {
    data().unmount();
    data().mount_image(image_);
  }

  const fs::path image_ = directory_ / "image";
};

}  // namespace spoor::faults
