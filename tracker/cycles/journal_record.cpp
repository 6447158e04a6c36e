#include "tracker/cycles/journal_record.h"

#include "base/byte_codec.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

enum class RecordType : std::uint8_t { dir = 1, file = 2, tree = 3, advance = 4, level = 5, adopt = 6 };

RecordType type_of(MarkKind kind) {
  switch (kind) {
    case MarkKind::file:
      return RecordType::file;
    case MarkKind::tree:
      return RecordType::tree;
    case MarkKind::dir:
      break;
  }
  return RecordType::dir;
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
  const base::WallTime opened_at(std::chrono::nanoseconds(static_cast<std::int64_t>(in.u64())));
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
  const base::WallTime opened_at(std::chrono::nanoseconds(static_cast<std::int64_t>(in.u64())));
  const std::string_view marks = in.raw(in.u64());
  if (!in.ok()) return corrupt("adopted marks are cut off");
  return JournalRecord(AdoptRecord{opened_at, std::string(marks)});
}

base::Result<JournalRecord> decode_record(base::ByteReader& in) {
  switch (static_cast<RecordType>(in.u8())) {
    case RecordType::dir:
      return decode_mark(in, MarkKind::dir);
    case RecordType::file:
      return decode_mark(in, MarkKind::file);
    case RecordType::tree:
      return decode_mark(in, MarkKind::tree);
    case RecordType::advance:
      return decode_advance(in);
    case RecordType::level:
      return decode_level(in);
    case RecordType::adopt:
      return decode_adopt(in);
  }
  return corrupt("a record of an unknown type");
}

}  // namespace

void append_record(std::string& records, const Mark& mark) {
  // Without ByteWriter, for speed: called for every new mark, under the tracker's lock.
  const auto size = static_cast<std::uint16_t>(mark.path.size());
  const char head[] = {static_cast<char>(type_of(mark.kind)), static_cast<char>(size & 0xffU),
                       static_cast<char>(size >> 8U)};
  records.append(head, sizeof(head));
  records += mark.path;
}

void append_record(std::string& records, const AdvanceRecord& advance) {
  base::ByteWriter out;
  out.u8(static_cast<std::uint8_t>(RecordType::advance));
  out.u64(advance.to.value);
  out.u64(static_cast<std::uint64_t>(advance.opened_at.time_since_epoch().count()));
  records += out.bytes();
}

void append_record(std::string& records, const LevelRecord& level) {
  base::ByteWriter out;
  out.u8(static_cast<std::uint8_t>(RecordType::level));
  out.u64(level.shape.bits);
  out.u64(level.shape.hashes);
  records += out.bytes();
}

void append_record(std::string& records, const AdoptRecord& adopt) {
  base::ByteWriter out;
  out.u8(static_cast<std::uint8_t>(RecordType::adopt));
  out.u64(static_cast<std::uint64_t>(adopt.opened_at.time_since_epoch().count()));
  out.u64(adopt.marks.size());
  records += out.bytes();
  records += adopt.marks;
}

base::Result<JournalRecord> take_record(std::string_view& records) {
  base::ByteReader in(records);
  auto record = decode_record(in);
  if (record) records.remove_prefix(records.size() - in.remaining());
  return record;
}

}  // namespace spoor::tracker
