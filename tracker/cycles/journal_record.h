// The records of the journal: one for each mark that added something, for each advance, for each level opened
// and for marks adopted, in the order in which the tracker applied them (docs/formats.md, "Journal").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/error.h"
#include "tracker/cycles/ids.h"
#include "tracker/filter/bloom_filter.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {

// A byte offset in the stream of a tracker's records, counted since the instance began. A state at a position
// holds all records before it.
using JournalPosition = std::uint64_t;

// No tracker reaches it: 2^22 starts, 2^40 apart.
inline constexpr JournalPosition journal_position_max = JournalPosition{1} << 62U;

struct AdvanceRecord {
  CycleId to;
  base::WallTime opened_at;

  friend bool operator==(const AdvanceRecord&, const AdvanceRecord&) = default;
};

// New marks go to a filter of this shape from here on. A mark that adds nothing, also by a false positive,
// has no record: a replay restores it only if it sets exactly the same bits.
struct LevelRecord {
  BloomShape shape;

  friend bool operator==(const LevelRecord&, const LevelRecord&) = default;
};

// Tracker::adopt().
struct AdoptRecord {
  base::WallTime opened_at;  // the cycle that is current then
  std::string marks;         // as encode_mark_set() writes them

  friend bool operator==(const AdoptRecord&, const AdoptRecord&) = default;
};

using JournalRecord = std::variant<Mark, AdvanceRecord, LevelRecord, AdoptRecord>;

// The size of the record.
inline std::size_t record_bytes(const Mark& mark) { return 1 + 2 + mark.path.size(); }
inline std::size_t record_bytes(const AdvanceRecord& /*advance*/) { return 1 + 8 + 8; }
inline std::size_t record_bytes(const LevelRecord& /*level*/) { return 1 + 8 + 8; }
inline std::size_t record_bytes(const AdoptRecord& adopt) { return 1 + 8 + 8 + adopt.marks.size(); }

void append_record(std::string& records, const Mark& mark);
void append_record(std::string& records, const AdvanceRecord& advance);
void append_record(std::string& records, const LevelRecord& level);
void append_record(std::string& records, const AdoptRecord& adopt);

// Removes the first record from `records` and returns it. On Errc::journal_corrupt (no complete, valid
// record) `records` is unchanged.
base::Result<JournalRecord> take_record(std::string_view& records);

}  // namespace spoor::tracker
