#include "cli/rsync_lines.h"

#include <gtest/gtest.h>

namespace spoor::cli {
namespace {

using tracker::MarkKind;

void expect_mark(std::string_view line, std::string_view path, MarkKind kind) {
  const auto mark = read_rsync_line(line);
  ASSERT_TRUE(mark) << line;
  EXPECT_EQ(mark->path, path);
  EXPECT_EQ(mark->kind, kind) << line;
}

TEST(RsyncLinesTest, ChangesAndDeletions_AreMarks) {
  expect_mark(">f+++++++++ album/a file", "album/a file", MarkKind::file);
  expect_mark("<f.st...... album/sent", "album/sent", MarkKind::file);
  expect_mark("cd+++++++++ album/", "album/", MarkKind::dir);
  expect_mark(".d..t...... ./", "./", MarkKind::dir);
  expect_mark("cL+++++++++ link", "link", MarkKind::file);
  expect_mark("hf+++++++++ second name", "second name", MarkKind::file);
  expect_mark(".f...p..... rights", "rights", MarkKind::file);
  expect_mark("*deleting   album/f", "album/f", MarkKind::file);
  expect_mark("*deleting   album/sub/", "album/sub/", MarkKind::dir);
  expect_mark(">f+++++++++  deleting x", " deleting x", MarkKind::file);
}

TEST(RsyncLinesTest, Escapes_AreDecodedToBytes) {
  expect_mark(">f+++++++++ Gr\\#303\\#274n", "Gr\303\274n", MarkKind::file);
  expect_mark(">f+++++++++ a\\#012b", "a\nb", MarkKind::file);
  expect_mark(">f+++++++++ \\#134#012", "\\#012", MarkKind::file);
  expect_mark(">f+++++++++ \\#377\\#000", std::string_view("\377\0", 2), MarkKind::file);
  for (const char* name : {"\\", "\\#", "\\#12", "\\#089", "\\#400", "\\n", "#012"}) {
    expect_mark(std::string(">f+++++++++ ") + name, name, MarkKind::file);
  }
}

TEST(RsyncLinesTest, OtherLines_AreIgnored) {
  for (const char* line :
       {"", " ", "album/f", "deleting album/f", "sending incremental file list", "created directory /copy",
        "cannot delete non-empty directory: album", ">f+++++++++", ">f+++++++++ ", ">f+++++++++_name",
        ">x+++++++++ name", "*missing    name"}) {
    EXPECT_FALSE(read_rsync_line(line)) << line;
  }
}

}  // namespace
}  // namespace spoor::cli
