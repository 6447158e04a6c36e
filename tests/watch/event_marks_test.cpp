#include "watch/event_marks.h"

#include <gtest/gtest.h>
#include <sys/fanotify.h>

#include <map>
#include <string>
#include <vector>

#include "tracker/paths/path.h"

namespace spoor::watch {
namespace {

const std::string long_path(tracker::path_bytes_max - 1, 'x');

// The handle of a directory is its letter here; those of others are gone.
class Paths final : public DirectoryPaths {
 public:
  Paths() : DirectoryPaths(std::size_t{1} << 20U) {}

  base::Result<std::optional<Place>> resolve(const DirectoryHandle& handle) override {
    return look_up(places, handle);
  }
  base::Result<std::optional<Place>> resolve(const EntryName&, const FileHandle& file) override {
    return look_up(files, file);
  }

  std::map<DirectoryHandle, Place> places = {{"t", {""}},
                                             {"a", {"a"}},
                                             {"b", {"a/b"}},
                                             {"s", {".spoor"}},
                                             {"d", {"state/data/journal"}},
                                             {"x", {".spoorx"}},
                                             {"l", {long_path}},
                                             {"m", {"a/b", true}}};
  // That are elsewhere than their event says.
  std::map<FileHandle, Place> files = {{"deep", {"c/d/new"}}, {"top", {"new"}}, {"own", {".spoor/new"}}};

 private:
  static base::Result<std::optional<Place>> look_up(const std::map<std::string, Place>& map,
                                                    const std::string& handle) {
    if (handle == "?") return base::Error(std::make_error_code(std::errc::io_error), "unreadable");
    const auto found = map.find(handle);
    return found == map.end() ? std::optional<Place>() : std::optional(found->second);
  }
};

class EventMarksTest : public testing::Test {
 protected:
  bool add(const KernelEvent& event) { return marks_.add({&event, 1}, paths_).has_value(); }

  // "dir a/b", those of each kind in order.
  static std::vector<std::string> lines(const EventMarks& marks) {
    std::vector<std::string> lines;
    for (const auto& [name, kind] : {std::pair("dir ", MarkKind::dir), std::pair("file ", MarkKind::file),
                                     std::pair("tree ", MarkKind::tree)})
      for (const std::string& path : marks.of(kind)) lines.push_back(name + path);
    return lines;
  }

  Paths paths_;
  EventMarks marks_{{".spoor", "state/data"}};
};

TEST_F(EventMarksTest, Events_AreMarkedByTheirKind) {
  struct Case {
    const char* name;
    std::vector<KernelEvent> events;
    std::vector<std::string> marks;
  };
  const std::vector<Case> cases = {
      {"a change of a file",
       {{FAN_MODIFY, {"b", "file"}, {}},
        {FAN_CLOSE_WRITE, {"b", "file"}, {}},
        {FAN_ATTRIB, {"b", "file"}, {}}},
       {"dir a/b"}},
      {"a file is created, or deleted",
       {{FAN_CREATE, {"a", "f"}, {}}, {FAN_DELETE, {"b", "f"}, {}}},
       {"dir a", "dir a/b"}},
      {"an entry of the top; its own attributes are not part of any total",
       {{FAN_CREATE, {"t", "file"}, {}}, {FAN_ATTRIB | FAN_ONDIR, {"t", "."}, {}}},
       {"file file"}},
      {"a file moves", {{FAN_RENAME, {"t", "old"}, EntryName{"b", "new"}}}, {"dir a/b", "file old"}},
      {"a directory moves",
       {{FAN_RENAME | FAN_ONDIR, {"t", "old"}, EntryName{"b", "new"}}},
       {"dir a/b", "file old", "tree a/b/new"}},
      {"a directory moves in two events",
       {{FAN_MOVED_FROM | FAN_ONDIR, {"a", "old"}, {}}, {FAN_MOVED_TO | FAN_ONDIR, {"b", "new"}, {}}},
       {"dir a", "dir a/b", "tree a/b/new"}},
      {"a directory moves to the drive",
       {{FAN_RENAME | FAN_ONDIR, {"elsewhere", "old"}, EntryName{"a", "new"}}},
       {"dir a", "tree a/new"}},
      {"a new directory may have the inode of another one",
       {{FAN_CREATE | FAN_ONDIR, {"a", "new"}, {}}},
       {"dir a", "dir a/new"}},
      {"attributes of a directory", {{FAN_ATTRIB | FAN_ONDIR, {"a", "old"}, {}}}, {"dir a", "dir a/old"}},
      {"a directory is deleted", {{FAN_DELETE | FAN_ONDIR, {"a", "old"}, {}}}, {"dir a"}},
      {"directories of Spoor",
       {{FAN_MODIFY, {"s", ".tracker.bin"}, {}},
        {FAN_MODIFY, {"d", "1"}, {}},
        {FAN_ATTRIB | FAN_ONDIR, {"t", ".spoor"}, {}},
        {FAN_MODIFY, {"x", "1"}, {}}},
       {"dir .spoorx", "file .spoor"}},
      {"a path that is too long",
       {{FAN_RENAME | FAN_ONDIR, {"a", "x"}, EntryName{"l", "new"}}, {FAN_MODIFY, {"m", "f"}, {}}},
       {"dir a", "dir " + long_path, "tree a/b", "tree " + long_path}},
      {"a directory that is gone: its removal is an event of its parent",
       {{FAN_MODIFY, {"gone", "file"}, {}}},
       {}},
      {"a file under another name",
       {{FAN_MODIFY, {"a", "old"}, {}, "deep"},
        {FAN_ATTRIB, {"gone", "old"}, {}, "top"},
        {FAN_CLOSE_WRITE, {}, {}, "own"}},
       {"dir a", "dir c/d", "file new"}},
      {"a link count of a file in an unknown directory", {{FAN_ATTRIB, {}, {}, "?"}}, {}},
  };
  for (const Case& each : cases) {
    EventMarks marks({".spoor", "state/data"});
    ASSERT_TRUE(marks.add(each.events, paths_)) << each.name;
    EXPECT_EQ(lines(marks), each.marks) << each.name;
  }
}

TEST_F(EventMarksTest, WhatIsNotKnown_Fails) {
  EXPECT_FALSE(add({FAN_Q_OVERFLOW, {}, {}}));
  EXPECT_FALSE(add({FAN_MODIFY | FAN_Q_OVERFLOW, {"a", "file"}, {}}));
  EXPECT_FALSE(add({FAN_MODIFY, {"?", "file"}, {}}));
  EXPECT_FALSE(add({FAN_RENAME | FAN_ONDIR, {"a", "old"}, EntryName{"?", "new"}}));
  // A file without a name, or in an unknown directory, was written to.
  for (const std::uint64_t mask :
       std::initializer_list<std::uint64_t>{FAN_ATTRIB | FAN_MODIFY, FAN_CLOSE_WRITE})
    EXPECT_FALSE(add({mask, {}, {}, "?"}));
  for (const std::uint64_t mask :
       std::initializer_list<std::uint64_t>{FAN_MODIFY, FAN_CLOSE_WRITE, FAN_ATTRIB})
    EXPECT_FALSE(add({mask, {"a", "name"}, {}, "?"}));
}

TEST_F(EventMarksTest, CachedPathsAfterAMove_AreFoundAnew) {
  const KernelEvent change{FAN_MODIFY, {"b", "file"}, {}};
  ASSERT_TRUE(add(change));
  paths_.places["b"] = {"c"};
  ASSERT_TRUE(add(change));
  EXPECT_EQ(lines(marks_), std::vector<std::string>{"dir a/b"}) << "the path is cached";
  ASSERT_TRUE(add({FAN_RENAME | FAN_ONDIR, {"a", "b"}, EntryName{"t", "c"}}));
  ASSERT_TRUE(add(change));
  EXPECT_TRUE(marks_.of(MarkKind::dir).contains("c"));
  for (const std::uint64_t half : std::initializer_list<std::uint64_t>{FAN_MOVED_FROM, FAN_MOVED_TO}) {
    paths_.places["b"] = {"after " + std::to_string(half)};
    ASSERT_TRUE(add({half | FAN_ONDIR, {"a", "b"}, {}}));
    ASSERT_TRUE(add(change));
    EXPECT_TRUE(marks_.of(MarkKind::dir).contains(paths_.places["b"].path));
  }
}

TEST_F(EventMarksTest, Bytes_CountEachMarkOnce) {
  ASSERT_TRUE(add({FAN_MODIFY, {"b", "file"}, {}}));
  const std::size_t bytes = marks_.bytes();
  EXPECT_GT(bytes, std::string("a/b").size());
  ASSERT_TRUE(add({FAN_MODIFY, {"b", "other"}, {}}));
  EXPECT_EQ(marks_.bytes(), bytes);
  marks_.clear();
  EXPECT_EQ(marks_.bytes(), 0U);
  EXPECT_TRUE(marks_.empty());
}

}  // namespace
}  // namespace spoor::watch
