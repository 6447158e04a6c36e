#include "scanner/store/file_store.h"

#include <algorithm>
#include <utility>

namespace spoor::scanner {
namespace {

constexpr unsigned number_bits = 20;
constexpr std::uint64_t number_max = (std::uint64_t{1} << number_bits) - 1;
// Leaves room for a directory to grow before its chunks have to be split.
constexpr std::size_t chunk_bytes_wanted = FileStore::chunk_bytes_max / 2;
constexpr std::size_t name_bytes_max = 0xFFFF;
constexpr std::string_view never_in_names("/\0", 2);

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

[[noreturn]] void fail_as_damaged() {
  throw SqliteError("the stored files of a directory cannot be read", SQLITE_CORRUPT);
}

// Reports the differences between the stored files of a chunk and the listed ones from `at` on that belong to
// it, and moves `at` past these. Returns whether there are any.
bool report_differences(const FileStore::Chunk& chunk, const std::optional<FileStore::Chunk>& next,
                        const Files& files, std::size_t& at, const FileStore::OnChange& on_change) {
  const std::string end = next ? next->first_name() : std::string();
  FileChunkReader in(chunk.bytes);
  bool differs = false;
  const auto report = [&](std::string_view name, Change change) {
    differs = true;
    on_change(name, change);
  };
  for (auto kept = in.next();;) {
    const bool is_listed = at < files.size() && (!next || files[at].name < end);
    if (!kept && !is_listed) break;
    if (!is_listed || (kept && kept->name < files[at].name)) {
      report(kept->name, Change::deleted);
      kept = in.next();
    } else if (!kept || files[at].name < kept->name) {
      report(files[at++].name, Change::created);
    } else {
      if (kept->signature != files[at].signature) report(kept->name, Change::changed);
      ++at;
      kept = in.next();
    }
  }
  if (!in.ok()) fail_as_damaged();
  return differs;
}

}  // namespace

void FileChunkWriter::add(const File& file) {
  const auto [end_of_last, end_of_name] = std::ranges::mismatch(last_name_, file.name);
  const auto shared = static_cast<std::size_t>(end_of_last - last_name_.begin());
  out_.u16(static_cast<std::uint16_t>(shared));
  out_.short_string(file.name.substr(shared));
  out_.u64(file.signature);
  last_name_ = file.name;
}

std::string FileChunkWriter::take() {
  last_name_.clear();
  return std::exchange(out_, {}).take();
}

std::optional<File> FileChunkReader::next() {
  if (!is_ok_ || in_.remaining() == 0) return std::nullopt;
  const std::size_t shared = in_.u16();
  const std::string_view rest = in_.short_string();
  const std::uint64_t signature = in_.u64();
  is_ok_ = in_.ok() && shared <= name_.size() && rest > std::string_view(name_).substr(shared) &&
           shared + rest.size() <= name_bytes_max &&
           rest.find_first_of(never_in_names) == std::string_view::npos;
  if (!is_ok_) return std::nullopt;
  name_.resize(shared);
  name_ += rest;
  return File{name_, signature};
}

void create_file_tables(SqliteDatabase& database) {
  database.exec(tables);
  create_files_trigger(database);
}

void create_files_trigger(SqliteDatabase& database) { database.exec(trigger); }

void drop_file_tables(SqliteDatabase& database) {
  database.exec("DROP TRIGGER files_go; DROP TABLE files; DROP TABLE file_changes");
}

std::string FileStore::Chunk::first_name() const {
  FileChunkReader in(bytes);
  const auto first = in.next();
  if (!first) fail_as_damaged();
  return std::string(first->name);
}

FileStore::FileStore(SqliteDatabase& database)
    : find_(database, "SELECT id, entries FROM files WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT 1"),
      last_(database, "SELECT max(id) FROM files WHERE id BETWEEN ?1 AND ?2"),
      put_(database, "REPLACE INTO files(id, entries) VALUES(?1, ?2)"),
      erase_(database, "DELETE FROM files WHERE id BETWEEN ?1 AND ?2") {}

void FileStore::update(std::int64_t directory, const Files& files, const OnChange& on_change) {
  auto chunk = chunk_from(directory, 0);
  if (!chunk) chunk.emplace();
  bool has_room = true;
  for (std::size_t at = 0; chunk;) {
    const std::size_t from = at;
    auto next = chunk_from(directory, chunk->number + 1);
    if (report_differences(*chunk, next, files, at, on_change) && has_room)
      has_room = write_back(directory, chunk->number, !next, files, from, at);
    chunk = std::move(next);
  }
  if (has_room) return;
  // A chunk before others has to be split, which moves all after it. Rare: each has room to double.
  erase(directory, 0, number_max);
  add(directory, files);
}

// Returns false without writing if they do not fit into one chunk and others follow it.
bool FileStore::write_back(std::int64_t directory, std::uint64_t number, bool is_last, const Files& files,
                           std::size_t from, std::size_t to) {
  FileChunkWriter out;
  for (std::size_t at = from; at < to; ++at) {
    out.add(files[at]);
    if (out.size_bytes() <= chunk_bytes_max) continue;
    constexpr std::uint64_t added_max = number_max / 2;  // more than fit in any memory
    if (!is_last || number > added_max) return false;
    write_all(directory, number, files, from, to);
    return true;
  }
  if (out.empty()) {
    erase(directory, number, number);
  } else {
    put(directory, number, out.take());
  }
  return true;
}

void FileStore::write_all(std::int64_t directory, std::uint64_t number, const Files& files, std::size_t from,
                          std::size_t to) {
  FileChunkWriter out;
  for (std::size_t at = from; at < to; ++at) {
    out.add(files[at]);
    if (out.size_bytes() >= chunk_bytes_wanted) put(directory, number++, out.take());
  }
  if (!out.empty()) put(directory, number, out.take());
}

void FileStore::put(std::int64_t directory, std::uint64_t number, const std::string& bytes) {
  put_.run(row_id(directory, number), bytes);
}

void FileStore::erase(std::int64_t directory, std::uint64_t first, std::uint64_t last) {
  erase_.run(row_id(directory, first), row_id(directory, last));
}

std::optional<FileStore::Chunk> FileStore::chunk_from(std::int64_t directory, std::uint64_t number) {
  if (number > number_max) return std::nullopt;
  const SqliteStatement::Use use(find_, row_id(directory, number), row_id(directory, number_max));
  if (!find_.step()) return std::nullopt;
  return Chunk{find_.number<std::uint64_t>(0) & number_max, std::string(find_.blob(1))};
}

std::uint64_t FileStore::find_chunk(std::int64_t directory, std::string_view name) {
  const SqliteStatement::Use use(last_, row_id(directory, 0), row_id(directory, number_max));
  last_.step();
  std::uint64_t low = 0;
  // Chunks after `high` start after the name; not every number up to it exists.
  for (std::uint64_t high = last_.number<std::uint64_t>(0) & number_max; low < high;) {
    const std::uint64_t middle = low + (high - low + 1) / 2;
    const auto chunk = chunk_from(directory, middle);
    if (chunk && chunk->first_name() <= name) {
      low = chunk->number;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

void StoredFiles::seek_behind(std::string_view name) {
  next_chunk_ = store_->find_chunk(directory_, name);
  if (go_to(name)) pop();
}

const std::string* StoredFiles::peek() {
  while (!name_) {
    if (!chunk_ && !fetch()) return nullptr;
    if (const auto file = chunk_->next()) {
      name_ = file->name;
    } else {
      if (!chunk_->ok()) fail_as_damaged();
      chunk_.reset();
    }
  }
  return &*name_;
}

bool StoredFiles::go_to(std::string_view name) {
  const std::string* at = peek();
  for (; at != nullptr && *at < name; at = peek()) pop();
  return at != nullptr && *at == name;
}

bool StoredFiles::fetch() {
  auto chunk = store_->chunk_from(directory_, next_chunk_);
  if (!chunk) return false;
  next_chunk_ = chunk->number + 1;
  bytes_ = std::make_unique<const std::string>(std::move(chunk->bytes));
  chunk_.emplace(*bytes_);
  return true;
}

bool FileFeed::update(const DirectoryRow& before, const Files& files, bool differs) {
  const bool is_known = (before.own.files == 0 && !is_first_) || store_.has(before.id);
  if (!is_known) {
    store_.add(before.id, files);
    return is_first_;
  }
  if (!differs) return true;
  store_.update(before.id, files,
                [&](std::string_view name, Change change) { changes_.add_file(before.id, name, change); });
  return true;
}

}  // namespace spoor::scanner
