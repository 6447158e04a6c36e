#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "scanner/change_log.h"
#include "scanner/files.h"

namespace spoor::scanner {

// The files that are kept of directories, by the id of the directory: chunks of some of them each, by name,
// so that neither a row nor what is read at a time grows with a directory. Failures are Errc::database_failed
// or database_damaged.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it.
class FileStore {
 public:
  static constexpr std::size_t chunk_bytes_max = 64U << 10U;

  struct Chunk {
    std::uint64_t number = 0;  // within its directory
    std::string bytes;         // file_chunk.h

    // Of its first file; empty where it is damaged.
    std::string first_name() const;
  };

  // Called with what differs.
  using OnChange = std::function<base::Result<>(std::string_view name, Change change)>;

  explicit FileStore(SQLite::Database& database);

  base::Result<bool> has(std::int64_t directory);

  // Of a directory of which none are kept.
  base::Result<> add(std::int64_t directory, const Files& files);

  // Keeps these in the place of those that were kept. Only chunks that differ are written.
  base::Result<> update(std::int64_t directory, const Files& files, const OnChange& on_change);

  base::Result<> erase(std::int64_t directory);

  // The chunk of that number, or the next one there is.
  base::Result<std::optional<Chunk>> chunk_from(std::int64_t directory, std::uint64_t number);

  // The number of the chunk that has files of this name or, where it has none, those before it.
  base::Result<std::uint64_t> find_chunk(std::int64_t directory, std::string_view name);

  // What to say of a chunk that can't be read.
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
  SQLite::Statement find_;
  SQLite::Statement last_;
  SQLite::Statement put_;
  SQLite::Statement erase_;
};

// The tables of a database whose file feed is on; they are there only as long as it is. Both throw
// SQLite::Exception.
void create_file_tables(SQLite::Database& database);
void drop_file_tables(SQLite::Database& database);

}  // namespace spoor::scanner
