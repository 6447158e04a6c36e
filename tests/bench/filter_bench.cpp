// Level 0 beside the filters of LevelDB and RocksDB, all holding the same keys in about as many bits.
#include <benchmark/benchmark.h>
#include <fmt/core.h>
#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/rocksdb_filter_bits.h"
#include "tracker/filter/bloom_filter.h"
#include "tracker/filter/hash.h"

namespace {

using namespace spoor;

constexpr std::size_t items = 200'000;
constexpr std::size_t key_bytes = 46;
constexpr int bits_per_key = 5;  // 4.79 of ours

// Keys like the paths of objects, side by side in memory.
class Keys {
 public:
  explicit Keys(std::string_view bucket) {
    for (std::size_t i = 0; i < items; ++i) {
      bytes_ += fmt::format("{}/photos/2026-{:02}/album-{:05}/o-{:07}", bucket, i % 12, i / 7, i);
    }
    if (bytes_.size() != items * key_bytes) throw std::logic_error("keys of another length");
  }

  std::string_view operator[](std::size_t at) const { return {bytes_.data() + at * key_bytes, key_bytes}; }

 private:
  std::string bytes_;
};

const Keys& held() {
  static const Keys keys("bucket-01");
  return keys;
}

const Keys& others() {
  static const Keys keys("bucket-02");
  return keys;
}

template <class Slice>
const std::vector<Slice>& held_slices() {
  static const auto slices = [] {
    std::vector<Slice> all;
    for (std::size_t i = 0; i < items; ++i) all.emplace_back(held()[i].data(), key_bytes);
    return all;
  }();
  return slices;
}

// Each holds the keys from its construction on.
class Spoor {
 public:
  Spoor() {
    for (std::size_t i = 0; i < items; ++i) add(held()[i]);
  }

  bool add(std::string_view key) { return filter_.add(tracker::hash_path(key)); }
  bool may_contain(std::string_view key) const { return filter_.may_contain(tracker::hash_path(key)); }

 private:
  tracker::BloomFilter filter_{tracker::BloomShape::for_items(items, 0.1)};
};

class LevelDb {
 public:
  LevelDb() {
    policy_->CreateFilter(held_slices<leveldb::Slice>().data(), static_cast<int>(items), &filter_);
  }

  bool may_contain(std::string_view key) const {
    return policy_->KeyMayMatch({key.data(), key.size()}, filter_);
  }

 private:
  std::unique_ptr<const leveldb::FilterPolicy> policy_{leveldb::NewBloomFilterPolicy(bits_per_key)};
  std::string filter_;
};

class RocksDb {
 public:
  RocksDb() {
    const rocksdb::BlockBasedTableOptions options;
    const std::unique_ptr<rocksdb::FilterBitsBuilder> builder(
        policy_->GetBuilderWithContext(rocksdb::FilterBuildingContext(options)));
    for (const rocksdb::Slice& key : held_slices<rocksdb::Slice>()) builder->AddKey(key);
    const rocksdb::Slice filter = builder->Finish(&buffer_);
    reader_.reset(policy_->GetFilterBitsReader(filter));
  }

  bool may_contain(std::string_view key) const { return reader_->MayMatch({key.data(), key.size()}); }

 private:
  std::unique_ptr<const rocksdb::FilterPolicy> policy_{rocksdb::NewBloomFilterPolicy(bits_per_key)};
  std::unique_ptr<const char[]> buffer_;
  std::unique_ptr<rocksdb::FilterBitsReader> reader_;
};

template <class Filter>
double share_found(const Filter& filter, const Keys& keys) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < items; ++i) {
    if (filter.may_contain(keys[i])) ++found;
  }
  return static_cast<double>(found) / static_cast<double>(items);
}

// A key counts as an iteration.
template <class Filter>
void filter_build(benchmark::State& state) {
  held_slices<leveldb::Slice>();
  held_slices<rocksdb::Slice>();
  while (state.KeepRunningBatch(items)) benchmark::DoNotOptimize(Filter());
}

void filter_add_known(benchmark::State& state) {
  Spoor filter;
  std::size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(filter.add(held()[at]));
    if (++at == items) at = 0;
  }
}

template <class Filter>
void ask(benchmark::State& state, const Filter& filter, const Keys& keys) {
  std::size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(filter.may_contain(keys[at]));
    if (++at == items) at = 0;
  }
}

template <class Filter>
void filter_hit(benchmark::State& state) {
  static const Filter filter;
  static const double found = share_found(filter, held());
  if (found < 1) state.SkipWithError("a key that was added is not found");
  ask(state, filter, held());
}

template <class Filter>
void filter_miss(benchmark::State& state) {
  static const Filter filter;
  static const double found = share_found(filter, others());
  ask(state, filter, others());
  state.counters["fp_rate"] = found;
}

BENCHMARK(filter_build<Spoor>);
BENCHMARK(filter_build<LevelDb>);
BENCHMARK(filter_build<RocksDb>);
BENCHMARK(filter_add_known);
BENCHMARK(filter_hit<Spoor>);
BENCHMARK(filter_hit<LevelDb>);
BENCHMARK(filter_hit<RocksDb>);
BENCHMARK(filter_miss<Spoor>);
BENCHMARK(filter_miss<LevelDb>);
BENCHMARK(filter_miss<RocksDb>);

}  // namespace
