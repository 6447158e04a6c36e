#include "scanner/database/log_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/random.h"

namespace spoor::scanner {
namespace {

using Writes = std::vector<std::pair<sqlite3_int64, int>>;  // offsets and sizes

// A file in memory.
struct MemoryFile {
  sqlite3_file base;
  std::string bytes = {};
  Writes writes = {};
  int code = SQLITE_OK;  // of each write
};

int write_memory(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset) {
  auto& memory = *reinterpret_cast<MemoryFile*>(file);
  if (memory.code != SQLITE_OK) return memory.code;
  memory.writes.emplace_back(offset, bytes);
  const auto begin = static_cast<std::size_t>(offset);
  const auto size = static_cast<std::size_t>(bytes);
  memory.bytes.resize(std::max(memory.bytes.size(), begin + size));
  std::memcpy(&memory.bytes[begin], from, size);
  return SQLITE_OK;
}

class WriteBufferTest : public ::testing::Test {
 protected:
  int write(std::string_view bytes, sqlite3_int64 offset) {
    return buffer_.write(file(), bytes.data(), static_cast<int>(bytes.size()), offset);
  }
  sqlite3_file* file() { return &memory_.base; }

  const sqlite3_io_methods methods_ = [] {
    sqlite3_io_methods methods{};
    methods.xWrite = write_memory;
    return methods;
  }();
  MemoryFile memory_{.base = {&methods_}};
  WriteBuffer buffer_;
};

TEST_F(WriteBufferTest, WritesThatFollow_AreOne) {
  write("head", 100);
  write("page", 104);
  EXPECT_EQ(memory_.writes, Writes());
  EXPECT_EQ(buffer_.flush(file()), SQLITE_OK);
  EXPECT_EQ(buffer_.flush(file()), SQLITE_OK);
  EXPECT_EQ(memory_.writes, (Writes{{100, 8}}));
  EXPECT_EQ(memory_.bytes.substr(100), "headpage");
}

TEST_F(WriteBufferTest, FullBuffer_IsWritten) {
  const std::string page(4096, 'p');
  for (int at = 0; at <= WriteBuffer::bytes_max; at += 4096) write(page, at);
  EXPECT_EQ(memory_.writes, (Writes{{0, WriteBuffer::bytes_max}}));
}

TEST_F(WriteBufferTest, MoreThanTheBufferHolds_IsWrittenAtOnce) {
  write("x", 0);
  EXPECT_EQ(write(std::string(WriteBuffer::bytes_max + 1, 'y'), 1), SQLITE_OK);
  EXPECT_EQ(memory_.writes, (Writes{{0, 1}, {1, WriteBuffer::bytes_max + 1}}));
}

// SQLite rolls back: another process may have written there by then.
TEST_F(WriteBufferTest, FailedFlush_NothingIsWrittenLater) {
  write("lost", 0);
  memory_.code = SQLITE_FULL;
  EXPECT_EQ(buffer_.flush(file()), SQLITE_FULL);
  memory_.code = SQLITE_OK;
  EXPECT_EQ(buffer_.flush(file()), SQLITE_FULL);
  EXPECT_EQ(write("refused", 100), SQLITE_FULL);
  EXPECT_EQ(buffer_.flush_if_overlapping(file(), 1, 0), SQLITE_FULL);
  EXPECT_EQ(buffer_.flush_if_overlapping(file(), 1, 4), SQLITE_OK);
  EXPECT_EQ(memory_.writes, Writes());
}

TEST_F(WriteBufferTest, Reading_FlushesOnlyWhatOverlaps) {
  write("bytes", 10);
  EXPECT_EQ(buffer_.flush_if_overlapping(file(), 10, 0), SQLITE_OK);
  EXPECT_EQ(buffer_.flush_if_overlapping(file(), 10, 15), SQLITE_OK);
  EXPECT_EQ(memory_.writes, Writes());
  EXPECT_EQ(buffer_.flush_if_overlapping(file(), 1, 14), SQLITE_OK);
  EXPECT_EQ(memory_.writes, (Writes{{10, 5}}));
}

// Writes as SQLite makes them, at any place, and reads in between: the file has the bytes at each read.
TEST_F(WriteBufferTest, RandomWritesAndReads_AreThoseOfAFile) {
  support::Random random;
  SCOPED_TRACE(random.trace());
  std::string expected(400'000, '\0');
  memory_.bytes = expected;
  std::size_t end = 0;
  for (int step = 0; step < 5000; ++step) {
    const std::size_t size = random.one_in(2) ? 24 : 4096;
    const std::size_t at = !random.one_in(8) && end + size <= expected.size() ? end : random.below(390'000);
    if (random.one_in(5)) {
      ASSERT_EQ(buffer_.flush_if_overlapping(file(), static_cast<int>(size), static_cast<sqlite3_int64>(at)),
                SQLITE_OK);
      ASSERT_EQ(memory_.bytes.compare(at, size, expected, at, size), 0) << "at " << at << ", step " << step;
      continue;
    }
    const std::string bytes(size, static_cast<char>('a' + random.below(26)));
    ASSERT_EQ(write(bytes, static_cast<sqlite3_int64>(at)), SQLITE_OK);
    expected.replace(at, size, bytes);
    end = at + size;
  }
  buffer_.flush(file());
  EXPECT_EQ(memory_.bytes, expected);
}

}  // namespace
}  // namespace spoor::scanner
