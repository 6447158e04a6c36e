// Power cuts, alone and with full disks and kills: the file system under node.data_dir stops at once and
// is mounted anew, with what had reached it.
#include "tests/faults/data_dir_fixture.h"
#include "tests/support/sanitizer.h"

namespace spoor::faults {
namespace {

class PowerCutTest : public DataImageTest {
 protected:
  void die(bool power_goes) {
    if (power_goes) {
      daemon_->freeze();
      data().cut_power();
    }
    kill_hard();
    load_.stop();
    if (power_goes) {
      mount_anew();
      boot_anew();
    }
  }

  void boot_anew() {
    if (other_boot_) {
      other_boot_.reset();
    } else {
      other_boot_.emplace(directory_ / "boot_id");
    }
  }

 private:
  std::optional<OtherBoot> other_boot_;
};

// Snapshots, journal and records, all on one disk, and cycles opened all the while: so the power goes
// also while files are begun, replaced and removed.
TEST_F(PowerCutTest, AcknowledgedMarks_AfterPowerCuts_AreKept) {
  fs::create_directory(data_dir() / "drive");
  config_["drives"] = {data_dir() / "drive"};
  start();
  const std::string born = instance();
  for (int round = 0; round < 6 && !HasFailure(); ++round) {
    load_.start(port());
    ASSERT_TRUE(load_.wait_for_acknowledged(random_.between(1, 400))) << daemon_->log();
    die(true);
    start();
    EXPECT_EQ(instance(), born) << daemon_->log();
    expect_kept(load_);
  }
}

// Nobody may see a cycle that may be given again.
TEST_F(PowerCutTest, CycleNotDurable_AdvanceIsRefused) {
  start();
  data().cut_power();
  const std::string ninth = R"({"cluster":"default","current":9})";
  EXPECT_EQ(request("POST", "/v1/peer/cycle", ninth).status, 503U);
}

// The journal fails, is begun anew behind a snapshot, and the daemon dies at any moment of that.
TEST_F(PowerCutTest, CrashDuringOrAfterDiskOutage_LosesNoMark) {
  fills_up();
  fs::create_directory(data_dir() / "drive");
  config_["drives"].push_back(data_dir() / "drive");  // which fills up as well
  start();
  const std::string born = instance();
  for (int round = 0; round < (support::is_sanitized ? 4 : 8) && !HasFailure(); ++round) {
    load_.start(port());
    ASSERT_TRUE(load_.wait_for_acknowledged(random_.between(1, 200))) << daemon_->log();
    break_disk_();
    ASSERT_TRUE(load_.wait_for_refused(random_.between(1, 50))) << daemon_->log();
    const bool dies_in_it = random_.one_in(3);
    if (!dies_in_it) {
      mend_disk_();
      if (random_.one_in(4)) wait_until_ready();
      // Or at once, while the journal is still to be begun anew.
      const std::size_t more = random_.one_in(3) ? 0 : random_.between(1, 50);
      ASSERT_TRUE(load_.wait_for_acknowledged(more)) << daemon_->log();
    }
    die(random_.one_in(2));
    if (dies_in_it) mend_disk_();
    start();
    EXPECT_EQ(instance(), born) << "in round " << round << '\n' << daemon_->log();
    expect_kept(load_);
  }
}

}  // namespace
}  // namespace spoor::faults
