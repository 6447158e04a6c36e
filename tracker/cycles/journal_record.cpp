#include "tracker/cycles/journal_record.h"

#include <initializer_list>

#include "base/byte_codec.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

// The type of a mark is its kind plus one.
enum class RecordType : std::uint8_t { dir = 1, file = 2, tree = 3, advance = 4, level = 5, adopt = 6 };
static_assert(static_cast<int>(MarkKind::dir) == 0 && static_cast<int>(MarkKind::file) == 1 &&
              static_cast<int>(MarkKind::tree) == 2);

std::uint64_t number_of(base::WallTime time) {
  return static_cast<std::uint64_t>(time.time_since_epoch().count());
}

base::WallTime get_time(base::ByteReader& in) {
  return base::WallTime(std::chrono::nanoseconds(static_cast<std::int64_t>(in.u64())));
}

base::Error corrupt(const char* what) { return {Errc::journal_corrupt, what}; }

base::Result<JournalRecord> decode_mark(base::ByteReader& in, MarkKind kind) {
  const std::string_view path = in.short_string();
  if (!in.ok()) return corrupt("a mark is cut off");
  // Only a tree mark can have the root as its path. No mark can have another path that is not normalised.
  const bool is_root = path.empty() && kind == MarkKind::tree;
  if (!is_root && !is_normalised(path)) return corrupt("a mark of an impossible path");
  return JournalRecord(Mark{std::string(path), kind});
}

base::Result<JournalRecord> decode_advance(base::ByteReader& in) {
  const CycleId to{in.u64()};
  const base::WallTime opened_at = get_time(in);
  if (!in.ok()) return corrupt("an advance is cut off");
  if (to.value < 1 || to.value > CycleId::request_max) return corrupt("an advance to an impossible cycle");
  return JournalRecord(AdvanceRecord{to, opened_at});
}

base::Result<JournalRecord> decode_level(base::ByteReader& in) {
  const std::uint64_t bits = in.u64();
  const std::uint64_t hashes = in.u64();
  if (!in.ok()) return corrupt("a level is cut off");
  const auto shape = BloomShape::checked(bits, hashes);
  if (!shape) return corrupt("a level of an impossible shape");
  return JournalRecord(LevelRecord{*shape});
}

base::Result<JournalRecord> decode_adopt(base::ByteReader& in) {
  const base::WallTime opened_at = get_time(in);
  const std::string_view marks = in.raw(in.u64());
  if (!in.ok()) return corrupt("adopted marks are cut off");
  return JournalRecord(AdoptRecord{opened_at, std::string(marks)});
}

base::Result<JournalRecord> decode_record(base::ByteReader& in) {
  const std::uint8_t type = in.u8();
  switch (static_cast<RecordType>(type)) {
    case RecordType::dir:
    case RecordType::file:
    case RecordType::tree:
      return decode_mark(in, static_cast<MarkKind>(type - 1));
    case RecordType::advance:
      return decode_advance(in);
    case RecordType::level:
      return decode_level(in);
    case RecordType::adopt:
      return decode_adopt(in);
  }
  return corrupt("a record of an unknown type");
}

void append_numbers(std::string& records, RecordType type, std::initializer_list<std::uint64_t> numbers) {
  base::ByteWriter out;
  out.u8(static_cast<std::uint8_t>(type));
  for (const std::uint64_t number : numbers) out.u64(number);
  records += out.bytes();
}

}  // namespace

void append_record(std::string& records, const Mark& mark) {
  // Without ByteWriter, for speed: called for every new mark, under the tracker's lock.
  const auto size = static_cast<std::uint16_t>(mark.path.size());
  const char head[] = {static_cast<char>(static_cast<int>(mark.kind) + 1), static_cast<char>(size & 0xffU),
                       static_cast<char>(size >> 8U)};
  records.append(head, sizeof(head));
  records += mark.path;
}

void append_record(std::string& records, const AdvanceRecord& advance) {
  append_numbers(records, RecordType::advance, {advance.to.value, number_of(advance.opened_at)});
}

void append_record(std::string& records, const LevelRecord& level) {
  append_numbers(records, RecordType::level, {level.shape.bits, level.shape.hashes});
}

void append_record(std::string& records, const AdoptRecord& adopt) {
  append_numbers(records, RecordType::adopt, {number_of(adopt.opened_at), adopt.marks.size()});
  records += adopt.marks;
}

base::Result<JournalRecord> take_record(std::string_view& records) {
  base::ByteReader in(records);
  auto record = decode_record(in);
  if (record) records.remove_prefix(records.size() - in.remaining());
  return record;
}

}  // namespace spoor::tracker
