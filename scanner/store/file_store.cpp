#include "scanner/store/file_store.h"

#include <fmt/core.h>

#include <utility>

#include "scanner/store/database_files.h"

namespace spoor::scanner {
namespace {

constexpr unsigned number_bits = 20;
constexpr std::uint64_t number_max = (std::uint64_t{1} << number_bits) - 1;
// Leaves room for a directory to grow before its chunks have to be split.
constexpr std::size_t chunk_bytes_wanted = FileStore::chunk_bytes_max / 2;

// `id` combines the id of the directory and the number of the chunk. A rowid table stores rows of up to a
// page without overflow pages, an index B-tree only rows of up to a quarter of a page.
constexpr const char* tables = R"sql(
CREATE TABLE files(
  id INTEGER PRIMARY KEY, entries BLOB NOT NULL
);
CREATE TABLE file_changes(
  scan INTEGER NOT NULL, directory INTEGER NOT NULL, name BLOB NOT NULL, change INTEGER NOT NULL,
  PRIMARY KEY(scan, directory, name)
) WITHOUT ROWID;
)sql";

constexpr const char* trigger = R"sql(
CREATE TRIGGER files_go AFTER DELETE ON directories BEGIN
  DELETE FROM files WHERE id BETWEEN old.id << 20 AND (old.id << 20) + 1048575;
END;
)sql";

std::int64_t row_id(std::int64_t directory, std::uint64_t number) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(directory) << number_bits | number);
}

}  // namespace

void create_file_tables(SQLite::Database& database) {
  database.exec(tables);
  create_files_trigger(database);
}

void create_files_trigger(SQLite::Database& database) { database.exec(trigger); }

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
                      fmt::format("the stored files of directory {} cannot be read", directory));
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
  // A chunk before others has to be split, which moves all after it. Rare: each has room to double.
  if (auto erased = erase(directory); !erased) return erased;
  return add(directory, files);
}

// Reports the differences of the files of the chunk, and moves `at` past them. Returns whether there are any.
base::Result<bool> FileStore::merge(std::int64_t directory, const Chunk& chunk,
                                    const std::optional<Chunk>& next, const Files& files, std::size_t& at,
                                    const OnChange& on_change) {
  const std::string end = next ? next->first_name() : std::string();
  if (next && end.empty()) return damage(directory);
  FileChunkReader in(chunk.bytes);
  bool differs = false;
  const auto report = [&](std::string_view name, Change change) {
    differs = true;
    return on_change(name, change);
  };
  for (auto kept = in.next();;) {
    const bool is_listed = at < files.size() && (!next || files[at].name < end);
    if (!kept && !is_listed) break;
    base::Result<> reported;
    if (!is_listed || (kept && kept->name < files[at].name)) {
      reported = report(kept->name, Change::deleted);
      kept = in.next();
    } else if (!kept || files[at].name < kept->name) {
      reported = report(files[at++].name, Change::created);
    } else {
      if (kept->signature != files[at].signature) reported = report(kept->name, Change::changed);
      ++at;
      kept = in.next();
    }
    if (!reported) return reported.error();
  }
  if (!in.ok()) return damage(directory);
  return differs;
}

// Returns false without writing if they do not fit into one chunk and others follow it.
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
  return guarded("write the files of a directory", database_, [&] {
    const SqliteStatement::Use use(put_, row_id(directory, number), bytes);
    put_.run();
  });
}

base::Result<> FileStore::erase(std::int64_t directory) { return erase_chunks(directory, 0, number_max); }

base::Result<> FileStore::erase_chunks(std::int64_t directory, std::uint64_t first, std::uint64_t last) {
  return guarded("delete the files of a directory", database_, [&] {
    const SqliteStatement::Use use(erase_, row_id(directory, first), row_id(directory, last));
    erase_.run();
  });
}

base::Result<std::optional<FileStore::Chunk>> FileStore::chunk_from(std::int64_t directory,
                                                                    std::uint64_t number) {
  return guarded("read the files of a directory", database_, [&]() -> std::optional<Chunk> {
    const SqliteStatement::Use use(find_, row_id(directory, number), row_id(directory, number_max));
    if (number > number_max || !find_.step()) return std::nullopt;
    return Chunk{find_.number<std::uint64_t>(0) & number_max, std::string(find_.blob(1))};
  });
}

base::Result<std::uint64_t> FileStore::find_chunk(std::int64_t directory, std::string_view name) {
  const auto last = guarded("read the files of a directory", database_, [&] {
    const SqliteStatement::Use use(last_, row_id(directory, 0), row_id(directory, number_max));
    last_.step();
    return last_.number<std::uint64_t>(0) & number_max;
  });
  if (!last) return last.error();
  std::uint64_t low = 0;
  // Chunks after `high` start after the name; not every number up to it exists.
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

base::Result<> StoredFiles::seek_behind(std::string_view name) {
  const auto chunk = store_->find_chunk(directory_, name);
  if (!chunk) return chunk.error();
  next_chunk_ = *chunk;
  const auto is_there = go_to(name);
  if (!is_there) return is_there.error();
  if (*is_there) pop();
  return {};
}

base::Result<const std::string*> StoredFiles::peek() {
  const std::string* const at_end = nullptr;
  while (!name_) {
    if (!chunk_) {
      const auto fetched = fetch();
      if (!fetched) return fetched.error();
      if (!*fetched) return at_end;
    }
    const auto file = chunk_->next();
    if (file) {
      name_ = file->name;
    } else {
      if (!chunk_->ok()) return store_->damage(directory_);
      chunk_.reset();
    }
  }
  return &*name_;
}

base::Result<bool> StoredFiles::go_to(std::string_view name) {
  for (;;) {
    const auto at = peek();
    if (!at) return at.error();
    if (*at == nullptr || **at > name) return false;
    if (**at == name) return true;
    pop();
  }
}

base::Result<bool> StoredFiles::fetch() {
  auto chunk = store_->chunk_from(directory_, next_chunk_);
  if (!chunk) return chunk.error();
  if (!*chunk) return false;
  next_chunk_ = (*chunk)->number + 1;
  bytes_ = std::make_unique<const std::string>(std::move((*chunk)->bytes));
  chunk_.emplace(*bytes_);
  return true;
}

base::Result<bool> FileFeed::update(const DirectoryRow& before, const Files& files, bool differs) {
  bool is_known = before.own.files == 0 && !is_first_;
  if (!is_known) {
    const auto has = store_.has(before.id);
    if (!has) return has.error();
    is_known = *has;
  }
  if (!is_known) {
    const auto added = add(before.id, files);
    if (!added) return added.error();
    return !differs || is_first_;
  }
  if (!differs) return true;
  const auto updated = store_.update(before.id, files, [&](std::string_view name, Change change) {
    return changes_.add_file(before.id, name, change);
  });
  if (!updated) return updated.error();
  return true;
}

}  // namespace spoor::scanner
