#include "scanner/walk/walk_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fakes/memory_file_system.h"
#include "tests/scanner/logged_walk.h"
#include "tests/support/random.h"
#include "tests/support/sanitizer.h"
#include "tests/support/temp_directory.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

using Paths = std::vector<std::string>;

void expect_same(const DirectoryRead& one, const DirectoryRead& other) {
  EXPECT_EQ(one.handle.inode, other.handle.inode);
  EXPECT_EQ(one.handle.birth, other.handle.birth);
  EXPECT_EQ(one.listing.own, other.listing.own);
  EXPECT_EQ(one.listing.signature, other.listing.signature);
  EXPECT_EQ(one.listing.linked, other.listing.linked);
  EXPECT_EQ(one.listing.owners, other.listing.owners);
  ASSERT_EQ(one.listing.subdirectories.size(), other.listing.subdirectories.size());
  for (std::size_t number = 0; number < one.listing.subdirectories.size(); ++number) {
    EXPECT_EQ(one.listing.subdirectories[number].name, other.listing.subdirectories[number].name);
    EXPECT_EQ(one.listing.subdirectories[number].inode, other.listing.subdirectories[number].inode);
  }
}

// By the bytes of each component.
std::vector<std::string> components_of(std::string_view path) {
  std::vector<std::string> components;
  for (tracker::ComponentCursor at(path); at.next();) components.emplace_back(at.component());
  return components;
}

bool is_before_by_components(std::string_view a, std::string_view b) {
  return components_of(a) < components_of(b);
}

Paths walk_order(Paths paths) {
  std::ranges::sort(paths, is_before_by_components);
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

// So many, of names that sort otherwise as paths than they do as components.
Paths many_paths(std::size_t count) {
  Paths paths;
  for (std::size_t number = 0; paths.size() < count; ++number) {
    for (const char* name : {"a", "a-b", "a/x", "a/x-y", "a/x/z", "\xff"}) {
      paths.push_back(fmt::format("{:05}/{}", number, name));
    }
  }
  paths.resize(count);
  return walk_order(paths);
}

class WalkLogTest : public ::testing::Test {
 protected:
  LoggedWalk walk(LoggedWalk::Options options = {}) {
    return {directory_, files_, clock_, std::move(options)};
  }

  Paths file_names() {
    auto names = files_.list_directory(directory_);
    return names ? *names : Paths();
  }

  std::filesystem::path log_file(std::size_t number) {
    Paths names = file_names();
    std::erase(names, "scan");
    return directory_ / names.at(number);
  }

  // How many of the paths a walk finds, from the first on; it finds none behind one it does not.
  std::size_t replayed(const Paths& paths) {
    auto resumed = walk();
    std::size_t count = 0;
    for (const std::string& path : paths) {
      auto read = resumed.log->take(path);
      if (!read) break;
      expect_same(*read, read_of(path));
      ++count;
    }
    return count;
  }

  void write_log(const Paths& paths) {
    auto first = walk();
    first.add_all(paths);
    first.log->flush();
  }

  support::TempDirectory temp_;
  const std::filesystem::path directory_ = temp_ / "unfinished";
  base::PosixFileSystem files_;
  fakes::ManualClock clock_;
};

TEST(IsBeforeInWalkTest, RandomPaths_MatchComponentOrder) {
  SPOOR_RANDOM(random);
  const std::vector<std::string> names{"a", "a-b", "ab", "b", "a\x01", "\xff", "a.", "0"};
  const auto some_path = [&] {
    std::string path;
    for (std::uint64_t left = random.below(4); left > 0; --left) {
      path = tracker::join_path(path, random.pick(names));
    }
    return path;
  };
  for (int round = 0; round < 20'000; ++round) {
    const std::string a = some_path();
    const std::string b = some_path();
    ASSERT_EQ(tracker::is_before_in_walk(a, b), is_before_by_components(a, b))
        << "'" << a << "' and '" << b << "'";
  }
  EXPECT_TRUE(tracker::is_before_in_walk("a", "a/x"));
  EXPECT_TRUE(tracker::is_before_in_walk("a/x", "a-b"));
}

TEST_F(WalkLogTest, DirectoryReads_RoundTrip) {
  const Paths paths = walk_order({"a", "a-b", "a/x", "new\nline/\x01", std::string(255, 'n') + "/deep"});
  write_log(paths);
  auto resumed = walk();
  EXPECT_TRUE(resumed.has_resumed);
  for (const std::string& path : paths) {
    EXPECT_TRUE(resumed.log->is_replaying());
    auto read = resumed.log->take(path);
    ASSERT_TRUE(read) << path;
    expect_same(*read, read_of(path));
    EXPECT_LT(read->handle.descriptor, 0);
  }
  EXPECT_FALSE(resumed.log->is_replaying());
}

TEST_F(WalkLogTest, NamesOfAnyLength_RoundTrip) {
  const Paths names{std::string(256, 'a'), std::string(765, 'b'), std::string(65'535, 'c')};
  DirectoryRead read = read_of("a", 0);
  read.listing.files.emplace();
  for (const std::string& name : names) {
    read.listing.subdirectories.add(name, name.size());
    read.listing.files->add(name, name.size());
  }
  {
    auto first = walk();
    first.log->add("a", read);
    first.log->add("a/" + names.back(), read_of("a/" + names.back()));
    first.log->flush();
  }
  auto resumed = walk();
  const auto same = resumed.log->take("a");
  ASSERT_TRUE(same);
  expect_same(*same, read);
  ASSERT_TRUE(same->listing.files);
  ASSERT_EQ(same->listing.files->size(), names.size());
  for (std::size_t number = 0; number < names.size(); ++number) {
    EXPECT_EQ((*same->listing.files)[number].name, names[number]);
    EXPECT_EQ((*same->listing.files)[number].signature, names[number].size());
  }
  EXPECT_TRUE(resumed.log->take("a/" + names.back()));
}

TEST_F(WalkLogTest, ManySubdirectories_RoundTrip) {
  {
    auto first = walk();
    first.log->add("flat", read_of("flat", 400'000));
    EXPECT_FALSE(file_names().empty()) << "so much is written at once";
  }
  auto resumed = walk();
  const auto read = resumed.log->take("flat");
  ASSERT_TRUE(read);
  expect_same(*read, read_of("flat", 400'000));
}

TEST_F(WalkLogTest, EntriesNotTaken_AreSkipped) {
  write_log(many_paths(60));
  auto resumed = walk();
  EXPECT_FALSE(resumed.log->take("0000"));
  EXPECT_TRUE(resumed.log->take("00003/a-b"));
  EXPECT_FALSE(resumed.log->take("00003/a/x")) << "that was before";
  EXPECT_FALSE(resumed.log->take("00003/a-c"));
  EXPECT_TRUE(resumed.log->take("00009/\xff"));
  EXPECT_FALSE(resumed.log->is_replaying());
  EXPECT_FALSE(resumed.log->take("zzz"));
}

TEST_F(WalkLogTest, ShortWalk_IsWrittenOnlyOnFlush) {
  const Paths paths = many_paths(1000);
  {
    auto small = walk();
    small.add_all(paths);
    EXPECT_TRUE(file_names().empty());
    small.log->flush();
    EXPECT_EQ(file_names().size(), 2U);
  }
  EXPECT_EQ(replayed(paths), paths.size());
}

TEST_F(WalkLogTest, LongWalk_IsWrittenWithoutFlush) {
  const Paths paths = many_paths(1000);
  auto slow = walk();
  clock_.advance(WalkLog::unlogged_max);
  slow.add_all(paths);
  EXPECT_GE(replayed(paths), paths.size() - 63);
}

TEST_F(WalkLogTest, LargeWalk_IsWrittenWithoutFlush) {
  const Paths paths = many_paths(support::is_sanitized ? 20'000 : 100'000);
  walk().add_all(paths);
  EXPECT_GE(replayed(paths), paths.size() - 4096);
}

TEST_F(WalkLogTest, ResumedWalk_IsLoggedImmediately) {
  const Paths paths = many_paths(300);
  write_log({paths.begin(), paths.begin() + 100});
  {
    auto second = walk();
    for (std::size_t at = 0; at < 100; ++at) ASSERT_TRUE(second.log->take(paths[at]));
    second.add_all({paths.begin() + 100, paths.begin() + 200});
  }
  EXPECT_GE(replayed(paths), 164U);
}

TEST_F(WalkLogTest, SeveralLogFiles_AreReadInOrder) {
  const Paths paths = many_paths(150);
  for (std::size_t end : {30U, 60U, 150U}) {
    auto each = walk();
    std::size_t at = 0;
    while (at < end && each.log->take(paths[at])) ++at;
    EXPECT_EQ(at, end == 30 ? 0 : end == 60 ? 30 : 60);
    for (; at < end; ++at) each.log->add(paths[at], read_of(paths[at]));
    each.log->flush();
  }
  EXPECT_EQ(file_names().size(), 4U);
  EXPECT_EQ(replayed(paths), paths.size());
}

TEST_F(WalkLogTest, AddBeforeReplayEnds_IsIgnored) {
  write_log({"b", "d"});
  {
    auto second = walk();
    second.log->add("a", read_of("a"));
    EXPECT_TRUE(second.log->take("b"));
    second.log->add("c", read_of("c"));
    EXPECT_TRUE(second.log->take("d"));
    second.log->add("e", read_of("e"));
    second.log->flush();
  }
  auto third = walk();
  EXPECT_FALSE(third.log->take("a"));
  for (const char* path : {"b", "d", "e"}) EXPECT_TRUE(third.log->take(path)) << path;
}

TEST_F(WalkLogTest, TornTail_LosesOnlyTheLastEntry) {
  const Paths paths = many_paths(20);
  write_log(paths);
  const auto size = std::filesystem::file_size(log_file(0));
  std::size_t before = paths.size();
  for (auto left = size; left > 0; left -= std::min<std::uintmax_t>(left, 7)) {
    std::filesystem::resize_file(log_file(0), left);
    const std::size_t now = replayed(paths);
    EXPECT_LE(now, before);
    EXPECT_GE(now + 1, before) << "a directory takes more than that";
    before = now;
  }
  EXPECT_EQ(before, 0U);
}

TEST_F(WalkLogTest, ZeroTail_EndsTheLog) {
  const Paths paths = many_paths(20);
  write_log(paths);
  const auto size = std::filesystem::file_size(log_file(0));
  std::filesystem::resize_file(log_file(0), size + 5000);
  EXPECT_EQ(replayed(paths), paths.size());
  EXPECT_FALSE(walk().log->take("zzz"));
}

TEST_F(WalkLogTest, DamagedByte_EndsOnlyItsLogFile) {
  const Paths paths = many_paths(24);
  write_log({paths.begin(), paths.begin() + 12});
  {
    auto second = walk();
    for (std::size_t at = 0; at < 12; ++at) ASSERT_TRUE(second.log->take(paths[at]));
    second.add_all({paths.begin() + 12, paths.end()});
    second.log->flush();
  }
  const std::string whole = files_.read(log_file(0), 1U << 20U).value();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    std::ofstream(log_file(0), std::ios::binary) << damaged;
    auto resumed = walk();
    bool is_first_file_over = false;
    for (std::size_t number = 0; number < paths.size(); ++number) {
      auto read = resumed.log->take(paths[number]);
      if (number < 12) {
        EXPECT_FALSE(read && is_first_file_over) << "byte " << at;
        is_first_file_over = is_first_file_over || !read;
      } else {
        EXPECT_TRUE(read) << "byte " << at;
      }
      if (read) expect_same(*read, read_of(paths[number]));
    }
    EXPECT_TRUE(is_first_file_over) << "byte " << at;
  }
}

TEST_F(WalkLogTest, OtherRoot_ReplaysNothing) {
  write_log({"a", "b"});
  const std::vector<WalkLog::Root> others{{"/mnt/b", 2, 3}, {"/mnt/a", 9, 3}, {"/mnt/a", 2, 9}};
  for (const WalkLog::Root& root : others) {
    EXPECT_FALSE(walk({.root = root}).log->is_replaying());
  }
}

TEST_F(WalkLogTest, LogFileOfAnotherScan_ReplaysNothing) {
  write_log({"a", "b"});
  const std::string other = files_.read(log_file(0), 1U << 20U).value();
  std::filesystem::remove_all(directory_);
  write_log({"c"});
  std::ofstream(log_file(0), std::ios::binary) << other;
  auto resumed = walk();
  EXPECT_TRUE(resumed.has_resumed);
  EXPECT_FALSE(resumed.log->is_replaying());
}

TEST_F(WalkLogTest, Drives_HaveSeparateLogs) {
  const Paths paths = many_paths(10);
  {
    auto first = walk();
    WalkLog other(first.unfinished, {"/mnt/b", 6, 7}, clock_);
    first.add_all(paths);
    other.add("elsewhere", read_of("elsewhere"));
    first.log->flush();
    other.flush();
  }
  auto resumed = walk();
  WalkLog other(resumed.unfinished, {"/mnt/b", 6, 7}, clock_);
  EXPECT_TRUE(other.take("elsewhere"));
  for (const std::string& path : paths) EXPECT_TRUE(resumed.log->take(path));
}

TEST_F(WalkLogTest, LongWalk_IsSyncedPeriodically) {
  fakes::MemoryFileSystem memory;
  memory.make_directory("/data");
  LoggedWalk first("/data/unfinished", memory, clock_, {});
  const Paths paths = many_paths(1200);
  clock_.advance(WalkLog::unlogged_max);
  first.add_all({paths.begin(), paths.begin() + 1024});
  const std::size_t calls = memory.calls();
  first.add_all({paths.begin() + 1024, paths.begin() + 1088});
  EXPECT_EQ(memory.calls(), calls + 2) << "a look at the free space, and an append";
  clock_.advance(std::chrono::seconds(31));
  first.add_all({paths.begin() + 1088, paths.begin() + 1152});
  EXPECT_EQ(memory.calls(), calls + 5) << "and a sync";
  EXPECT_FALSE(first.log->failure());
}

TEST_F(WalkLogTest, SpaceRunsOut_EndsTheLog) {
  const Paths paths = many_paths(1400);
  fakes::MemoryFileSystem memory;
  memory.make_directory("/data");
  LoggedWalk first("/data/unfinished", memory, clock_, {});
  clock_.advance(WalkLog::unlogged_max);
  first.add_all({paths.begin(), paths.begin() + 700});
  EXPECT_FALSE(first.log->failure());
  memory.disk_space.free_bytes = 0;
  first.add_all({paths.begin() + 700, paths.end()});
  ASSERT_TRUE(first.log->failure());
  EXPECT_EQ(first.log->failure()->code, std::errc::no_space_on_device);
}

// Whatever can't be written is not there afterwards; nothing else happens.
TEST_F(WalkLogTest, WriteFailure_DisablesTheLog) {
  const Paths paths = many_paths(1400);
  for (std::size_t failing = 1;; ++failing) {
    fakes::MemoryFileSystem memory;
    memory.make_directory("/data");
    LoggedWalk first("/data/unfinished", memory, clock_, {});
    memory.reset_calls();
    memory.fail_call(failing, ENOSPC);
    clock_.advance(WalkLog::unlogged_max);
    first.add_all({paths.begin(), paths.begin() + 1200});
    const bool has_failed = memory.calls() >= failing;
    const std::size_t calls = memory.calls();
    first.add_all({paths.begin() + 1200, paths.end()});
    first.log->flush();
    if (!has_failed) {
      EXPECT_GT(failing, 5U);
      return;
    }
    EXPECT_EQ(memory.calls(), calls) << "it does not try again, call " << failing;
    ASSERT_TRUE(first.log->failure()) << failing;
    EXPECT_EQ(first.log->failure()->code, std::errc::no_space_on_device) << failing;
  }
}

}  // namespace
}  // namespace spoor::scanner
