#include "scanner/walk/unfinished_scan.h"

#include <array>
#include <utility>

#include "base/byte_codec.h"
#include "tracker/storage/mark_set_codec.h"

namespace spoor::scanner {
namespace {

constexpr std::uint8_t input_version = 1;
constexpr std::uint8_t version = 1;

// Where these differ, what was walked may have to be walked again.
void put_options(base::ByteWriter& out, const ScanOptions& options) {
  out.text(options.rules.fingerprint());
  out.u64(options.drives.size());
  for (const Drive& drive : options.drives) {
    out.text(drive.path.native());
    out.text(drive.gap);
    out.u8(drive.gap_reason.empty() ? 0 : 1);
  }
  out.u8(options.file_feed ? 1 : 0);
  out.number(options.owners_depth ? std::uint64_t{*options.owners_depth} + 1 : 0);
  out.text(options.own_marks_of);
}

void put_input(base::ByteWriter& out, const ScanInput& input, const tracker::MarkSet& marks) {
  tracker::encode_peer_book(out, input.book);
  out.u64(input.start_level);
  out.u64(static_cast<std::uint64_t>(input.started_at.time_since_epoch().count()));
  out.u64(input.cycle.value);
  out.u8(input.partial ? 1 : 0);
  out.text(input.everything);
  tracker::encode_mark_groups(out, marks);
}

std::optional<ScanInput> get_input(base::ByteReader& in) {
  ScanInput input;
  input.book = tracker::decode_peer_book(in);
  input.start_level = in.u64();
  input.started_at = base::WallTime(std::chrono::nanoseconds(static_cast<std::int64_t>(in.u64())));
  input.cycle = {in.u64()};
  input.partial = in.u8() != 0;
  input.everything = in.text();
  auto marks = tracker::decode_mark_groups(in);
  if (!marks || !in.ok() || in.remaining() != 0) return std::nullopt;
  input.marks = *std::move(marks);
  input.marks.unpack();
  input.is_resumed = true;
  return input;
}

auto counters(auto& figures) {
  return std::array{&figures.dirs_walked,  &figures.dirs_skipped, &figures.dirs_changed, &figures.dirs_new,
                    &figures.dirs_deleted, &figures.audited,      &figures.missed};
}

}  // namespace

std::string encode_unfinished_input(const ScanOptions& options, const ScanInput& input,
                                    const tracker::MarkSet& marks) {
  base::ByteWriter out;
  out.u8(input_version);
  put_options(out, options);
  put_input(out, input, marks);
  return out.take();
}

std::optional<ScanInput> decode_unfinished_input(std::string_view bytes, const ScanOptions& options) {
  base::ByteWriter expected;
  expected.u8(input_version);
  put_options(expected, options);
  if (!bytes.starts_with(expected.bytes())) return std::nullopt;
  base::ByteReader in(bytes.substr(expected.bytes().size()));
  return get_input(in);
}

std::string UnfinishedScan::encode() const {
  base::ByteWriter out;
  out.u8(version);
  out.text(reason);
  out.u8(resets_feed ? 1 : 0);
  for (const std::uint64_t* const counter : counters(figures)) out.number(*counter);
  out.number(missed_paths.size());
  for (const std::string& path : missed_paths) out.text(path);
  out.number(places.size());
  for (const auto& [drive, place] : places) {
    out.number(static_cast<std::uint64_t>(drive));
    out.u8(place ? 1 : 0);
    if (place) out.text(*place);
  }
  return out.take();
}

std::optional<UnfinishedScan> UnfinishedScan::decode(std::string_view bytes) {
  base::ByteReader in(bytes);
  if (in.u8() != version) return std::nullopt;
  UnfinishedScan scan;
  scan.reason = in.text();
  scan.resets_feed = in.u8() != 0;
  for (std::uint64_t* const counter : counters(scan.figures)) *counter = in.number();
  for (std::uint64_t count = in.number(); count > 0 && in.ok(); --count)
    scan.missed_paths.emplace_back(in.text());
  for (std::uint64_t count = in.number(); count > 0 && in.ok(); --count) {
    const auto drive = static_cast<std::int64_t>(in.number());
    std::optional<std::string>& place = scan.places[drive];
    if (in.u8() != 0) place = in.text();
  }
  if (!in.ok() || in.remaining() != 0) return std::nullopt;
  return scan;
}

}  // namespace spoor::scanner
