// Restores of the recipes for restic and borg, of a date and of one path; and what all recipes print.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>
#include <tuple>

#include "tests/cluster/recipes/programs.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const std::string latin1 = "caf\xe9";
const std::string pattern = "a [*?]\\ {x}, line\nbreak ";

class RestoreTest : public EachProgramTest {
 protected:
  void SetUp() override {
    EachProgramTest::SetUp();
    for (const std::string& path : {std::string("a/file"), std::string("a/gone"), std::string("kept/file"),
                                    std::string("swap/deep/file"), pattern + "/deep/file", latin1 + "/file"})
      change(path);
    back_up();
    fs::remove(drive() / "a/gone");
    for (const std::string& path :
         {std::string("a/new"), std::string("swap/deep/file"), pattern + "/deep/file"})
      change(path);
    remove("kept");
    back_up();
    remove("swap");
    remove(latin1);
    for (const std::string& path : {std::string("swap"), std::string("kept/new"), latin1}) change(path);
    fs::create_directory(drive() / pattern / "empty");
    mark(pattern + "/empty");
    back_up();
  }

  void mark(const std::string& path) {
    ASSERT_EQ(cluster_.spoor(node(), {"mark", "-0", "--kind", "tree"}, path).code, 0);
  }

  void remove(const std::string& path) {
    fs::remove_all(drive() / path);
    mark(path);
  }

  // And a copy of the drive as it is at this backup. The times of two backups differ by a second.
  void back_up() {
    scan_settled();
    run();
    copies_.push_back(work_ / ("at" + std::to_string(copies_.size())));
    ASSERT_EQ(
        support::run_command({"rsync", "-a", "--exclude=/.spoor", drive().native() + "/", copies_.back()})
            .code,
        0);
    const auto second = [] {
      return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    };
    for (const auto begin = second(); second() == begin;) std::this_thread::yield();
  }

  support::CommandResult call(const std::string& command, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), command);
    return recipe("spoor-" + program_, arguments, environment());
  }

  // The times that `list` prints.
  std::vector<std::string> times() {
    const auto listed = call("list", {"copy"});
    EXPECT_EQ(listed.code, 0) << listed.err;
    std::vector<std::string> found;
    std::istringstream lines(listed.out);
    for (std::string time, rest; lines >> time && std::getline(lines, rest);) found.push_back(time);
    EXPECT_EQ(found.size(), copies_.size()) << listed.out;
    return found;
  }

  fs::path restore(std::vector<std::string> options) {
    fs::path target = work_ / "restored";
    fs::remove_all(target);
    options.insert(options.end(), {target.native(), "copy"});
    const auto done = call("restore", options);
    EXPECT_EQ(done.code, 0) << done.err;
    return target;
  }

  // What differs in names, types, sizes, times, rights and bytes, but the attributes of the top.
  static std::string differences(const fs::path& one, const fs::path& other) {
    const auto found = support::run_command({"rsync", "-acni", "--delete", one / "", other / ""});
    EXPECT_EQ(found.code, 0) << found.err;
    return found.out.starts_with(".d") && found.out.find("./\n") == 12 ? found.out.substr(15) : found.out;
  }

  std::vector<fs::path> copies_;
};

TEST_P(RestoreTest, AtEachBackup_EqualsTheDriveThen) {
  ASSERT_EQ(cluster_.spoor(node(), {"scan", "--rebuild"}).code, 0);
  remove("a");
  back_up();  // a full one
  const auto at = times();
  ASSERT_EQ(at.size(), 4U);
  for (std::size_t index = 0; index < at.size(); ++index) {
    SCOPED_TRACE(index);
    EXPECT_EQ(differences(copies_[index], restore({"--at", at[index]})), "");
  }
}

TEST_P(RestoreTest, PathAtABackup_IsRestoredAlone) {
  const auto at = times();
  ASSERT_EQ(at.size(), 3U);
  const std::vector<std::tuple<std::size_t, std::string, std::string>> cases{
      {0, "a/gone", "a/gone"}, {1, "swap/deep", "swap/deep"}, {2, "swap", "swap"},
      {2, pattern, pattern},   {1, latin1, latin1},           {2, drive() / "kept/", "kept"},
  };
  for (const auto& [index, asked, path] : cases) {
    SCOPED_TRACE(asked);
    const fs::path target = restore({"--at", at[index], "--path", asked});
    const fs::path expected = work_ / "expected";
    fs::remove_all(expected);
    fs::create_directories((expected / path).parent_path());
    ASSERT_EQ(support::run_command({"cp", "-a", copies_[index] / path, expected / path}).code, 0);
    // Directories above it are made, with any attributes.
    EXPECT_EQ(support::run_command({"diff", "-r", expected, target}).out, "");
    EXPECT_EQ(support::run_command(
                  {"rsync", "-acni", (expected / path).native(), (target / path).parent_path() / ""})
                  .out,
              "");
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, RestoreTest, testing::Values("restic", "borg"), name_of);

class ResticRestoreTest : public RestoreTest {};

TEST_P(ResticRestoreTest, WhatIsNotThere_Fails) {
  const std::string target = work_ / "restored";
  const auto fails = [&](const std::vector<std::string>& options, int code, const std::string& why) {
    auto arguments = options;
    arguments.insert(arguments.end(), {target, "copy"});
    const auto failed = call("restore", arguments);
    EXPECT_EQ(failed.code, code);
    EXPECT_THAT(failed.err, HasSubstr(why));
  };
  fails({"--at", "2001-02-03"}, 1, "there is no backup of that time: the first is of " + times()[0]);
  fails({"--at", "yesterday"}, 1, "'yesterday' is no time");
  fails({"--path", "../a"}, 1, "../a is not on ");
  fails({"--path", "/elsewhere"}, 1, "/elsewhere is not on ");
  EXPECT_FALSE(fs::exists(target)) << "nothing was written";
  fails({"--path", "a/gone"}, 1, "a/gone is not in the backup of " + times()[2]);
  fails({"--dry-run"}, 2, "--at TIME");
  for (const char* command : {"list", "restore"}) {
    const auto failed =
        call(command, command == std::string("list") ? std::vector<std::string>{"another"}
                                                     : std::vector<std::string>{target + "2"});
    EXPECT_EQ(failed.code, 1);
    EXPECT_THAT(failed.err, HasSubstr("': it has copy\n"));
  }
}

TEST_P(ResticRestoreTest, ADate_IsTheEndOfItsDay) {
  const auto at = times();
  const std::string day = at[0].substr(0, 10);
  std::size_t last = 0;  // of that day, which may end meanwhile
  while (last + 1 < at.size() && at[last + 1].starts_with(day)) ++last;
  EXPECT_EQ(differences(copies_[last], restore({"--at", day})), "");
}

INSTANTIATE_TEST_SUITE_P(Programs, ResticRestoreTest, testing::Values("restic"), name_of);

class RecipeReportTest : public EachProgramTest {
 protected:
  void SetUp() override {
    EachProgramTest::SetUp();
    change_and_scan({"a/file", "b/file", "c/file"});
  }

  std::string dry_run() {
    auto command = run_command("copy");
    command.emplace_back("--dry-run");
    const auto done = support::run_command(command);
    EXPECT_EQ(done.code, 0) << done.err;
    return done.out;
  }

  // Of what a dry run may not change.
  std::string state() {
    return support::run_command({"find", work_.path().native(), "-path", work_ / "cache", "-prune", "-o",
                                 "-path", work_ / "borg", "-prune", "-o", "-type", "f", "-printf",
                                 "%P %s %T@\n"})
               .out +
           changes({"--consumers"}).out + changes({"--consumer", "copy"}).out;
  }
};

TEST_P(RecipeReportTest, DryRun_PrintsThePlanAndChangesNothing) {
  std::string before = state();
  EXPECT_THAT(dry_run(), HasSubstr("dry run: would have "));
  EXPECT_EQ(state(), before);
  run();
  change("a/new");
  fs::remove_all(drive() / "b");
  mark_and_scan("b");
  before = state();
  const std::string plan = dry_run();
  EXPECT_THAT(plan, HasSubstr("copy a/new\n"));
  EXPECT_THAT(plan, HasSubstr("delete b/\n"));
  EXPECT_THAT(plan, Not(HasSubstr("c/file")));
  EXPECT_THAT(plan, ContainsRegex("and read up to scan 2 of [0-9-]+T[0-9:]+Z\n"));
  EXPECT_EQ(state(), before);
  EXPECT_THAT(run().out, ContainsRegex("'copy' has read up to scan 2 of [0-9-]+T[0-9:]+Z\n"));
  expect_same();
}

TEST_P(RecipeReportTest, DryRunWithAFileInPlaceOfADirectory_PrintsTheWholePlan) {
  run();
  fs::remove_all(drive() / "b");
  change_and_scan({"a/new", "b", "c/new"});
  const std::string plan = dry_run();
  for (const char* line : {"delete b/\n", "copy a/new\n", "copy b\n", "copy c/new\n", "dry run: would have "})
    EXPECT_THAT(plan, HasSubstr(line));
  run();
  expect_same();
}

TEST_P(RecipeReportTest, Progress_IsShownOnATerminalOnly) {
  const auto done = run();
  EXPECT_THAT(done.out + done.err, Not(HasSubstr("\033")));
  change_and_scan({"a/file", "b/new"});
  std::vector<std::string> command{"bash", "-c", "exec \"$@\" 2>&1", "bash"};
  for (const std::string& each : run_command("copy")) command.push_back(each);
  const auto shown = support::run_on_terminal(command);
  EXPECT_EQ(shown.code, 0);
  EXPECT_THAT(shown.out, ContainsRegex("\r\033\\[K[0-9]+ (of [0-9]+ )?files"));
  EXPECT_THAT(shown.out, HasSubstr("\r\033[K" + std::string(has_layers() ? "backed up 2" : "copied 2")));
}

INSTANTIATE_TEST_SUITE_P(Programs, RecipeReportTest, testing::Values("rsync", "rclone", "restic", "borg"),
                         name_of);

}  // namespace
}  // namespace spoor::cluster
