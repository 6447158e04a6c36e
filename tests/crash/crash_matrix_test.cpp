#include "tests/crash/crash_matrix.h"

#include <gtest/gtest.h>

#include <iostream>

#include "tests/crash/forgetful_file_system.h"
#include "tests/support/sanitizer.h"

namespace spoor::crash {
namespace {

using tracker::Durability;

// The sanitizers see nothing at one cut that they would not see at the next.
constexpr std::size_t stride = support::is_sanitized ? 40 : 1;
// Of the cuts that are followed by a second one in each call of the recovery.
constexpr std::size_t second_stride = support::is_sanitized ? stride : 3;

Outcome run_and_tell(const Matrix& matrix) {
  auto outcome = run(matrix);
  std::cout << "[ POINTS   ] " << outcome.points << " recoveries, " << outcome.losses << " with a gap, "
            << outcome.violation_count << " violations" << std::endl;
  return outcome;
}

void expect_no_violation(const Outcome& outcome) {
  EXPECT_EQ(outcome.violation_count, 0U);
  for (const std::string& violation : outcome.violations) ADD_FAILURE() << violation;
}

TEST(CrashMatrixTest, DurabilityDiskPowerCut_LosesNoMarkAndHasNoGap) {
  const auto outcome = run_and_tell({Durability::disk, Fault::power_cut});
  expect_no_violation(outcome);
  EXPECT_EQ(outcome.losses, 0U);
}

TEST(CrashMatrixTest, DurabilityDiskSecondPowerCutInRecovery_LosesNothing) {
  const auto outcome = run_and_tell({Durability::disk, Fault::power_cut, second_stride});
  expect_no_violation(outcome);
  EXPECT_EQ(outcome.losses, 0U);
  EXPECT_GE(outcome.points, 30'000U / second_stride);
}

TEST(CrashMatrixTest, DurabilityDiskAndOsKill_LosesNothing) {
  for (const Durability durability : {Durability::disk, Durability::os}) {
    const auto outcome = run_and_tell({durability, Fault::kill, stride});
    expect_no_violation(outcome);
    EXPECT_EQ(outcome.losses, 0U);
  }
}

// What the killed process had written and not synced was taken over; it must not be built on sand.
TEST(CrashMatrixTest, DurabilityDiskPowerCutAfterKill_LosesNothing) {
  const auto outcome = run_and_tell({Durability::disk, Fault::kill, stride, Fault::power_cut});
  expect_no_violation(outcome);
  EXPECT_EQ(outcome.losses, 0U);
}

TEST(CrashMatrixTest, DurabilityOsAndMemoryLoss_IsCoveredByGap) {
  expect_no_violation(run_and_tell({Durability::os, Fault::power_cut}));
  expect_no_violation(run_and_tell({Durability::memory, Fault::power_cut}));
  expect_no_violation(run_and_tell({Durability::memory, Fault::kill}));
}

struct Forgotten {
  const char* name;
  std::function<bool(const std::filesystem::path&)> paths;
};

// Each sync of the program is there for a reason that the matrix sees.
TEST(CrashMatrixTest, OmittedSync_IsDetected) {
  if (support::is_sanitized) return;  // it is about the matrix
  const std::vector<Forgotten> all{
      {"the journal's frames and headers", [](const auto& path) { return path.extension() == ".log"; }},
      {"the journal's directory", [](const auto& path) { return path.filename() == "journal"; }},
      {"data_dir", [](const auto& path) { return path == "/data"; }},
      {"the snapshot", [](const auto& path) { return path.filename() == ".tracker.bin.tmp"; }},
      {"the drive's own directory", [](const auto& path) { return path.filename() == ".spoor"; }},
      {"the drive", [](const auto& path) { return path.parent_path() == "/mnt"; }},
      {"the record", [](const auto& path) { return path.filename() == "instance.json.tmp"; }},
  };
  for (const Forgotten& forgotten : all) {
    Matrix matrix;
    matrix.until_first_violation = true;
    matrix.wrap = [&](base::FileSystem& files) {
      return std::make_unique<ForgetfulFileSystem>(files, forgotten.paths);
    };
    const auto outcome = run(matrix);
    EXPECT_GT(outcome.violation_count, 0U) << forgotten.name;
    if (outcome.violations.empty()) continue;
    std::cout << "[ NOTICED  ] " << forgotten.name << ", after " << outcome.points
              << " recoveries: " << outcome.violations.front() << std::endl;
  }
}

}  // namespace
}  // namespace spoor::crash
