#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_codec.h"
#include "scanner/database/sqlite.h"
#include "scanner/store/change_log.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/files.h"

namespace spoor::scanner {

// A chunk: some files of one directory, by name, as stored in one row of the database (docs/formats.md).
//
// Not thread-safe.
class FileChunkWriter {
 public:
  // The name has 1 to 65,535 bytes, and sorts after the previous one.
  void add(const File& file);

  std::size_t size_bytes() const { return out_.bytes().size(); }
  bool empty() const { return out_.bytes().empty(); }

  // Returns the files added so far, and starts an empty chunk.
  std::string take();

 private:
  base::ByteWriter out_;
  std::string last_name_;
};

// Not thread-safe. The bytes must outlive it.
class FileChunkReader {
 public:
  explicit FileChunkReader(std::string_view bytes) : in_(bytes) {}

  // The next file, valid until the next call; nothing at the end, or if the bytes are not a valid chunk.
  std::optional<File> next();

  // False once next() has read invalid bytes.
  bool ok() const { return is_ok_; }

 private:
  base::ByteReader in_;
  std::string name_;
  bool is_ok_ = true;
};

// The stored files of directories, by the id of the directory, in chunks of some files each, by name: neither
// the size of a row nor that of a read grows with a directory. Failures are SqliteError.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it.
class FileStore {
 public:
  static constexpr std::size_t chunk_bytes_max = 64U << 10U;

  struct Chunk {
    std::uint64_t number = 0;  // within its directory
    std::string bytes;         // FileChunkReader

    // The name of its first file. Fails if the chunk is damaged.
    std::string first_name() const;
  };

  // Called for each difference.
  using OnChange = std::function<void(std::string_view name, Change change)>;

  explicit FileStore(SqliteDatabase& database);

  bool has(std::int64_t directory) { return chunk_from(directory, 0).has_value(); }

  // Adds the files of a directory for which none are stored.
  void add(std::int64_t directory, const Files& files) { write_all(directory, 0, files, 0, files.size()); }

  // Replaces the stored files by these. Only chunks that differ are written.
  void update(std::int64_t directory, const Files& files, const OnChange& on_change);

  // The chunk of this number, or the next existing one.
  std::optional<Chunk> chunk_from(std::int64_t directory, std::uint64_t number);

  // The number of the chunk that holds this name, or would hold it.
  std::uint64_t find_chunk(std::int64_t directory, std::string_view name);

 private:
  bool write_back(std::int64_t directory, std::uint64_t number, bool is_last, const Files& files,
                  std::size_t from, std::size_t to);
  void write_all(std::int64_t directory, std::uint64_t number, const Files& files, std::size_t from,
                 std::size_t to);
  void put(std::int64_t directory, std::uint64_t number, const std::string& bytes);
  void erase(std::int64_t directory, std::uint64_t first, std::uint64_t last);

  SqliteStatement find_;
  SqliteStatement last_;
  SqliteStatement put_;
  SqliteStatement erase_;
};

// The stored files of one directory, by name, read a chunk at a time: a directory of millions does not have
// to fit in memory. Failures are those of FileStore.
//
// Not thread-safe. `store` must outlive it.
class StoredFiles {
 public:
  StoredFiles(FileStore& store, std::int64_t directory) : store_(&store), directory_(directory) {}

  // Moves to the first file after this name. Call at most once, before all other functions.
  void seek_behind(std::string_view name);

  // The name of the current file; null after the last one. Valid until the next move.
  const std::string* peek();

  // Moves to the next file.
  void pop() { name_.reset(); }

  // Moves to this name, or to the first one after it. Returns whether the name exists.
  bool go_to(std::string_view name);

 private:
  bool fetch();

  FileStore* store_;
  std::int64_t directory_;
  std::uint64_t next_chunk_ = 0;
  std::unique_ptr<const std::string> bytes_;  // read by chunk_; at a stable address when this object is moved
  std::optional<FileChunkReader> chunk_;
  std::optional<std::string> name_;
};

// Stores the files of the directories that a scan reads, if scan.file_feed is on, and records which of them
// changed. Files of a new directory are not recorded: all of them are new. Failures are SqliteError.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it.
class FileFeed {
 public:
  // `is_first`: no earlier scan stored files, so no consumer reads the file changes of this one.
  FileFeed(SqliteDatabase& database, ChangeLog& changes, bool is_first)
      : store_(database), changes_(changes), is_first_(is_first) {}

  // Adds the files of a directory for which none are stored.
  void add(std::int64_t directory, const Files& files) { store_.add(directory, files); }

  // Updates the files of a directory that was read before; `before` is its stored row. Returns false if its
  // previous files are unknown: it was unreadable for the first scan that stored files.
  bool update(const DirectoryRow& before, const Files& files, bool differs);

 private:
  FileStore store_;
  ChangeLog& changes_;
  const bool is_first_;
};

// The tables for files exist only while the file feed is on; the trigger deletes the files of a directory
// with its row. All throw SqliteError.
void create_file_tables(SqliteDatabase& database);
void create_files_trigger(SqliteDatabase& database);
void drop_file_tables(SqliteDatabase& database);

}  // namespace spoor::scanner
