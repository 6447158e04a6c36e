// Spoor against what MinIO's own code wrote and answered (tests/golden/README.md).

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/golden/golden.h"
#include "tests/tracker/minio_samples.h"
#include "tests/tracker/samples.h"
#include "tracker/storage/minio_snapshot.h"

namespace spoor::tracker {
namespace {

using nlohmann::json;

constexpr BloomShape default_shape{958506, 4};

struct Vector {
  std::size_t length = 0;
  std::string key;
  PathHash hash;
  std::vector<std::uint64_t> positions;
};

std::vector<Vector> read_vectors() {
  std::vector<Vector> vectors;
  std::istringstream lines(golden::golden_file("vectors.tsv"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream columns(line);
    std::string length, quoted, words, positions;
    for (std::string* column : {&length, &quoted, &words, &positions}) std::getline(columns, *column, '\t');
    Vector vector;
    vector.length = std::stoul(length);
    vector.key = quoted.substr(1, quoted.size() - 2);  // none has an escape
    std::istringstream hex(words);
    for (std::uint64_t& word : vector.hash.words) hex >> std::hex >> word;
    std::istringstream numbers(positions);
    for (std::uint64_t position = 0; numbers >> position;) vector.positions.push_back(position);
    vectors.push_back(std::move(vector));
  }
  return vectors;
}

TEST(MinioGoldenTest, GoldenVectors_HaveTheHashWordsAndSetExactlyTheirFourBits) {
  const auto vectors = read_vectors();
  ASSERT_EQ(vectors.size(), 51U);
  for (const Vector& vector : vectors) {
    ASSERT_EQ(vector.key.size(), vector.length) << vector.key;
    ASSERT_EQ(vector.positions.size(), 4U) << vector.key;
    EXPECT_EQ(hash_path(vector.key), vector.hash) << vector.key;
    std::vector<std::uint64_t> expected(default_shape.word_count());
    for (const std::uint64_t bit : vector.positions) expected[bit / 64] |= std::uint64_t{1} << (bit % 64);
    BloomFilter filter(default_shape);
    filter.add(hash_path(vector.key));
    EXPECT_EQ(bits_of(filter), expected) << vector.key;
  }
}

TEST(MinioGoldenTest, FilterOfGoldenItems_MatchesMinioBytes) {
  const json items = json::parse(golden::golden_file("items.json"));
  BloomFilter filter({items.at("m").get<std::uint64_t>(), items.at("k").get<std::uint64_t>()});
  for (const json& item : items.at("items")) filter.add(hash_path(item.get<std::string>()));
  EXPECT_EQ(filter.bits_set(), items.at("bits_set").get<std::uint64_t>());
  EXPECT_TRUE(minio_bytes_of(filter) == golden::golden_file("items.bloom"));
}

TEST(MinioGoldenTest, MinioFilterFromDisk_IsDecodedExactly) {
  const std::string bytes = golden::golden_file("items.bloom");
  // As the current cycle of a snapshot without history.
  const std::string zeros(8, '\0');
  const auto snapshot = decode_minio_snapshot(char{minio_snapshot_version} + zeros + zeros + bytes + zeros);
  ASSERT_TRUE(snapshot);
  const BloomFilter& filter = snapshot->cycles.back().filter;
  EXPECT_EQ(filter.shape(), default_shape);
  EXPECT_TRUE(minio_bytes_of(filter) == bytes);
}

class MinioSnapshotGoldenTest : public ::testing::Test {
 protected:
  // The key of a raw path in MinIO's filters.
  static PathHash key(const std::string& raw) { return hash_path(minio_key(normalise_path(raw).value())); }

  const MinioSnapshot snapshot_ = decode_minio_snapshot(golden::golden_file("tracker.v7.bin")).value();
  const json golden_ = json::parse(golden::golden_file("tracker.v7.json"));
};

TEST_F(MinioSnapshotGoldenTest, Cycles_AreReadInOrderWithTheirFilters) {
  EXPECT_EQ(snapshot_.saved_at, base::WallTime(std::chrono::seconds(1'677'169'754)));
  EXPECT_EQ(snapshot_.current, CycleId{20});
  ASSERT_EQ(snapshot_.cycles.size(), 16U);
  ASSERT_EQ(golden_.at("cycles").size(), 16U);
  for (std::size_t at = 0; at < snapshot_.cycles.size(); ++at) {
    const json& cycle = golden_["cycles"][at];
    const BloomFilter& filter = snapshot_.cycles[at].filter;
    EXPECT_EQ(snapshot_.cycles[at].id.value, 5 + at);
    ASSERT_EQ(cycle.at("idx").get<std::uint64_t>(), 5 + at);
    EXPECT_EQ(filter.shape(),
              (BloomShape{cycle.at("m").get<std::uint64_t>(), cycle.at("k").get<std::uint64_t>()}));
    EXPECT_EQ(filter.bits_set(), cycle.at("bits_set").get<std::uint64_t>()) << "cycle " << cycle["idx"];
  }
}

TEST_F(MinioSnapshotGoldenTest, Marks_AreFoundInTheirCycles) {
  std::size_t keys = 0;
  for (std::size_t at = 0; at < snapshot_.cycles.size(); ++at) {
    const BloomFilter& filter = snapshot_.cycles[at].filter;
    for (const json& mark : golden_["cycles"][at].at("marks")) {
      if (mark.at("keys").is_null()) {
        const std::string path =
            mark.at("bucket").get<std::string>() + '/' + mark.at("prefix").get<std::string>();
        const PrefixHashes hashes(path);
        for (const PathHash& hash : hashes.all()) {
          ++keys;
          EXPECT_TRUE(filter.may_contain(hash)) << path;
        }
        continue;
      }
      for (const json& marked : mark["keys"]) {
        ++keys;
        EXPECT_TRUE(filter.may_contain(hash_path(marked.get<std::string>()))) << marked;
      }
    }
  }
  EXPECT_GT(keys, 60'000U);
}

// What is marked the way MinIO spelled it has the keys that MinIO made of it, but for `..`, which
// Spoor refuses (ancestor 17).
TEST_F(MinioSnapshotGoldenTest, NormalisedMarks_HaveMinioKeys) {
  for (const json& cycle : golden_.at("cycles")) {
    for (const json& mark : cycle.at("marks")) {
      if (mark.at("keys").is_null()) continue;
      const auto path =
          normalise_path(mark.at("bucket").get<std::string>() + '/' + mark.at("prefix").get<std::string>());
      if (!path) continue;
      const std::string key(minio_key(*path));
      std::vector<std::string> prefixes;
      for (ComponentCursor at(key); at.next();) prefixes.emplace_back(at.prefix());
      EXPECT_EQ(prefixes, mark["keys"].get<std::vector<std::string>>());
    }
  }
}

TEST_F(MinioSnapshotGoldenTest, Probes_MatchMinioInEveryCycle) {
  std::size_t false_positives = 0;
  ASSERT_GT(golden_.at("probes").size(), 2'400U);
  for (const json& probe : golden_["probes"]) {
    const PathHash hash = key(probe.at("path").get<std::string>());
    std::string mask;
    for (const MinioCycle& cycle : snapshot_.cycles) mask += cycle.filter.may_contain(hash) ? '1' : '0';
    EXPECT_EQ(mask, probe.at("mask").get<std::string>()) << probe["path"];
    if (probe.at("fp").get<std::string>().find('1') != std::string::npos) ++false_positives;
  }
  // The probes would not tell much if every filter were exact.
  EXPECT_EQ(false_positives, 122U);
}

TEST_F(MinioSnapshotGoldenTest, MergedCycles_MatchMinioForEveryProbe) {
  BloomFilter merged(default_shape);
  for (const MinioCycle& cycle : snapshot_.cycles) merged.merge(cycle.filter);
  EXPECT_EQ(merged.bits_set(), golden_.at("merged_bits_set").get<std::uint64_t>());
  for (const json& probe : golden_.at("probes")) {
    EXPECT_EQ(merged.may_contain(key(probe.at("path").get<std::string>())), probe.at("merged").get<bool>())
        << probe["path"];
  }
}

}  // namespace
}  // namespace spoor::tracker
