// A scanned node whose change feed is read as lines.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scanner/feed/change_feed.h"
#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {

class FeedNode : public ScannedNode {
 protected:
  using Lines = std::vector<std::string>;
  using ScannedNode::ScannedNode;

  // "+ path" for new, "~ path" for changed, "- path" for deleted ones; {"gone"} where not kept. With files,
  // directories have a / at the end.
  Lines feed(const FeedRange& range) {
    Lines lines = read(range, UINT64_MAX);
    EXPECT_EQ(read(range, 1), lines) << "in parts";
    return lines;
  }

  // So many entries at once, until the end.
  Lines read(FeedRange range, std::uint64_t part) {
    Lines lines;
    do {
      if (!read_part(range, part, lines)) return {"gone"};
    } while (has_more);
    return lines;
  }

  // Adds the lines of so many entries at most, and moves the range behind them. Whether the range is kept.
  bool read_part(FeedRange& range, std::uint64_t entries_max, Lines& lines) {
    std::uint64_t entries = 0;
    std::optional<FeedEntry> last;
    const auto until = read_changes(*database, range, [&](const FeedEntry& entry) {
      if (entries == entries_max) return false;
      ++entries;
      last = entry;
      const std::string path = entry.path + (range.files && !entry.is_file ? "/" : "");
      if (entry.is_deleted) lines.push_back("- " + path);
      if (entry.is_there) lines.push_back((entry.is_new ? "+ " : "~ ") + path);
      return true;
    });
    EXPECT_TRUE(until) << until.error().message;
    has_more = entries == entries_max;
    if (has_more) range.go_on_behind(*last);
    return until && *until;
  }

  bool has_more = false;  // after read_part()
};

}  // namespace spoor::scanner
