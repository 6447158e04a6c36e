// replace_file against every way in which a disk or the power can fail it.

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "tests/fakes/memory_file_system.h"

namespace spoor::base {
namespace {

using fakes::MemoryFileSystem;
using Fate = MemoryFileSystem::Fate;

const std::filesystem::path file = "/drive/file";
const std::filesystem::path aside = "/drive/file.tmp";
const std::string old_content = "the old content, of some length";
const std::string new_content = "the new content, which is longer than the old one was";

// What the directory holds before: nothing, an old file, or that and what a crash left aside.
enum class Before { nothing, old_file, old_file_and_remains };

void prepare(MemoryFileSystem& files, Before before) {
  files.make_directory("/drive");
  if (before != Before::nothing) files.put(file, old_content);
  if (before == Before::old_file_and_remains) files.put(aside, "remains of an earlier crash");
}

bool is_whole(const MemoryFileSystem& files, Before before) {
  const auto content = files.content(file);
  if (content == new_content) return true;
  return before == Before::nothing ? !content : content == old_content;
}

// The fates number `round` stands for, three to a thing.
MemoryFileSystem::Chooser fates(std::size_t round) {
  return [round](const std::string&) mutable {
    const auto fate = static_cast<Fate>(round % 3);
    round /= 3;
    return fate;
  };
}

std::size_t calls_of_a_success(Before before) {
  MemoryFileSystem files;
  prepare(files, before);
  files.reset_calls();
  EXPECT_TRUE(replace_file(files, file, new_content));
  return files.calls();
}

// Whatever a power cut after the attempt loses, the file is whole.
void expect_whole_after_power_cut(Before before, const std::function<void(MemoryFileSystem&)>& attempt) {
  for (std::size_t round = 0, rounds = 1; round < rounds; ++round) {
    MemoryFileSystem files;
    prepare(files, before);
    attempt(files);
    rounds = 1;
    for (std::size_t unsynced = files.crash(fates(round)); unsynced > 0; --unsynced) rounds *= 3;
    EXPECT_TRUE(is_whole(files, before)) << "fates " << round;
  }
}

class ReplaceFileTest : public ::testing::TestWithParam<Before> {};

TEST_P(ReplaceFileTest, PowerCutAtAnyCall_LeavesOldOrNewFileWhole) {
  const std::size_t calls = calls_of_a_success(GetParam());
  for (std::size_t stop = 1; stop <= calls + 1; ++stop) {
    SCOPED_TRACE(stop);
    expect_whole_after_power_cut(GetParam(), [&](MemoryFileSystem& files) {
      files.stop_at_call(stop);
      static_cast<void>(replace_file(files, file, new_content));
    });
  }
}

TEST_P(ReplaceFileTest, ReplacedFile_SurvivesPowerCut) {
  MemoryFileSystem files;
  prepare(files, GetParam());
  ASSERT_TRUE(replace_file(files, file, new_content));
  files.crash(Fate::lost);
  EXPECT_EQ(files.content(file), new_content);
}

TEST_P(ReplaceFileTest, FailedCall_IsReportedAndLeavesWholeFile) {
  const std::size_t calls = calls_of_a_success(GetParam());
  for (std::size_t failing = 1; failing <= calls; ++failing) {
    MemoryFileSystem files;
    prepare(files, GetParam());
    files.fail_call(failing, ENOSPC);
    const auto done = replace_file(files, file, new_content);
    ASSERT_FALSE(done) << "call " << failing;
    EXPECT_EQ(done.error().code, std::errc::no_space_on_device) << "call " << failing;
    EXPECT_TRUE(is_whole(files, GetParam())) << "call " << failing;
    // The first call could not open the file aside: what lay there before may stay.
    if (failing > 1) {
      EXPECT_FALSE(files.exists(aside)) << "call " << failing;
    }
  }
}

TEST_P(ReplaceFileTest, FailedCallThenPowerCut_LeavesWholeFile) {
  const std::size_t calls = calls_of_a_success(GetParam());
  for (std::size_t failing = 1; failing <= calls; ++failing) {
    SCOPED_TRACE(failing);
    expect_whole_after_power_cut(GetParam(), [&](MemoryFileSystem& files) {
      files.fail_call(failing, EIO);
      EXPECT_FALSE(replace_file(files, file, new_content));
    });
  }
}

TEST_P(ReplaceFileTest, FullDrive_LeavesOldFileAndNoTemporaryFile) {
  MemoryFileSystem files;
  prepare(files, GetParam());
  files.fill("/drive");
  ASSERT_FALSE(replace_file(files, file, new_content));
  EXPECT_EQ(files.content(file), GetParam() == Before::nothing ? std::nullopt : std::optional(old_content));
  EXPECT_FALSE(files.exists(aside));
}

TEST_P(ReplaceFileTest, KillAtAnyCallWithoutSyncs_LeavesOldOrNewFileWhole) {
  constexpr std::size_t calls = 4;  // creates, writes, closes, renames
  for (std::size_t stop = 1; stop <= calls + 1; ++stop) {
    MemoryFileSystem files;
    prepare(files, GetParam());
    files.stop_at_call(stop);
    EXPECT_EQ(replace_file_unsynced(files, file, new_content).has_value(), stop > calls) << stop;
    files.kill();
    EXPECT_TRUE(is_whole(files, GetParam())) << "killed before call " << stop;
    EXPECT_EQ(files.content(file) == new_content, stop > calls) << stop;
  }
}

INSTANTIATE_TEST_SUITE_P(Before, ReplaceFileTest,
                         ::testing::Values(Before::nothing, Before::old_file, Before::old_file_and_remains));

}  // namespace
}  // namespace spoor::base
