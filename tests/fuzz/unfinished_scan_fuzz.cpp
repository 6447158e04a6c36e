// What is stored of an unfinished scan: its input behind the options, or how far it came.
#include <algorithm>
#include <string>

#include "base/byte_codec.h"
#include "scanner/walk/unfinished_scan.h"
#include "tests/fuzz/fuzz_support.h"
#include "tracker/storage/mark_set_codec.h"

namespace spoor::scanner {
namespace {

using fuzz::require;

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
  const auto found = [&] {
    const fuzz::MemoryBound bound(bytes.size());
    return decode_unfinished_input(before + std::string(bytes), options);
  }();
  if (!found) return;
  const auto again = decode_unfinished_input(encode_unfinished_input(options, *found, found->marks), options);
  require(again && are_same(*again, *found), "what was found survives the next kill");
}

void check_progress(std::string_view bytes) {
  const auto found = [&] {
    const fuzz::MemoryBound bound(bytes.size());
    return UnfinishedScan::decode(bytes);
  }();
  if (!found) return;
  require(UnfinishedScan::decode(found->encode()) == found, "what was found survives the next kill");
}

}  // namespace
}  // namespace spoor::scanner

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = spoor::fuzz::text_of(data, size);
  spoor::scanner::check_input(bytes);
  spoor::scanner::check_progress(bytes);
  return 0;
}
