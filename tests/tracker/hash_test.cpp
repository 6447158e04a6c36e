#include "tracker/filter/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "tests/support/random.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {
namespace {

// MurmurHash3 x64 128 from its description, byte by byte, sharing nothing with the code.
std::array<std::uint64_t, 2> murmur3(const std::string& key) {
  constexpr std::uint64_t c1 = 0x87c37b91114253d5U;
  constexpr std::uint64_t c2 = 0x4cf5ad432745937fU;
  const auto word = [&](std::size_t from, std::size_t to) {
    std::uint64_t value = 0;
    for (std::size_t at = to; at > from; --at) value = value * 256 + static_cast<unsigned char>(key[at - 1]);
    return value;
  };
  const auto mix = [](std::uint64_t k) {
    k ^= k >> 33U;
    k *= 0xff51afd7ed558ccdU;
    k ^= k >> 33U;
    k *= 0xc4ceb9fe1a85ec53U;
    k ^= k >> 33U;
    return k;
  };
  std::uint64_t h1 = 0;
  std::uint64_t h2 = 0;
  std::size_t at = 0;
  for (; at + 16 <= key.size(); at += 16) {
    h1 ^= std::rotl(word(at, at + 8) * c1, 31) * c2;
    h1 = std::rotl(h1, 27);
    h1 += h2;
    h1 = h1 * 5 + 0x52dce729U;
    h2 ^= std::rotl(word(at + 8, at + 16) * c2, 33) * c1;
    h2 = std::rotl(h2, 31);
    h2 += h1;
    h2 = h2 * 5 + 0x38495ab5U;
  }
  const std::size_t rest = key.size() - at;
  if (rest > 8) h2 ^= std::rotl(word(at + 8, key.size()) * c2, 33) * c1;
  if (rest > 0) h1 ^= std::rotl(word(at, std::min(at + 8, key.size())) * c1, 31) * c2;
  h1 ^= key.size();
  h2 ^= key.size();
  h1 += h2;
  h2 += h1;
  h1 = mix(h1);
  h2 = mix(h2);
  h1 += h2;
  h2 += h1;
  return {h1, h2};
}

PathHash reference(const std::string& key) {
  const auto plain = murmur3(key);
  const auto padded = murmur3(key + '\x01');
  return {{plain[0], plain[1], padded[0], padded[1]}};
}

TEST(HashTest, HashPath_IsMurmur3OfKeyAndPaddedKey) {
  SPOOR_RANDOM(random);
  for (std::size_t length = 0; length <= 300; ++length) {
    const std::string key = random.bytes(length);
    ASSERT_EQ(hash_path(key), reference(key)) << length;
  }
}

TEST(HashTest, IncrementalHash_EqualsHashFromStart) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 300; ++round) {
    const std::string key = random.bytes(random.below(200));
    PathHasher hasher;
    for (std::size_t at = 0; at < key.size();) {
      const std::size_t piece = std::min(key.size() - at, static_cast<std::size_t>(random.below(40)));
      hasher.append(std::string_view(key).substr(at, piece));
      at += piece;
      ASSERT_EQ(hasher.hash(), reference(key.substr(0, at))) << at << " of " << key.size();
    }
  }
}

// As the processor has it, and as all have it.
std::vector<bool> widths() { return has_avx512() ? std::vector{false, true} : std::vector{false}; }

void expect_prefixes(const std::string& path, const std::vector<PathHash>& expected) {
  for (const bool wide : widths()) {
    PrefixHashes hashes(path, wide);
    ASSERT_TRUE(std::ranges::equal(hashes.all(), expected)) << path << (wide ? ", wide" : "");
    hashes.drop_last();
    std::vector<PathHash> parents(expected.begin(), expected.end() - 1);
    if (parents.empty()) parents.push_back(reference(""));
    ASSERT_TRUE(std::ranges::equal(hashes.all(), parents)) << path;
  }
}

TEST(PrefixHashesTest, AnyPathLengthAndDepth_HashesEveryPrefix) {
  SPOOR_RANDOM(random);
  ASSERT_NO_FATAL_FAILURE(expect_prefixes("", {reference("")}));
  for (std::size_t length = 1; length <= 300; ++length) {
    for (int round = 0; round < 8; ++round) {
      // From hardly any separators to as many as can be.
      const std::uint64_t name_max = std::uint64_t{1} << random.below(7);
      std::string path;
      std::vector<PathHash> expected;
      while (path.size() < length) {
        const std::size_t left = length - path.size() - (path.empty() ? 0 : 1);
        std::size_t name = std::min<std::size_t>(left, random.between(1, name_max));
        if (left - name == 1) ++name;  // not room for a separator only
        path = join_path(path, random.letters(name));
        expected.push_back(reference(path));
      }
      ASSERT_EQ(path.size(), length);
      ASSERT_NO_FATAL_FAILURE(expect_prefixes(path, expected));
    }
  }
  std::string deep;
  std::vector<PathHash> expected;
  for (int depth = 1; depth <= 200; ++depth) {
    deep = join_path(deep, random.letters(random.between(1, 20)));
    expected.push_back(reference(deep));
    ASSERT_NO_FATAL_FAILURE(expect_prefixes(deep, expected));
  }
}

TEST(HashTest, CopiedHasher_DescendsIndependently) {
  PathHasher root;
  EXPECT_EQ(root.hash(), reference(""));
  PathHasher parent = root;
  parent.descend("bucket");
  PathHasher child = parent;
  child.append({});  // without even an address
  child.descend("a");
  EXPECT_EQ(child.hash(), reference("bucket/a"));
  EXPECT_EQ(parent.hash(), reference("bucket"));
}

}  // namespace
}  // namespace spoor::tracker
