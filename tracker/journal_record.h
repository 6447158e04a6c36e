// What the journal keeps: one record for each mark that said something new, for each advance and for each
// level opened, in the order in which the tracker took them (docs/formats.md, "Journal").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/error.h"
#include "tracker/bloom_filter.h"
#include "tracker/ids.h"
#include "tracker/path.h"

namespace spoor::tracker {

// A place in the stream of a tracker's records: the bytes of all records before it, since the
// instance began. What stands before a position is what a state at that position holds.
using JournalPosition = std::uint64_t;

// No tracker gets there: 2^22 starts, 2^40 apart.
inline constexpr JournalPosition journal_position_max = JournalPosition{1} << 62U;

struct AdvanceRecord {
  CycleId to;
  base::WallTime opened_at;

  friend bool operator==(const AdvanceRecord&, const AdvanceRecord&) = default;
};

// New marks go to a filter of this shape from here on. A mark that adds nothing, be it by a false positive,
// has no record: it is there again only if a replay sets the very bits that were set.
struct LevelRecord {
  BloomShape shape;

  friend bool operator==(const LevelRecord&, const LevelRecord&) = default;
};

using JournalRecord = std::variant<Mark, AdvanceRecord, LevelRecord>;

// How many bytes a record of this mark takes, one of any advance, and one of any level.
std::size_t record_bytes(const Mark& mark);
inline constexpr std::size_t advance_record_bytes = 1 + 8 + 8;
inline constexpr std::size_t level_record_bytes = 1 + 8 + 8;

void append_record(std::string& records, const Mark& mark);
void append_record(std::string& records, const AdvanceRecord& advance);
void append_record(std::string& records, const LevelRecord& level);

// Takes the first record off `records`. Fails with Errc::journal_corrupt, and leaves them as they are,
// where there is no whole one.
base::Result<JournalRecord> take_record(std::string_view& records);

}  // namespace spoor::tracker
