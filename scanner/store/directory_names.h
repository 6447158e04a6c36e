// The names of the directories: for each directory that has subdirectories, their names with what is needed
// to find and to know them, in chunks of some names each, by name (docs/formats.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_codec.h"
#include "scanner/database/sqlite.h"

namespace spoor::scanner {

// What is stored with the name of a directory.
struct NamedDirectory {
  std::int64_t id = 0;
  std::uint64_t inode = 0;  // DirectoryRow::inode
  std::uint32_t birth = 0;  // DirectoryRow::birth

  friend bool operator==(const NamedDirectory&, const NamedDirectory&) = default;
};

// Names that are new or changed, and with nothing those that are gone.
using NameChanges = std::map<std::string, std::optional<NamedDirectory>, std::less<>>;

// Not thread-safe.
class NameChunkWriter {
 public:
  // The name has at most 65,535 bytes, and sorts after the previous one.
  void add(std::string_view name, const NamedDirectory& directory);

  std::size_t size_bytes() const { return out_.bytes().size(); }

  // Returns the names added so far, and starts an empty chunk.
  std::string take();

 private:
  base::ByteWriter out_;
  std::string last_name_;
  NamedDirectory last_;
};

// Not thread-safe. The bytes must outlive it.
class NameChunkReader {
 public:
  explicit NameChunkReader(std::string_view bytes) : in_(bytes) {}

  // Whether there is a next name; false at the end, or if the bytes are not a valid chunk.
  bool next();

  // Of the name that next() found last.
  const std::string& name() const { return name_; }
  const NamedDirectory& directory() const { return directory_; }

  // False once next() has read invalid bytes.
  bool ok() const { return is_ok_; }

 private:
  base::ByteReader in_;
  std::string name_;
  NamedDirectory directory_;
  bool is_first_ = true;
  bool is_ok_ = true;
};

// The table `names`. Failures are SqliteError.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it.
class DirectoryNames {
 public:
  static constexpr std::size_t chunk_bytes_max = 64U << 10U;  // unless one name is larger
  // Chunks of a directory have numbers below this.
  static constexpr std::uint64_t number_end = std::uint64_t{1} << 24U;

  explicit DirectoryNames(SqliteDatabase& database);
  DirectoryNames(const DirectoryNames&) = delete;
  DirectoryNames& operator=(const DirectoryNames&) = delete;
  ~DirectoryNames() = default;

  std::optional<NamedDirectory> find(std::int64_t parent, std::string_view name);

  // By name, after the name `after`, or from the first one without it; until `visit` returns false. `visit`
  // must not use this object.
  void for_each(std::int64_t parent, const std::optional<std::string>& after,
                const std::function<bool(std::string_view name, const NamedDirectory&)>& visit);

  // Writes the chunks that differ.
  void apply(std::int64_t parent, const NameChanges& changes);

  void erase_all(std::int64_t parent);

 private:
  // Some names of one directory, as they are stored.
  struct Chunk {
    std::int64_t parent = 0;
    std::uint64_t number = 0;  // within its directory
    std::string bytes;
    bool is_last = true;
    std::string end;                        // the first name of the next chunk, unless it is the last
    std::uint64_t end_number = number_end;  // the number of that

    bool may_hold(std::string_view name) const { return is_last || name < end; }
  };

  struct Probe {
    std::uint64_t number = 0;
    std::string first_name;
  };

  Chunk chunk_of(std::int64_t parent, std::string_view name);
  std::optional<Chunk> chunk_from(std::int64_t parent, std::uint64_t number);
  std::optional<Probe> last_of(std::int64_t parent, std::uint64_t first, std::uint64_t last);
  void write(const Chunk& chunk, NameChanges::const_iterator from, NameChanges::const_iterator to);
  void put_pieces(const Chunk& chunk, const std::vector<std::string>& pieces);
  void spread_all(const Chunk& replaced, const std::vector<std::string>& pieces);
  void put(std::int64_t parent, std::uint64_t number, std::string_view bytes);
  void erase(std::int64_t parent, std::uint64_t first, std::uint64_t last);

  SqliteStatement all_;
  SqliteStatement find_;
  SqliteStatement last_;
  SqliteStatement put_;
  SqliteStatement erase_;
  // Names are mostly looked up in order: where the last lookup ended.
  Chunk found_in_;
  std::optional<NameChunkReader> found_at_;
};

}  // namespace spoor::scanner
