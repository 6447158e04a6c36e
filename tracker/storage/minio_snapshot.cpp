#include "tracker/storage/minio_snapshot.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/byte_codec.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

base::Error corrupt(std::string_view what) {
  return {Errc::snapshot_corrupt, fmt::format("corrupt: {}", what)};
}

base::Result<BloomFilter> decode_bloom(base::ByteReader& in) {
  const std::uint64_t bits = in.u64_big();
  const std::uint64_t hashes = in.u64_big();
  const std::uint64_t length = in.u64_big();
  if (!in.ok()) return corrupt("cut off in a filter");
  const auto shape = BloomShape::checked(bits, hashes);
  if (!shape) return corrupt(shape.error().message);
  if (length != bits) return corrupt("a filter whose two lengths differ");
  if (shape->byte_count() > in.remaining()) return corrupt("a filter longer than what is left");
  std::vector<std::uint64_t> words(shape->word_count());
  for (std::uint64_t& word : words) word = in.u64_big();
  return BloomFilter(*shape, std::move(words));
}

base::Result<> decode_history(base::ByteReader& in, MinioSnapshot& snapshot) {
  const std::uint64_t count = in.u64();
  for (std::uint64_t i = 0; i < count; ++i) {
    const CycleId id{in.u64()};
    auto filter = decode_bloom(in);  // fails at the end of the bytes, whatever `count` is
    if (!filter) return filter.error();
    snapshot.cycles.push_back({id, *std::move(filter)});
  }
  if (!in.ok()) return corrupt("cut off in the history");
  return {};
}

}  // namespace

base::Result<MinioSnapshot> decode_minio_snapshot(std::string_view bytes) {
  base::ByteReader in(bytes);
  const std::uint8_t version = in.u8();
  if (!in.ok()) return corrupt("the file is empty");
  if (version != minio_snapshot_version) {
    return base::Error(Errc::snapshot_unknown,
                       fmt::format("format version {} is not MinIO's version 7", version));
  }
  const std::uint64_t saved_s = in.u64();
  if (saved_s > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 1'000'000'000) {
    return corrupt("an impossible time");
  }
  MinioSnapshot snapshot;
  snapshot.saved_at = base::WallTime(std::chrono::seconds(saved_s));
  snapshot.current = {in.u64()};
  auto current = decode_bloom(in);
  if (!current) return current.error();
  if (auto done = decode_history(in, snapshot); !done) return done.error();
  std::sort(snapshot.cycles.begin(), snapshot.cycles.end(),
            [](const MinioCycle& a, const MinioCycle& b) { return a.id < b.id; });
  snapshot.cycles.push_back({snapshot.current, *std::move(current)});
  return snapshot;
}

std::string_view minio_key(std::string_view path) {
  constexpr std::string_view suffix = "__XLDIR__";
  if (path.ends_with(suffix)) path.remove_suffix(suffix.size());
  return path;
}

}  // namespace spoor::tracker
