// MinIO's snapshots, version 7: no checksum stands in the way.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "tests/fuzz/fuzz_support.h"
#include "tests/tracker/minio_samples.h"
#include "tracker/errors.h"
#include "tracker/storage/minio_snapshot.h"

namespace spoor::tracker {
namespace {

using fuzz::require;

// As MinIO would write what was read: the history in any order, here in one that is always the same.
std::string encode(const MinioSnapshot& snapshot) {
  const auto saved_at =
      std::chrono::duration_cast<std::chrono::seconds>(snapshot.saved_at.time_since_epoch());
  std::string bytes = minio_header(static_cast<std::uint64_t>(saved_at.count()), snapshot.current.value);
  bytes += minio_bytes_of(snapshot.cycles.back().filter);
  put_little(bytes, snapshot.cycles.size() - 1);
  std::multiset<std::string> history;
  for (std::size_t at = 0; at + 1 < snapshot.cycles.size(); ++at) {
    std::string cycle;
    put_little(cycle, snapshot.cycles[at].id.value);
    cycle += minio_bytes_of(snapshot.cycles[at].filter);
    history.insert(std::move(cycle));
  }
  for (const std::string& cycle : history) bytes += cycle;
  return bytes;
}

void check_cycles(const MinioSnapshot& snapshot) {
  require(!snapshot.cycles.empty() && snapshot.cycles.back().id == snapshot.current,
          "the current cycle stands last");
  require(std::is_sorted(snapshot.cycles.begin(), snapshot.cycles.end() - 1,
                         [](const MinioCycle& a, const MinioCycle& b) { return a.id < b.id; }),
          "the history stands oldest first");
  for (const MinioCycle& cycle : snapshot.cycles) {
    const BloomShape shape = cycle.filter.shape();
    require(BloomShape::checked(shape.bits, shape.hashes).has_value(), "a filter is one that can be");
    require(cycle.filter.words().size() == shape.word_count(), "a filter has all its words");
    require(cycle.filter.bits_set() <= shape.bits, "no bit stands beyond the last");
  }
}

void check_snapshot(std::string_view bytes) {
  const auto snapshot = [&] {
    const fuzz::MemoryBound bound(bytes.size());
    return decode_minio_snapshot(bytes);
  }();
  if (!snapshot) {
    const bool is_other_version = !bytes.empty() && bytes[0] != char{minio_snapshot_version};
    require(snapshot.error().code == (is_other_version ? Errc::snapshot_unknown : Errc::snapshot_corrupt),
            "another version is unknown, anything else that is refused is corrupt");
    return;
  }
  check_cycles(*snapshot);
  const std::string encoded = encode(*snapshot);
  require(encoded.size() <= bytes.size(), "nothing is made up");
  const auto again = decode_minio_snapshot(encoded);
  require(again && encode(*again) == encoded, "what was read is all that there is");
  // What stands behind the end is ignored; what stands before it is not.
  require(decode_minio_snapshot(bytes.substr(0, encoded.size())).has_value(), "the bytes behind are free");
  require(!decode_minio_snapshot(bytes.substr(0, encoded.size() - 1)), "a file that is cut off is refused");
}

}  // namespace
}  // namespace spoor::tracker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spoor::tracker::check_snapshot(spoor::fuzz::text_of(data, size));
  return 0;
}
