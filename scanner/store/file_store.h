#pragma once

#include <SQLiteCpp/Database.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "scanner/store/change_log.h"
#include "scanner/store/files.h"
#include "scanner/store/sqlite_statement.h"

namespace spoor::scanner {

// The stored files of directories, by the id of the directory, in chunks of some files each, by name: neither
// the size of a row nor that of a read grows with a directory. Failures are Errc::database_failed or
// database_damaged.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it.
class FileStore {
 public:
  static constexpr std::size_t chunk_bytes_max = 64U << 10U;

  struct Chunk {
    std::uint64_t number = 0;  // within its directory
    std::string bytes;         // file_chunk.h

    // The name of its first file; empty if the chunk is damaged.
    std::string first_name() const;
  };

  // Called for each difference.
  using OnChange = std::function<base::Result<>(std::string_view name, Change change)>;

  explicit FileStore(SQLite::Database& database);

  base::Result<bool> has(std::int64_t directory);

  // Adds the files of a directory for which none are stored.
  base::Result<> add(std::int64_t directory, const Files& files);

  // Replaces the stored files by these. Only chunks that differ are written.
  base::Result<> update(std::int64_t directory, const Files& files, const OnChange& on_change);

  base::Result<> erase(std::int64_t directory);

  // The chunk of this number, or the next existing one.
  base::Result<std::optional<Chunk>> chunk_from(std::int64_t directory, std::uint64_t number);

  // The number of the chunk that holds this name, or would hold it.
  base::Result<std::uint64_t> find_chunk(std::int64_t directory, std::string_view name);

  // The error for a chunk that cannot be read; writes FILE.damaged (database_files.h).
  base::Error damage(std::int64_t directory) const;

 private:
  base::Result<bool> merge(std::int64_t directory, const Chunk& chunk, const std::optional<Chunk>& next,
                           const Files& files, std::size_t& at, const OnChange& on_change);
  base::Result<bool> write_back(std::int64_t directory, std::uint64_t number, bool is_last,
                                const Files& files, std::size_t from, std::size_t to);
  base::Result<> write_all(std::int64_t directory, std::uint64_t number, const Files& files, std::size_t from,
                           std::size_t to);
  base::Result<> put(std::int64_t directory, std::uint64_t number, const std::string& bytes);
  base::Result<> erase_chunks(std::int64_t directory, std::uint64_t first, std::uint64_t last);

  SQLite::Database& database_;
  SqliteStatement find_;
  SqliteStatement last_;
  SqliteStatement put_;
  SqliteStatement erase_;
};

// The tables for files exist only while the file feed is on. Both throw SQLite::Exception.
void create_file_tables(SQLite::Database& database);
void drop_file_tables(SQLite::Database& database);

}  // namespace spoor::scanner
