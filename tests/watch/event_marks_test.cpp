#include "watch/event_marks.h"

#include <gmock/gmock.h>
#include <sys/fanotify.h>

#include <map>
#include <string>

#include "tracker/paths/path.h"

namespace spoor::watch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class EventMarksTest : public testing::Test {
 protected:
  base::Result<> add(std::uint64_t mask, EntryName entry, std::optional<EntryName> target = {},
                     FileHandle file = {}) {
    const KernelEvent event{mask, std::move(entry), std::move(target), std::move(file)};
    return marks_.add({&event, 1}, paths_);
  }

  // The handle of a directory is its letter here.
  std::map<DirectoryHandle, Place> places_ = {
      {"t", {""}}, {"a", {"a"}}, {"b", {"a/b"}}, {"s", {".spoor"}}, {"d", {"state/data/journal"}}};
  std::map<FileHandle, std::string> files_;  // that are elsewhere than their event says
  DirectoryPaths paths_{
      [this](const DirectoryHandle& handle) -> base::Result<std::optional<Place>> {
        if (handle == "?") return base::Error(std::make_error_code(std::errc::io_error), "unreadable");
        const auto found = places_.find(handle);
        if (found == places_.end()) return std::optional<Place>();
        return std::optional(found->second);
      },
      [this](const EntryName&, const FileHandle& file) -> base::Result<std::optional<Place>> {
        if (file == "?") return base::Error(std::make_error_code(std::errc::io_error), "unreadable");
        const auto found = files_.find(file);
        if (found == files_.end()) return std::optional<Place>();
        return std::optional(Place{found->second});
      },
      std::size_t{1} << 20U};
  EventMarks marks_{{".spoor", "state/data"}};
};

TEST_F(EventMarksTest, ChangeOfAFile_MarksItsDirectory) {
  ASSERT_TRUE(add(FAN_MODIFY, {"b", "file"}));
  ASSERT_TRUE(add(FAN_CLOSE_WRITE, {"b", "file"}));
  EXPECT_THAT(marks_.directories(), ElementsAre("a/b"));
  EXPECT_THAT(marks_.trees(), IsEmpty());
}

TEST_F(EventMarksTest, EntryOfTheTop_IsAMarkOfTheEntry) {
  ASSERT_TRUE(add(FAN_CREATE, {"t", "file"}));
  ASSERT_TRUE(add(FAN_ATTRIB | FAN_ONDIR, {"t", "."}));
  EXPECT_THAT(marks_.top_entries(), ElementsAre("file"));
  EXPECT_THAT(marks_.directories(), IsEmpty());
}

TEST_F(EventMarksTest, DirectoryMoved_MarksBothParentsAndTheTree) {
  ASSERT_TRUE(add(FAN_RENAME | FAN_ONDIR, {"t", "old"}, EntryName{"b", "new"}));
  EXPECT_THAT(marks_.top_entries(), ElementsAre("old"));
  EXPECT_THAT(marks_.directories(), ElementsAre("a/b"));
  EXPECT_THAT(marks_.trees(), ElementsAre("a/b/new"));
}

TEST_F(EventMarksTest, DirectoryMovedInTwoEvents_MarksTheSame) {
  ASSERT_TRUE(add(FAN_MOVED_FROM | FAN_ONDIR, {"a", "old"}));
  ASSERT_TRUE(add(FAN_MOVED_TO | FAN_ONDIR, {"b", "new"}));
  EXPECT_THAT(marks_.directories(), ElementsAre("a", "a/b"));
  EXPECT_THAT(marks_.trees(), ElementsAre("a/b/new"));
}

TEST_F(EventMarksTest, DirectoryMovedToTheDrive_IsMarkedAsATree) {
  ASSERT_TRUE(add(FAN_RENAME | FAN_ONDIR, {"elsewhere", "old"}, EntryName{"a", "new"}));
  EXPECT_THAT(marks_.trees(), ElementsAre("a/new"));
}

TEST_F(EventMarksTest, CachedPathsAfterAMove_AreFoundAnew) {
  ASSERT_TRUE(add(FAN_MODIFY, {"b", "file"}));
  places_["b"] = {"c"};
  ASSERT_TRUE(add(FAN_MODIFY, {"b", "file"}));
  EXPECT_THAT(marks_.directories(), ElementsAre("a/b")) << "the path is cached";
  ASSERT_TRUE(add(FAN_RENAME | FAN_ONDIR, {"a", "b"}, EntryName{"t", "c"}));
  ASSERT_TRUE(add(FAN_MODIFY, {"b", "file"}));
  EXPECT_THAT(marks_.directories(), ElementsAre("a", "a/b", "c"));
}

TEST_F(EventMarksTest, OwnDirectories_AreNotMarked) {
  ASSERT_TRUE(add(FAN_MODIFY, {"s", ".tracker.bin"}));
  ASSERT_TRUE(add(FAN_MODIFY, {"d", "1"}));
  ASSERT_TRUE(add(FAN_ATTRIB | FAN_ONDIR, {"t", ".spoor"}));
  EXPECT_THAT(marks_.directories(), IsEmpty());
  places_["x"] = {".spoorx"};
  ASSERT_TRUE(add(FAN_MODIFY, {"x", "1"}));
  EXPECT_THAT(marks_.directories(), ElementsAre(".spoorx"));
}

TEST_F(EventMarksTest, PathTooLong_MarksTheTreeOfAnAncestor) {
  places_["l"] = {std::string(tracker::path_bytes_max - 1, 'x')};
  places_["m"] = {"a/b", true};
  ASSERT_TRUE(add(FAN_RENAME | FAN_ONDIR, {"a", "x"}, EntryName{"l", "new"}));
  ASSERT_TRUE(add(FAN_MODIFY, {"m", "f"}));
  EXPECT_THAT(marks_.trees(), ElementsAre("a/b", places_["l"].path));
}

TEST_F(EventMarksTest, DirectoryThatIsGone_NeedsNoMark) {
  ASSERT_TRUE(add(FAN_MODIFY, {"gone", "file"}));
  EXPECT_TRUE(marks_.empty());
}

TEST_F(EventMarksTest, FileInUnknownDirectory_FailsIfItWasWrittenTo) {
  EXPECT_TRUE(add(FAN_ATTRIB, {}, {}, "?")) << "a link count";
  EXPECT_FALSE(add(FAN_ATTRIB | FAN_MODIFY, {}, {}, "?"));
  EXPECT_FALSE(add(FAN_CLOSE_WRITE, {}, {}, "?"));
  EXPECT_FALSE(add(FAN_MODIFY, {"a", "name"}, {}, "?"));
}

TEST_F(EventMarksTest, FileUnderAnotherName_IsMarkedThere) {
  files_ = {{"elsewhere", "c/d/new"}, {"at the top", "new"}, {"own", ".spoor/new"}};
  ASSERT_TRUE(add(FAN_MODIFY, {"a", "old"}, {}, "elsewhere"));
  EXPECT_THAT(marks_.directories(), ElementsAre("a", "c/d"));
  ASSERT_TRUE(add(FAN_ATTRIB, {"gone", "old"}, {}, "at the top"));
  EXPECT_THAT(marks_.top_entries(), ElementsAre("new"));
  ASSERT_TRUE(add(FAN_CLOSE_WRITE, {}, {}, "own"));
  EXPECT_EQ(marks_.size(), 3U);
}

TEST_F(EventMarksTest, NewDirectory_IsMarkedItself) {
  ASSERT_TRUE(add(FAN_CREATE | FAN_ONDIR, {"a", "new"}));
  EXPECT_THAT(marks_.directories(), ElementsAre("a", "a/new"));
}

TEST_F(EventMarksTest, DroppedEventsOrUnknownDirectory_Fail) {
  EXPECT_FALSE(add(FAN_Q_OVERFLOW, {}));
  EXPECT_FALSE(add(FAN_MODIFY, {"?", "file"}));
}

TEST_F(EventMarksTest, Bytes_CountEachMarkOnce) {
  ASSERT_TRUE(add(FAN_MODIFY, {"b", "file"}));
  const std::size_t bytes = marks_.bytes();
  ASSERT_TRUE(add(FAN_MODIFY, {"b", "other"}));
  EXPECT_EQ(marks_.bytes(), bytes);
  marks_.clear();
  EXPECT_EQ(marks_.bytes(), 0U);
}

}  // namespace
}  // namespace spoor::watch
