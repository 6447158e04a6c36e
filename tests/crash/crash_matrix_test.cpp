#include "tests/crash/crash_matrix.h"

#include <gtest/gtest.h>

#include <iostream>

#include "tests/support/sanitizer.h"

namespace spoor::crash {
namespace {

using tracker::Durability;

Outcome run_and_expect_no_violation(const Matrix& matrix) {
  auto outcome = run(matrix);
  std::cout << "[ POINTS   ] " << outcome.points << " recoveries, " << outcome.losses << " with a gap, "
            << outcome.violation_count << " violations" << std::endl;
  EXPECT_EQ(outcome.violation_count, 0U);
  for (const std::string& violation : outcome.violations) ADD_FAILURE() << violation;
  return outcome;
}

TEST(CrashMatrixTest, DurabilityDiskPowerCut_LosesNoMarkAndHasNoGap) {
  EXPECT_EQ(run_and_expect_no_violation({Durability::disk, Fault::power_cut}).losses, 0U);
}

TEST(CrashMatrixTest, DurabilityOsAndMemoryLoss_IsCoveredByGap) {
  run_and_expect_no_violation({Durability::os, Fault::power_cut});
  run_and_expect_no_violation({Durability::memory, Fault::power_cut});
  run_and_expect_no_violation({Durability::memory, Fault::kill});
}

constexpr std::size_t parts = 6;

// Crashes in the recovery, too. Each case takes a part of the cuts, so that none takes long.
class SecondCrashTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  // `every`: so many-th cut. The sanitizers see nothing at one that they would not see at the next.
  static Outcome run_part(Matrix matrix, std::size_t every) {
    if (support::is_sanitized) every = 40;
    matrix.first = 1 + GetParam() * every;
    matrix.stride = parts * every;
    matrix.in_recovery = true;
    auto outcome = run_and_expect_no_violation(matrix);
    EXPECT_EQ(outcome.losses, 0U);
    return outcome;
  }
};

TEST_P(SecondCrashTest, DurabilityDiskSecondPowerCut_LosesNothing) {
  const auto outcome = run_part({Durability::disk, Fault::power_cut}, 3);
  EXPECT_TRUE(support::is_sanitized || outcome.points > 1'000U);
}

TEST_P(SecondCrashTest, DurabilityDiskAndOsSecondKill_LosesNothing) {
  for (const Durability durability : {Durability::disk, Durability::os})
    run_part({durability, Fault::kill}, 1);
}

// What the killed process had written and not synced was taken over; it must not be built on sand.
TEST_P(SecondCrashTest, DurabilityDiskPowerCutAfterKill_LosesNothing) {
  run_part({.durability = Durability::disk, .fault = Fault::kill, .fault_in_recovery = Fault::power_cut}, 1);
}

INSTANTIATE_TEST_SUITE_P(Parts, SecondCrashTest, ::testing::Range(std::size_t{0}, parts));

// Each sync of the program is there for a reason that the matrix sees.
TEST(CrashMatrixTest, OmittedSync_IsDetected) {
  if (support::is_sanitized) return;  // it is about the matrix
  using Path = std::filesystem::path;
  const std::pair<const char*, std::function<bool(const Path&)>> all[] = {
      {"the journal's frames and headers", [](const Path& path) { return path.extension() == ".log"; }},
      {"the journal's directory", [](const Path& path) { return path.filename() == "journal"; }},
      {"data_dir", [](const Path& path) { return path == "/data"; }},
      {"the snapshot", [](const Path& path) { return path.filename() == ".tracker.bin.tmp"; }},
      {"the drive's own directory", [](const Path& path) { return path.filename() == ".spoor"; }},
      {"the drive", [](const Path& path) { return path.parent_path() == "/mnt"; }},
      {"the record", [](const Path& path) { return path.filename() == "instance.json.tmp"; }},
  };
  for (const auto& [name, is_sync_omitted] : all) {
    Matrix matrix;
    matrix.until_first_violation = true;
    matrix.is_sync_omitted = is_sync_omitted;
    EXPECT_GT(run(matrix).violation_count, 0U) << name;
  }
}

}  // namespace
}  // namespace spoor::crash
