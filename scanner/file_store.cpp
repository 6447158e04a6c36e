#include "scanner/file_store.h"

#include <SQLiteCpp/Column.h>
#include <fmt/core.h>

#include "scanner/database_files.h"
#include "scanner/file_chunk.h"
#include "scanner/sqlite_guard.h"
#include "scanner/statement_use.h"

namespace spoor::scanner {
namespace {

constexpr unsigned number_bits = 20;
constexpr std::uint64_t number_max = (std::uint64_t{1} << number_bits) - 1;
// So that a directory can grow before its chunks have to be split.
constexpr std::size_t chunk_bytes_wanted = FileStore::chunk_bytes_max / 2;

// `id` holds the id of the directory and the number of the chunk: a table by rowid keeps rows of any size
// without overflow pages, where an index of 4 KiB pages has room for a quarter of that.
constexpr const char* tables = R"sql(
CREATE TABLE files(
  id INTEGER PRIMARY KEY, entries BLOB NOT NULL
);
CREATE TABLE file_changes(
  scan INTEGER NOT NULL, directory INTEGER NOT NULL, name BLOB NOT NULL, change INTEGER NOT NULL,
  PRIMARY KEY(scan, directory, name)
) WITHOUT ROWID;
CREATE TRIGGER files_go AFTER DELETE ON directories BEGIN
  DELETE FROM files WHERE id BETWEEN old.id << 20 AND (old.id << 20) + 1048575;
END;
)sql";

std::int64_t row_id(std::int64_t directory, std::uint64_t number) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(directory) << number_bits | number);
}

FileStore::Chunk read_chunk(SQLite::Statement& row) {
  return {static_cast<std::uint64_t>(row.getColumn(0).getInt64()) & number_max, row.getColumn(1).getString()};
}

}  // namespace

void create_file_tables(SQLite::Database& database) { database.exec(tables); }

void drop_file_tables(SQLite::Database& database) {
  database.exec("DROP TRIGGER files_go; DROP TABLE files; DROP TABLE file_changes");
}

std::string FileStore::Chunk::first_name() const {
  FileChunkReader in(bytes);
  const auto first = in.next();
  return std::string(first ? first->name : std::string_view());
}

FileStore::FileStore(SQLite::Database& database)
    : database_(database),
      find_(database, "SELECT id, entries FROM files WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT 1"),
      last_(database, "SELECT max(id) FROM files WHERE id BETWEEN ?1 AND ?2"),
      put_(database, "REPLACE INTO files(id, entries) VALUES(?1, ?2)"),
      erase_(database, "DELETE FROM files WHERE id BETWEEN ?1 AND ?2") {}

base::Error FileStore::damage(std::int64_t directory) const {
  return damage_error(database_.getFilename(),
                      fmt::format("the files kept of directory {} can't be read", directory));
}

base::Result<bool> FileStore::has(std::int64_t directory) {
  const auto chunk = chunk_from(directory, 0);
  if (!chunk) return chunk.error();
  return chunk->has_value();
}

base::Result<> FileStore::add(std::int64_t directory, const Files& files) {
  return write_all(directory, 0, files, 0, files.size());
}

base::Result<> FileStore::update(std::int64_t directory, const Files& files, const OnChange& on_change) {
  auto chunk = chunk_from(directory, 0);
  if (!chunk) return chunk.error();
  if (!*chunk) chunk->emplace();
  bool has_room = true;
  for (std::size_t at = 0; *chunk;) {
    const std::size_t from = at;
    const std::uint64_t number = (*chunk)->number;
    auto next = chunk_from(directory, number + 1);
    if (!next) return next.error();
    const auto differs = merge(directory, **chunk, *next, files, at, on_change);
    if (!differs) return differs.error();
    if (*differs && has_room) {
      const auto written = write_back(directory, number, !*next, files, from, at);
      if (!written) return written.error();
      has_room = *written;
    }
    chunk = std::move(next);
  }
  if (has_room) return {};
  // A chunk amid others has to be split, which moves all behind it: rare, as each has room for as much again.
  if (auto erased = erase(directory); !erased) return erased;
  return add(directory, files);
}

// Tells what differs of the files that belong to the chunk, and moves `at` behind them. Whether any did.
base::Result<bool> FileStore::merge(std::int64_t directory, const Chunk& chunk,
                                    const std::optional<Chunk>& next, const Files& files, std::size_t& at,
                                    const OnChange& on_change) {
  const std::string end = next ? next->first_name() : std::string();
  if (next && end.empty()) return damage(directory);
  FileChunkReader in(chunk.bytes);
  bool differs = false;
  const auto tell = [&](std::string_view name, Change change) {
    differs = true;
    return on_change(name, change);
  };
  for (auto kept = in.next();;) {
    const bool is_listed = at < files.size() && (!next || files[at].name < end);
    if (!kept && !is_listed) break;
    base::Result<> told;
    if (!is_listed || (kept && kept->name < files[at].name)) {
      told = tell(kept->name, Change::deleted);
      kept = in.next();
    } else if (!kept || files[at].name < kept->name) {
      told = tell(files[at++].name, Change::created);
    } else {
      if (kept->signature != files[at].signature) told = tell(kept->name, Change::changed);
      ++at;
      kept = in.next();
    }
    if (!told) return told.error();
  }
  if (!in.ok()) return damage(directory);
  return differs;
}

// False, and nothing is written, where they are too many for one chunk and there are others behind it.
base::Result<bool> FileStore::write_back(std::int64_t directory, std::uint64_t number, bool is_last,
                                         const Files& files, std::size_t from, std::size_t to) {
  FileChunkWriter out;
  for (std::size_t at = from; at < to; ++at) {
    out.add(files[at]);
    if (out.size_bytes() <= chunk_bytes_max) continue;
    constexpr std::uint64_t added_max = number_max / 2;  // more than fit in any memory
    if (!is_last || number > added_max) return false;
    const auto written = write_all(directory, number, files, from, to);
    if (!written) return written.error();
    return true;
  }
  const auto written =
      out.empty() ? erase_chunks(directory, number, number) : put(directory, number, out.take());
  if (!written) return written.error();
  return true;
}

base::Result<> FileStore::write_all(std::int64_t directory, std::uint64_t number, const Files& files,
                                    std::size_t from, std::size_t to) {
  FileChunkWriter out;
  for (std::size_t at = from; at < to; ++at) {
    out.add(files[at]);
    if (out.size_bytes() < chunk_bytes_wanted) continue;
    if (auto written = put(directory, number++, out.take()); !written) return written;
  }
  return out.empty() ? base::Result<>() : put(directory, number, out.take());
}

base::Result<> FileStore::put(std::int64_t directory, std::uint64_t number, const std::string& bytes) {
  return guarded("keep the files of a directory", database_.getFilename(), [&] {
    const StatementUse use(put_);
    put_.bind(1, row_id(directory, number));
    put_.bindNoCopy(2, bytes.data(), static_cast<int>(bytes.size()));
    put_.exec();
  });
}

base::Result<> FileStore::erase(std::int64_t directory) { return erase_chunks(directory, 0, number_max); }

base::Result<> FileStore::erase_chunks(std::int64_t directory, std::uint64_t first, std::uint64_t last) {
  return guarded("forget the files of a directory", database_.getFilename(), [&] {
    const StatementUse use(erase_);
    erase_.bind(1, row_id(directory, first));
    erase_.bind(2, row_id(directory, last));
    erase_.exec();
  });
}

base::Result<std::optional<FileStore::Chunk>> FileStore::chunk_from(std::int64_t directory,
                                                                    std::uint64_t number) {
  return guarded("read the files of a directory", database_.getFilename(), [&]() -> std::optional<Chunk> {
    const StatementUse use(find_);
    find_.bind(1, row_id(directory, number));
    find_.bind(2, row_id(directory, number_max));
    if (number > number_max || !find_.executeStep()) return std::nullopt;
    return read_chunk(find_);
  });
}

base::Result<std::uint64_t> FileStore::find_chunk(std::int64_t directory, std::string_view name) {
  const auto last = guarded("read the files of a directory", database_.getFilename(), [&] {
    const StatementUse use(last_);
    last_.bind(1, row_id(directory, 0));
    last_.bind(2, row_id(directory, number_max));
    last_.executeStep();
    return static_cast<std::uint64_t>(last_.getColumn(0).getInt64()) & number_max;
  });
  if (!last) return last.error();
  std::uint64_t low = 0;
  // Chunks behind `high` begin behind the name; not all numbers up to it are taken.
  for (std::uint64_t high = *last; low < high;) {
    const std::uint64_t middle = low + (high - low + 1) / 2;
    const auto chunk = chunk_from(directory, middle);
    if (!chunk) return chunk.error();
    if (*chunk && (*chunk)->first_name() <= name) {
      low = (*chunk)->number;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace spoor::scanner
