#include "scanner/store/directory_names.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace spoor::scanner {
namespace {

constexpr unsigned number_bits = 24;
constexpr std::uint64_t number_max = DirectoryNames::number_end - 1;
// Leaves room for a directory to grow before its chunks have to be split.
constexpr std::size_t chunk_bytes_wanted = DirectoryNames::chunk_bytes_max / 2;
// Between the numbers of chunks that are appended: room for those that are split.
constexpr std::uint64_t number_step = 256;
constexpr std::size_t name_bytes_max = 0xFFFF;
constexpr std::string_view never_in_names("/\0", 2);

std::int64_t row_id(std::int64_t parent, std::uint64_t number) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(parent) << number_bits | number);
}

std::uint64_t number_of(const SqliteStatement& chunk) { return chunk.number<std::uint64_t>(0) & number_max; }

void require_ok(const NameChunkReader& reader) {
  if (!reader.ok()) throw SqliteError("the names of a directory cannot be read", SQLITE_CORRUPT);
}

std::string first_name(std::string_view bytes) {
  NameChunkReader reader(bytes);
  reader.next();
  require_ok(reader);
  return reader.name();
}

// Whole, or in several chunks if it is too large for one.
std::vector<std::string> cut(std::string bytes) {
  std::vector<std::string> pieces;
  if (bytes.size() <= DirectoryNames::chunk_bytes_max) {
    if (!bytes.empty()) pieces.push_back(std::move(bytes));
    return pieces;
  }
  NameChunkWriter out;
  NameChunkReader in(bytes);
  while (in.next()) {
    out.add(in.name(), in.directory());
    if (out.size_bytes() >= chunk_bytes_wanted) pieces.push_back(out.take());
  }
  require_ok(in);
  if (out.size_bytes() > 0) pieces.push_back(out.take());
  return pieces;
}

}  // namespace

void NameChunkWriter::add(std::string_view name, const NamedDirectory& directory) {
  const auto [end_of_last, end_of_name] = std::ranges::mismatch(last_name_, name);
  const auto shared = static_cast<std::size_t>(end_of_last - last_name_.begin());
  out_.number(shared);
  out_.number(name.size() - shared);
  out_.raw(name.substr(shared));
  out_.difference(static_cast<std::uint64_t>(directory.id) - static_cast<std::uint64_t>(last_.id));
  out_.difference(directory.inode - last_.inode);
  out_.u32(directory.birth);
  last_name_ = name;
  last_ = directory;
}

std::string NameChunkWriter::take() {
  last_name_.clear();
  last_ = {};
  return std::exchange(out_, {}).take();
}

bool NameChunkReader::next() {
  if (!is_ok_ || in_.remaining() == 0) return false;
  const std::uint64_t shared = in_.number();
  const std::string_view rest = in_.raw(in_.number());
  directory_.id = static_cast<std::int64_t>(static_cast<std::uint64_t>(directory_.id) + in_.difference());
  directory_.inode += in_.difference();
  directory_.birth = in_.u32();
  is_ok_ = in_.ok() && shared <= name_.size() && shared + rest.size() <= name_bytes_max &&
           (is_first_ || rest > std::string_view(name_).substr(shared)) && directory_.id > 0 &&
           rest.find_first_of(never_in_names) == std::string_view::npos;
  if (!is_ok_) return false;
  is_first_ = false;
  name_.resize(shared);
  name_ += rest;
  return true;
}

DirectoryNames::DirectoryNames(SqliteDatabase& database)
    : all_(database, "SELECT id, entries FROM names WHERE id BETWEEN ?1 AND ?2 ORDER BY id"),
      find_(database, "SELECT id, entries FROM names WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT 1"),
      last_(database, "SELECT id, entries FROM names WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1"),
      put_(database, "REPLACE INTO names(id, entries) VALUES(?1, ?2)"),
      erase_(database, "DELETE FROM names WHERE id BETWEEN ?1 AND ?2") {}

std::optional<NamedDirectory> DirectoryNames::find(std::int64_t parent, std::string_view name) {
  const bool goes_on =
      found_at_ && found_in_.parent == parent && found_in_.may_hold(name) && found_at_->name() <= name;
  if (!goes_on) {
    found_in_ = chunk_of(parent, name);
    found_at_.emplace(found_in_.bytes);
    if (!found_at_->next()) {
      require_ok(*found_at_);
      found_at_.reset();
      return std::nullopt;
    }
  }
  while (found_at_->name() < name) {
    if (found_at_->next()) continue;
    require_ok(*found_at_);
    found_at_.reset();
    return std::nullopt;
  }
  if (found_at_->name() != name) return std::nullopt;
  return found_at_->directory();
}

void DirectoryNames::for_each(
    std::int64_t parent, const std::optional<std::string>& after,
    const std::function<bool(std::string_view name, const NamedDirectory&)>& visit) {
  const std::uint64_t first = after ? chunk_of(parent, *after).number : 0;
  const SqliteStatement::Use use(all_, row_id(parent, first), row_id(parent, number_max));
  while (all_.step()) {
    NameChunkReader reader(all_.blob(1));
    while (reader.next()) {
      if (after && reader.name() <= *after) continue;
      if (!visit(reader.name(), reader.directory())) return;
    }
    require_ok(reader);
  }
}

void DirectoryNames::apply(std::int64_t parent, const NameChanges& changes) {
  found_at_.reset();
  for (auto from = changes.begin(); from != changes.end();) {
    const Chunk chunk = chunk_of(parent, from->first);
    auto to =
        std::find_if_not(from, changes.end(), [&](const auto& each) { return chunk.may_hold(each.first); });
    write(chunk, from, to);
    from = to;
  }
}

void DirectoryNames::write(const Chunk& chunk, NameChanges::const_iterator from,
                           NameChanges::const_iterator to) {
  NameChunkWriter merged;
  NameChunkReader in(chunk.bytes);
  for (bool is_there = in.next(); is_there || from != to;) {
    if (is_there && (from == to || in.name() < from->first)) {
      merged.add(in.name(), in.directory());
      is_there = in.next();
      continue;
    }
    if (from->second) merged.add(from->first, *from->second);
    if (is_there && in.name() == from->first) is_there = in.next();
    ++from;
  }
  require_ok(in);
  put_pieces(chunk, cut(merged.take()));
}

// In the place of the chunk. All chunks are moved apart if there are no numbers left between it and the next
// one: rare.
void DirectoryNames::put_pieces(const Chunk& chunk, const std::vector<std::string>& pieces) {
  if (pieces.empty()) return erase(chunk.parent, chunk.number, chunk.number);
  const std::uint64_t numbers = chunk.end_number - chunk.number;
  if (pieces.size() > numbers) return spread_all(chunk, pieces);
  const std::uint64_t step = std::min(numbers / pieces.size(), number_step);
  for (std::size_t at = 0; at < pieces.size(); ++at) put(chunk.parent, chunk.number + at * step, pieces[at]);
}

// All chunks of the directory, with these pieces in the place of one of them.
void DirectoryNames::spread_all(const Chunk& replaced, const std::vector<std::string>& pieces) {
  std::vector<std::string> all;
  for (auto chunk = chunk_from(replaced.parent, 0); chunk;
       chunk = chunk_from(replaced.parent, chunk->number + 1)) {
    if (chunk->number == replaced.number) {
      all.insert(all.end(), pieces.begin(), pieces.end());
    } else {
      all.push_back(std::move(chunk->bytes));
    }
  }
  if (all.size() > number_max) throw SqliteError("a directory has too many subdirectories", SQLITE_TOOBIG);
  erase_all(replaced.parent);
  const std::uint64_t step = std::min(number_max / all.size(), number_step);
  for (std::size_t at = 0; at < all.size(); ++at) put(replaced.parent, at * step, all[at]);
}

void DirectoryNames::erase_all(std::int64_t parent) { erase(parent, 0, number_max); }

void DirectoryNames::put(std::int64_t parent, std::uint64_t number, std::string_view bytes) {
  put_.run(row_id(parent, number), bytes);
}

void DirectoryNames::erase(std::int64_t parent, std::uint64_t first, std::uint64_t last) {
  found_at_.reset();
  erase_.run(row_id(parent, first), row_id(parent, last));
}

// The chunk of this number, or the next existing one. Its end is not set.
std::optional<DirectoryNames::Chunk> DirectoryNames::chunk_from(std::int64_t parent, std::uint64_t number) {
  if (number > number_max) return std::nullopt;
  const SqliteStatement::Use use(find_, row_id(parent, number), row_id(parent, number_max));
  if (!find_.step()) return std::nullopt;
  return Chunk{.parent = parent, .number = number_of(find_), .bytes = std::string(find_.blob(1)), .end = {}};
}

// The last chunk from `first` to `last`.
std::optional<DirectoryNames::Probe> DirectoryNames::last_of(std::int64_t parent, std::uint64_t first,
                                                             std::uint64_t last) {
  const SqliteStatement::Use use(last_, row_id(parent, first), row_id(parent, last));
  if (!last_.step()) return std::nullopt;
  return Probe{number_of(last_), first_name(last_.blob(1))};
}

// The chunk that holds this name, or would hold it; an empty one if there is none.
DirectoryNames::Chunk DirectoryNames::chunk_of(std::int64_t parent, std::string_view name) {
  const auto last = last_of(parent, 0, number_max);
  if (!last) return {.parent = parent, .bytes = {}, .end = {}};
  std::uint64_t low =
      0;  // `found` is the last one of those below this number that starts at the name or before
  std::optional<std::uint64_t> found;
  Probe next = *last;  // the first that is known to start after the name
  if (next.first_name <= name) {
    found = next.number;
  } else {
    while (low < next.number) {
      const std::uint64_t middle = low + (next.number - low) / 2;
      auto probe = last_of(parent, low, middle);
      if (probe && probe->first_name > name) {
        next = *std::move(probe);
        continue;
      }
      if (probe) found = probe->number;
      low = middle + 1;
    }
  }
  // No chunk begins before the first one.
  auto chunk = *chunk_from(parent, found.value_or(next.number));
  if (chunk.number == last->number) return chunk;
  const auto after = *chunk_from(parent, chunk.number + 1);
  chunk.is_last = false;
  chunk.end_number = after.number;
  chunk.end = first_name(after.bytes);
  return chunk;
}

}  // namespace spoor::scanner
