// What is stored in scan.db, as it may be after damage: the bytes as each of the blobs, and as a setting.
#include <algorithm>
#include <ranges>
#include <string>

#include "scanner/history/history_point.h"
#include "scanner/store/directory_names.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/file_store.h"
#include "scanner/store/owner_sums.h"
#include "scanner/walk/unfinished_scan.h"
#include "tests/fuzz/fuzz_support.h"
#include "tracker/storage/mark_set_codec.h"

namespace spoor::scanner {
namespace {

using fuzz::require;

// Calls decode(bytes) within the memory that they may take.
template <class Decode>
auto within_bound(std::string_view bytes, Decode decode) {
  const fuzz::MemoryBound bound(bytes.size());
  return decode(bytes);
}

// --- the tree ---

void check_names(std::string_view bytes) {
  NameChunkReader reader(bytes);
  NameChunkWriter writer;
  std::string last;
  for (bool is_first = true; reader.next(); is_first = false) {
    require(is_first || last < reader.name(), "names are in order");
    last = reader.name();
    writer.add(last, reader.directory());
  }
  if (!reader.ok()) return;
  const std::string again = writer.take();
  NameChunkReader one(bytes);
  NameChunkReader other(again);
  while (one.next()) {
    require(other.next() && one.name() == other.name() && one.directory() == other.directory(),
            "names that were read can be written again");
  }
  require(!other.next() && other.ok(), "with no more names");
}

void check_row(std::string_view bytes) {
  DirectoryRow row;
  if (!decode_row(bytes, row)) return;
  DirectoryRow again;
  require(decode_row(encode_row(row), again) && row == again, "a row that was read can be written again");
}

void check_files(std::string_view bytes) {
  FileChunkReader reader(bytes);
  FileChunkWriter writer;
  std::string last;
  while (const auto file = reader.next()) {
    require(last < file->name, "files are in order");
    last = file->name;
    writer.add(*file);
  }
  if (!reader.ok()) return;
  const std::string again = writer.take();
  FileChunkReader one(bytes);
  FileChunkReader other(again);
  while (const auto file = one.next()) {
    const auto same = other.next();
    require(same && same->name == file->name && same->signature == file->signature,
            "files that were read can be written again");
  }
  require(!other.next() && other.ok(), "with no more files");
}

// --- owners and the history ---

void check_owners(std::string_view bytes) {
  const Totals own{.files = 3, .bytes = 4096, .allocated = 8192};
  const auto owners = within_bound(bytes, [&](std::string_view from) { return decode_owners(from, own); });
  if (owners) {
    const auto again = decode_owners(encode_owners(*owners), own);
    require(again && std::ranges::equal(*again | std::views::keys, *owners | std::views::keys),
            "owners can be written again");
    // The totals of a single one are those of the directory, whatever is stored.
    require(owners->size() == 1 || again == owners, "with their totals");
  }
  const auto kept = parse_owners_setting(bytes);
  if (!kept) return;
  const auto again = parse_owners_setting(owners_setting(*kept));
  require(again && again->depth == kept->depth && again->scan == kept->scan, "so can their setting");
}

bool are_in_order(const HistoryPoints& points) {
  return std::ranges::adjacent_find(points, std::greater_equal(), &HistoryPoint::at) == points.end();
}

void check_points(std::string_view bytes) {
  const auto points = within_bound(bytes, decode_points);
  const auto newest = decode_newest(bytes);
  if (!points) return;
  require(are_in_order(*points), "the times of points increase");
  require(decode_points(encode_points(*points)) == points, "points can be written again");
  require(points->empty() ? !newest : newest == points->back(), "the newest one is the last");
  HistoryPoints thinned = *points;
  thin_out(thinned);
  require(are_in_order(thinned) && thinned.empty() == points->empty(), "some points remain, in order");
  if (points->empty()) return;
  require(thinned.back().at == points->back().at && thinned.back().figures == points->back().figures,
          "the newest point remains");
  const std::int64_t middle = (*points)[points->size() / 2].at;
  growth_since(*points, middle, points->front().at, HistoryFigures{});
  growth_since(*points, middle, middle, std::nullopt);
  thin_out_to(thinned, 1);
  require(thinned.size() == 1 && thinned.back().at == points->back().at, "thinned out to the newest one");
}

// --- the unfinished scan ---

std::string encoded(const tracker::MarkSet& marks) {
  base::ByteWriter out;
  tracker::encode_mark_set(out, marks);
  return out.take();
}

bool are_same(const ScanInput& one, const ScanInput& other) {
  return encoded(one.marks) == encoded(other.marks) && one.book == other.book &&
         one.start_level == other.start_level && one.started_at == other.started_at &&
         one.cycle == other.cycle && one.partial == other.partial && one.everything == other.everything;
}

// The options come before the input: inputs that differ in their first byte have that in common.
std::string options_of(const ScanOptions& options) {
  const ScanInput empty;
  ScanInput other;
  other.book[{"peer", {}}] = {};
  const std::string one = encode_unfinished_input(options, empty, empty.marks);
  const std::string two = encode_unfinished_input(options, other, other.marks);
  return {one.begin(), std::ranges::mismatch(one, two).in1};
}

void check_input(std::string_view bytes) {
  const ScanOptions options{.drives = {}, .rules = {}};
  static const std::string before = options_of(options);
  const auto decode = [&](std::string_view from) { return decode_unfinished_input(from, options); };
  const auto found = within_bound(before + std::string(bytes), decode);
  if (!found) return;
  const auto again = decode(encode_unfinished_input(options, *found, found->marks));
  require(again && are_same(*again, *found), "the input survives the next kill");
}

void check_progress(std::string_view bytes) {
  const auto found = within_bound(bytes, UnfinishedScan::decode);
  if (found) require(UnfinishedScan::decode(found->encode()) == found, "the place survives the next kill");
}

}  // namespace
}  // namespace spoor::scanner

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace spoor::scanner;
  for (const auto check :
       {check_names, check_row, check_files, check_owners, check_points, check_input, check_progress}) {
    check(spoor::fuzz::text_of(data, size));
  }
  return 0;
}
