// Spoor against what MinIO's own code wrote and answered (tests/golden/README.md).

#include <gtest/gtest.h>

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/golden/golden.h"
#include "tracker/filter/hash.h"
#include "tracker/paths/path.h"
#include "tracker/storage/minio_snapshot.h"

namespace spoor::tracker {
namespace {

using nlohmann::json;

constexpr BloomShape default_shape{958506, 4};

void append_utf8(std::string& text, unsigned long code) {
  const auto put = [&](unsigned long byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6U);
    put(0x80 | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12U);
    put(0x80 | (code >> 6U & 0x3FU));
    put(0x80 | (code & 0x3FU));
  } else {
    put(0xF0 | code >> 18U);
    put(0x80 | (code >> 12U & 0x3FU));
    put(0x80 | (code >> 6U & 0x3FU));
    put(0x80 | (code & 0x3FU));
  }
}

// A string as Go's strconv.Quote writes it.
std::string unquote(std::string_view quoted) {
  if (quoted.size() < 2 || quoted.front() != '"' || quoted.back() != '"')
    throw std::runtime_error("not quoted");
  quoted = quoted.substr(1, quoted.size() - 2);
  static const std::map<char, char> plain{{'a', '\a'}, {'b', '\b'}, {'f', '\f'},  {'n', '\n'}, {'r', '\r'},
                                          {'t', '\t'}, {'v', '\v'}, {'\\', '\\'}, {'"', '"'}};
  static const std::map<char, std::size_t> digits{{'x', 2}, {'u', 4}, {'U', 8}};
  std::string text;
  while (!quoted.empty()) {
    if (quoted[0] != '\\') {
      text += quoted[0];
      quoted.remove_prefix(1);
      continue;
    }
    const char kind = quoted.at(1);
    quoted.remove_prefix(2);
    if (const auto found = plain.find(kind); found != plain.end()) {
      text += found->second;
      continue;
    }
    const std::size_t count = digits.at(kind);
    const unsigned long code = std::stoul(std::string(quoted.substr(0, count)), nullptr, 16);
    quoted.remove_prefix(count);
    if (kind == 'x') {
      text += static_cast<char>(code);
    } else {
      append_utf8(text, code);
    }
  }
  return text;
}

TEST(UnquoteTest, GoQuotedString_IsUnquoted) {
  EXPECT_EQ(unquote(R"("")"), "");
  EXPECT_EQ(unquote(R"("a\n\"\\\x00\xff\u00fc\U0001f600")"),
            std::string("a\n\"\\\0\xff\xc3\xbc\xf0\x9f\x98\x80", 12));
}

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
    std::getline(columns, length, '\t');
    std::getline(columns, quoted, '\t');
    std::getline(columns, words, '\t');
    std::getline(columns, positions, '\t');
    Vector vector;
    vector.length = std::stoul(length);
    vector.key = unquote(quoted);
    std::istringstream hex(words);
    for (std::uint64_t& word : vector.hash.words) hex >> std::hex >> word;
    std::istringstream numbers(positions);
    for (std::uint64_t position = 0; numbers >> position;) vector.positions.push_back(position);
    vectors.push_back(std::move(vector));
  }
  return vectors;
}

TEST(MinioGoldenTest, GoldenVectors_HashWordsMatch) {
  const auto vectors = read_vectors();
  ASSERT_EQ(vectors.size(), 51U);
  for (const Vector& vector : vectors) {
    ASSERT_EQ(vector.key.size(), vector.length) << vector.key;
    EXPECT_EQ(hash_path(vector.key), vector.hash) << vector.key;
  }
}

TEST(MinioGoldenTest, GoldenVectors_SetExactlyTheirFourBits) {
  for (const Vector& vector : read_vectors()) {
    ASSERT_EQ(vector.positions.size(), 4U) << vector.key;
    std::vector<std::uint64_t> expected(default_shape.word_count());
    for (const std::uint64_t bit : vector.positions) expected[bit / 64] |= std::uint64_t{1} << (bit % 64);
    BloomFilter filter(default_shape);
    filter.add(hash_path(vector.key));
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), filter.words().begin(), filter.words().end()))
        << vector.key;
  }
}

// MinIO's form of a filter; only this test ever writes it.
std::string encode_minio_bloom(const BloomFilter& filter) {
  std::string bytes;
  const auto put = [&](std::uint64_t value) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFFU);
  };
  put(filter.shape().bits);
  put(filter.shape().hashes);
  put(filter.shape().bits);
  for (const std::uint64_t word : filter.words()) put(word);
  return bytes;
}

TEST(MinioGoldenTest, FilterOfGoldenItems_MatchesMinioBytes) {
  const json items = json::parse(golden::golden_file("items.json"));
  BloomFilter filter({items.at("m").get<std::uint64_t>(), items.at("k").get<std::uint64_t>()});
  for (const json& item : items.at("items")) filter.add(hash_path(item.get<std::string>()));
  EXPECT_EQ(filter.bits_set(), items.at("bits_set").get<std::uint64_t>());
  EXPECT_TRUE(encode_minio_bloom(filter) == golden::golden_file("items.bloom"));
}

TEST(MinioGoldenTest, MinioFilterFromDisk_IsDecodedExactly) {
  const std::string bytes = golden::golden_file("items.bloom");
  // As the current cycle of a snapshot without history.
  const std::string zeros(8, '\0');
  const auto snapshot = decode_minio_snapshot(char{minio_snapshot_version} + zeros + zeros + bytes + zeros);
  ASSERT_TRUE(snapshot);
  const BloomFilter& filter = snapshot->cycles.back().filter;
  EXPECT_EQ(filter.shape(), default_shape);
  EXPECT_TRUE(encode_minio_bloom(filter) == bytes);
}

class MinioSnapshotGoldenTest : public ::testing::Test {
 protected:
  // The key of a raw path in MinIO's filters.
  static PathHash key(const std::string& raw) { return hash_path(minio_key(normalise_path(raw).value())); }

  const MinioSnapshot snapshot_ = decode_minio_snapshot(golden::golden_file("tracker.v7.bin")).value();
  const json golden_ = json::parse(golden::golden_file("tracker.v7.json"));
};

TEST_F(MinioSnapshotGoldenTest, Cycles_AreReadInOrderWithSaveTime) {
  EXPECT_EQ(snapshot_.saved_at, base::WallTime(std::chrono::seconds(1'677'169'754)));
  EXPECT_EQ(snapshot_.current, CycleId{20});
  ASSERT_EQ(snapshot_.cycles.size(), 16U);
  for (std::size_t at = 0; at < snapshot_.cycles.size(); ++at)
    EXPECT_EQ(snapshot_.cycles[at].id.value, 5 + at);
}

TEST_F(MinioSnapshotGoldenTest, CycleFilters_HaveGoldenShapeAndBitCount) {
  ASSERT_EQ(golden_.at("cycles").size(), snapshot_.cycles.size());
  for (std::size_t at = 0; at < snapshot_.cycles.size(); ++at) {
    const json& cycle = golden_["cycles"][at];
    const BloomFilter& filter = snapshot_.cycles[at].filter;
    ASSERT_EQ(cycle.at("idx").get<std::uint64_t>(), snapshot_.cycles[at].id.value);
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
        for_each_prefix_hash(path, [&](const PathHash& hash, bool) {
          ++keys;
          EXPECT_TRUE(filter.may_contain(hash)) << path;
        });
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
