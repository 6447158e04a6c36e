// `spoor scan --exec`, with real scans and real programs.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cluster/one_node.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using Calls = std::vector<std::vector<std::string>>;

class ScanHookTest : public OneNodeTest {
 protected:
  // A program that notes what it was called with, and then does this.
  std::string hook(const std::string& then = "") {
    const fs::path file = work_ / "hook";
    std::ofstream(file) << "#!/bin/sh\nlog='" << log().native() << "'\n"
                        << "printf 'call%s\\0' \"$SPOOR_EVERYTHING${SPOOR_BELOW:+ below}\" >>\"$log\"\n"
                        << "printf '%s\\0' \"$@\" >>\"$log\"\n"
                        << then << '\n';
    fs::permissions(file, fs::perms::owner_all);
    return file.native();
  }

  fs::path log() { return work_ / "log"; }

  // What it was called with since this was asked last: "call" or, for everything, "call1"; then the
  // arguments.
  Calls take_calls() {
    std::ifstream from(log(), std::ios::binary);
    Calls calls;
    for (std::string word; std::getline(from, word, '\0');) {
      if (word.starts_with("call")) calls.emplace_back();
      calls.back().push_back(word);
    }
    fs::remove(log());
    return calls;
  }

  std::string scan_with(const std::string& command, int code = 0) {
    support::outlast_timestamp_step();
    const auto scan = cluster_.spoor(node(), {"scan", "--exec", command});
    EXPECT_EQ(scan.code, code) << scan.err;
    return scan.err;
  }

  // Scans until the hook knows everything.
  void begin() {
    scan_with(hook());
    take_calls();
  }

  support::TempDirectory work_;
};

TEST_F(ScanHookTest, Hook_AfterTheFirstCall_GetsOnlyChangedDirectories) {
  change("bucket/a/file");
  scan_with(hook());
  EXPECT_EQ(take_calls(), (Calls{{"call1", "./"}}));
  scan_with(hook());
  EXPECT_EQ(take_calls(), Calls()) << "nothing changed";
  change("bucket/a/more");
  change("top");
  scan_with(hook());
  EXPECT_EQ(take_calls(), (Calls{{"call", "./", "bucket/a/"}}));
  fs::remove_all(drive() / "bucket/a");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "bucket/a"}).code, 0);
  scan_settled();
  change("bucket/b/file");
  scan_with(hook());
  EXPECT_EQ(take_calls(), (Calls{{"call", "bucket/", "bucket/b/"}}))
      << "of all scans since; what is gone is not named";
}

TEST_F(ScanHookTest, HookFailed_NextCallGetsTheSameDirectories) {
  scan_with(hook("exit 7"), 3);
  EXPECT_EQ(take_calls(), (Calls{{"call1", "./"}}));
  scan_with(hook("exit 7"), 3);
  EXPECT_EQ(take_calls(), (Calls{{"call1", "./"}})) << "no scan found a change, and yet";
  begin();
  change("a/file");
  const std::string said = scan_with(hook("exit 7"), 3);
  EXPECT_NE(said.find("ended with code 7"), std::string::npos) << said;
  take_calls();
  change("b/file");
  EXPECT_NE(scan_with("kill -9 $$; :", 3).find("signal 9"), std::string::npos);
  scan_with(hook());
  EXPECT_EQ(take_calls(), (Calls{{"call", "./", "a/", "b/"}}));
  scan_with(hook());
  EXPECT_EQ(take_calls(), Calls());
}

TEST_F(ScanHookTest, HookCannotBeStarted_CountsAsFailed) {
  begin();
  change("a/file");
  const std::string said = scan_with(work_ / "no such program", 3);
  EXPECT_NE(said.find("ended with code 127"), std::string::npos) << said;
  scan_with(hook());
  EXPECT_EQ(take_calls(), (Calls{{"call", "./", "a/"}}));
}

TEST_F(ScanHookTest, ManyDirectories_ArePassedInBatches) {
  begin();
  std::string marks;
  for (int i = 0; i < 2'500; ++i) {
    const std::string path = "d/" + std::to_string(10'000 + i);
    fs::create_directories(drive() / path);
    marks += path + '\n';
  }
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "-"}, marks).code, 0);
  scan_with(hook("case \"$*\" in *10500/*) exit 1;; esac"), 3);
  EXPECT_EQ(take_calls().size(), 1U) << "none after one that failed";
  scan_with(hook());
  const Calls calls = take_calls();
  std::vector<std::string> told;
  for (const auto& call : calls) {
    EXPECT_LE(call.size(), 1'001U);
    told.insert(told.end(), call.begin() + 1, call.end());
  }
  EXPECT_EQ(calls.size(), 3U);
  ASSERT_EQ(told.size(), 2'502U);
  EXPECT_EQ(told[1], "d/");
  EXPECT_EQ(told.back(), "d/12499/");
}

TEST_F(ScanHookTest, LongPaths_ArePassedInSmallerBatches) {
  begin();
  const std::string deep =
      std::string(250, 'x') + '/' + std::string(250, 'y') + '/' + std::string(250, 'z') + '/';
  std::string marks;
  for (int i = 0; i < 400; ++i) {
    const std::string path = deep + std::to_string(1'000 + i);
    fs::create_directories(drive() / path);
    marks += path + '\n';
  }
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "-"}, marks).code, 0);
  scan_with(hook());
  std::size_t told = 0;
  for (const auto& call : take_calls()) {
    std::size_t bytes = 0;
    for (const std::string& word : call) bytes += word.size() + 1;
    EXPECT_LE(bytes, 128U << 10U);
    told += call.size() - 1;
  }
  EXPECT_EQ(told, 404U);
}

// Linux takes no argument of more than 128 KiB, whatever all of them may take.
TEST_F(ScanHookTest, PathTooLongForAnArgument_IsPassedAsADirectoryAbove) {
  const std::string name(200, 'x');
  int at = ::open(drive().c_str(), O_RDONLY | O_DIRECTORY);
  for (int level = 0; level < 700; ++level) {
    ASSERT_EQ(::mkdirat(at, name.c_str(), 0755), 0);
    const int below = ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY);
    ::close(at);
    at = below;
  }
  begin();
  for (const char* file : {"one", "two"}) {
    ::close(::openat(at, file, O_WRONLY | O_CREAT, 0644));
    const int above = ::openat(at, "..", O_RDONLY | O_DIRECTORY);
    ::close(at);
    at = above;
  }
  ::close(at);
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "--kind", "tree", name}).code, 0);
  change("a/file");
  change("z/file");
  const std::string said = scan_with(hook());
  EXPECT_NE(said.find("is too long for an argument"), std::string::npos) << said;
  const Calls calls = take_calls();
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0], (std::vector<std::string>{"call", "./", "a/"}));
  ASSERT_EQ(calls[1].size(), 2U);
  EXPECT_EQ(calls[1][0], "call below");
  EXPECT_LT(calls[1][1].size(), 128U << 10U);
  EXPECT_GT(calls[1][1].size(), 100U << 10U);
  EXPECT_EQ(calls[2], (std::vector<std::string>{"call", "z/"}));
  scan_with(hook());
  EXPECT_EQ(take_calls(), Calls()) << "all was given";
}

TEST_F(ScanHookTest, SpecialCharactersInNames_ArePassedUnchanged) {
  begin();
  for (const char* path : {"-rf/file", "$(touch x)/file", "a b'\"/file", "line\nbreak/file", "\xff/file"})
    change(path);
  scan_with(hook());
  EXPECT_EQ(take_calls(),
            (Calls{{"call", "./", "$(touch x)/", "./-rf/", "a b'\"/", "line\nbreak/", "\xff/"}}));
}

TEST_F(ScanHookTest, HookCommand_IsRunByAShell) {
  begin();
  change("a/file");
  const std::string out = work_ / "out";
  scan_with("date > /dev/null && printf '%s,' $((1 + 1)) > '" + out + '\'');
  std::stringstream said;
  said << std::ifstream(out).rdbuf();
  EXPECT_EQ(said.str(), "2,./,a/,");
}

TEST_F(ScanHookTest, HookOutput_IsNotInTheScanReport) {
  change("a/file");
  const auto scan = cluster_.scan(node(), 0, {"--exec", "echo hello; cat; :"});
  EXPECT_EQ(scan["scan"], 1);
}

TEST_F(ScanHookTest, ScanStopped_HookGetsTheSignalAndItsBatchIsRepeated) {
  begin();
  change("a/file");
  const std::string waits =
      hook("trap 'echo stopped >&2; exit 0' TERM\necho started >&2\nwhile :; do sleep 0.1; done");
  support::Daemon scan({SPOOR, "--config", cluster_.config_of(node()).native(), "scan", "--exec", waits});
  scan.wait_for("started");
  scan.signal(SIGTERM);
  EXPECT_EQ(scan.wait_for("stop"), "ped") << scan.log();
  EXPECT_EQ(scan.wait(), 3);
  take_calls();
  scan_with(hook());
  EXPECT_EQ(take_calls(), (Calls{{"call", "./", "a/"}}));
}

TEST_F(ScanHookTest, ScanDatabaseLost_HookGetsEverything) {
  begin();
  for (const char* name : {"scan.db", "scan.db-wal", "scan.db-shm"})
    fs::remove(cluster_.data_dir_of(node()) / name);
  scan_with(hook());
  EXPECT_EQ(take_calls(), (Calls{{"call1", "./"}}));
}

TEST_F(ScanHookTest, ScanFailed_HookIsNotCalled) {
  begin();
  change("a/file");
  cluster_.stop(node());
  scan_with(hook(), 1);
  EXPECT_EQ(take_calls(), Calls());
}

TEST_F(ScanHookTest, ExecOption_EmptyOrWithDryRun_IsRefused) {
  scan_with(" ", 2);
  EXPECT_EQ(cluster_.spoor(node(), {"scan", "--dry-run", "--exec", "true"}).code, 2);
}

}  // namespace
}  // namespace spoor::cluster
