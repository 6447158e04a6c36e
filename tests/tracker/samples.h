// Small trackers, marks and questions, for the tests of tracker/.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_codec.h"
#include "tests/fakes/manual_clock.h"
#include "tests/support/random.h"
#include "tracker/cycles/tracker.h"
#include "tracker/storage/mark_set_codec.h"
#include "tracker/storage/snapshot.h"

namespace spoor::tracker {

// Small, and with next to no false positives, so that "no" can be expected of paths never marked.
inline BloomShape small_shape() { return BloomShape::for_items(200, 1e-9); }

inline Tracker::Options small_options() {
  Tracker::Options options;
  options.levels = LevelSchedule(200, 1e-9);
  return options;
}

inline InstanceId instance_of(std::uint8_t number) {
  InstanceId id;
  id.bytes.fill(number);
  return id;
}

inline Mark dir(std::string path) { return {std::move(path), MarkKind::dir}; }
inline Mark file(std::string path) { return {std::move(path), MarkKind::file}; }
inline Mark tree(std::string path) { return {std::move(path), MarkKind::tree}; }

inline MarkOutcome mark(Tracker& tracker, std::initializer_list<Mark> marks) {
  return tracker.mark(std::vector<Mark>(marks));
}

inline MarkSet trees_of(std::initializer_list<std::string_view> paths) {
  MarkSet marks;
  for (const std::string_view path : paths) marks.add_tree(path);
  return marks;
}

inline bool contains(const MarkSet& marks, std::string_view path) {
  return marks.may_contain(path, hash_path(path));
}

inline MarkSet mark_set_of(std::initializer_list<std::string_view> paths, BloomShape shape = small_shape()) {
  MarkSet marks;
  for (const std::string_view path : paths) marks.add(hash_path(path), shape);
  return marks;
}

// The words of the filter, dense.
inline std::vector<std::uint64_t> bits_of(const BloomFilter& filter) {
  BloomFilter dense(filter.shape());
  dense.merge(filter);
  return {dense.words().begin(), dense.words().end()};
}

inline PathHash random_hash(support::Random& random) {
  return {{random.next(), random.next(), random.next(), random.next()}};
}

inline std::string encoded(const MarkSet& marks) {
  base::ByteWriter out;
  encode_mark_set(out, marks);
  return out.take();
}

inline base::Result<MarkSet> decoded(std::string_view bytes) {
  base::ByteReader in(bytes);
  return decode_mark_set(in);
}

// The same bytes with one of them changed.
inline std::string flipped(std::string bytes, std::size_t at, int bits = 0x10) {
  bytes[at] = static_cast<char>(bytes[at] ^ bits);
  return bytes;
}

// What a scanner without a cursor asks to read everything that is kept.
inline CycleRequest read_all(const Tracker& tracker) {
  const TrackerState state = tracker.state();
  CycleRequest request;
  request.oldest = state.oldest_kept;
  request.instance = state.instance;
  return request;
}

// A state with a bit of everything: two shapes, tree marks, a gap in the numbers of the history.
inline TrackerState varied_state() {
  TrackerState state;
  state.instance = instance_of(7);
  state.complete_since_birth = false;
  state.oldest_kept = {3};
  state.current = {9};
  state.current_opened_at = base::WallTime(std::chrono::seconds(1'700'000'000));
  MarkSet current = mark_set_of({"bucket", "bucket/now"}, {128, 3});
  current.merge(mark_set_of({"foreign"}, {67, 2}));
  current.add_tree("bucket/tree");
  state.current_marks = std::make_shared<const MarkSet>(std::move(current));
  MarkSet three = mark_set_of({"bucket", "bucket/three"}, {128, 3});
  MarkSet seven;
  seven.add_tree("");
  state.history = {{{3}, std::make_shared<const MarkSet>(std::move(three))},
                   {{7}, std::make_shared<const MarkSet>(std::move(seven))}};
  return state;
}

inline Snapshot snapshot_of(TrackerState state, std::uint64_t generation = 1) {
  return {
      {"cluster", "node"}, generation, base::WallTime(std::chrono::seconds(1'700'000'100)), std::move(state)};
}

// Everything a state says, as bytes, to compare by.
inline std::string bytes_of(const TrackerState& state) { return encode_snapshot(snapshot_of(state)); }

// A normalised path of few possible components, so that paths meet; their characters sort around
// the separator.
inline std::string random_path(support::Random& random, std::uint64_t depth_max) {
  static const std::vector<std::string> names{"a", "b", "c", "a-", "a.", "a0", "a b", "\xff\xfe", "a!"};
  std::string path;
  for (std::uint64_t depth = random.between(1, depth_max); depth > 0; --depth)
    path = join_path(path, random.pick(names));
  return path;
}

}  // namespace spoor::tracker
