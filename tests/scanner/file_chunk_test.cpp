#include "scanner/store/file_chunk.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/random.h"

namespace spoor::scanner {
namespace {

using Entries = std::map<std::string, std::uint64_t>;

std::string written(const Entries& entries) {
  FileChunkWriter out;
  for (const auto& [name, signature] : entries) out.add({name, signature});
  return out.take();
}

// Nothing where the bytes are no chunk.
std::optional<Entries> read(std::string_view bytes) {
  FileChunkReader in(bytes);
  Entries entries;
  std::string last;
  while (const auto file = in.next()) {
    EXPECT_LT(last, file->name);
    last = file->name;
    entries.emplace(file->name, file->signature);
  }
  return in.ok() ? std::optional(entries) : std::nullopt;
}

TEST(FileChunkTest, RandomFiles_RoundTrip) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 300; ++round) {
    Entries entries;
    for (std::uint64_t left = random.below(40); left > 0; --left) {
      std::string name = random.letters(random.below(4), 'b') + random.bytes(random.between(1, 800));
      std::ranges::replace_if(name, [](char byte) { return byte == '/' || byte == '\0'; }, '_');
      entries[name] = random.next();
    }
    EXPECT_EQ(read(written(entries)), entries);
  }
}

TEST(FileChunkTest, CommonPrefixes_AreShared) {
  const Entries entries{{"2026-11-01.log", 1}, {"2026-11-02.log", 2}, {"2026-11-02.log.gz", 3}};
  EXPECT_EQ(written(entries).size(), 3 * 12 + 14 + 5 + 3U);
}

// NTFS and exFAT count 16-bit units: 255 of them are up to 765 bytes.
TEST(FileChunkTest, NamesLongerThan255Bytes_RoundTrip) {
  const Entries entries{{std::string(254, 'n'), 1},
                        {std::string(255, 'n'), 2},
                        {std::string(256, 'n'), 3},
                        {std::string(300, 'n') + std::string(465, 'o'), 4},
                        {std::string(65'535, 'z'), 5}};
  EXPECT_EQ(read(written(entries)), entries);
}

TEST(FileChunkTest, Take_ResetsTheWriter) {
  FileChunkWriter out;
  out.add({"ab", 1});
  out.take();
  EXPECT_TRUE(out.empty());
  out.add({"ac", 2});
  EXPECT_EQ(read(out.take()), (Entries{{"ac", 2}}));
}

std::string entry(std::uint16_t shared, std::uint16_t rest_bytes, std::string_view rest) {
  base::ByteWriter out;
  out.u16(shared);
  out.u16(rest_bytes);
  out.raw(rest);
  out.u64(7);
  return out.take();
}

TEST(FileChunkTest, MalformedChunk_IsRefused) {
  EXPECT_EQ(read(entry(0, 1, "a")), (Entries{{"a", 7}}));
  const std::string long_name(40'000, 'x');
  const std::map<std::string, std::string> bad{
      {"no name", entry(0, 0, "")},
      {"shares what is not there", entry(1, 1, "a")},
      {"twice", entry(0, 1, "a") + entry(1, 0, "")},
      {"out of order", entry(0, 1, "b") + entry(0, 1, "a")},
      {"out of order behind what is shared", entry(0, 2, "ab") + entry(1, 1, "a")},
      {"a slash", entry(0, 3, "a/b")},
      {"a NUL", entry(0, 3, std::string_view("a\0b", 3))},
      {"too long", entry(0, 40'000, long_name) + entry(40'000, 25'536, long_name.substr(0, 25'536))},
      {"cut in the signature", entry(0, 1, "a").substr(0, 11)},
      {"cut in the name", entry(0, 9, "a")},
      {"cut in the head", std::string(3, '\0')}};
  for (const auto& [what, bytes] : bad) EXPECT_EQ(read(bytes), std::nullopt) << what;
}

TEST(FileChunkTest, RandomBytes_ReadingTerminates) {
  SPOOR_RANDOM(random);
  Entries entries;
  for (int i = 0; i < 20; ++i) entries[random.letters(6, 'c')] = random.next();
  const std::string good = written(entries);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = good;
    for (std::uint64_t left = random.between(1, 4); left > 0; --left)
      bytes[random.below(bytes.size())] = random.byte();
    if (random.one_in(3)) bytes.resize(random.below(bytes.size()));
    read(bytes);
    read(random.bytes(random.below(100)));
  }
}

}  // namespace
}  // namespace spoor::scanner
