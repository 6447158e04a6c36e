// Marks on disk that the daemon has not acknowledged: a directory with a file for each batch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file_system.h"
#include "tracker/paths/path.h"

namespace spoor::client {

using tracker::MarkKind;

// The value of the parameter `kind`.
constexpr const char* kind_name(MarkKind kind) {
  constexpr std::array<const char*, 3> names = {"dir", "file", "tree"};
  return names.at(static_cast<std::size_t>(kind));
}

// Marks of one kind, in the form of a request to POST /v1/marks.
struct MarkBatch {
  MarkKind kind = MarkKind::dir;
  std::string paths = {};  // each followed by a NUL
  std::uint64_t count = 0;
};

// A file is written whole or not at all: spoormk1, the kind (u8), the paths, and the checksum of all that
// (u64). Several clients may share a directory: marks that two of them send have the effect of one. A file
// `ID.socket` has the path of the socket of the daemon that they are for; its name, which is random, tells
// the directory from any other at the same path.
//
// Not thread-safe.
class Spool {
 public:
  struct File {
    std::string name;
    MarkBatch batch;
  };

  // Fails if the directory can't be read, or has marks for another daemon. `files` must outlive the spool.
  // `bytes_max`: of all files in it.
  static base::Result<Spool> open(base::FileSystem& files, const std::filesystem::path& directory,
                                  const std::filesystem::path& socket, std::uint64_t bytes_max);

  // The files that this client knows of: it looks for those of others when it is opened, and when one is
  // gone.
  std::size_t size() const { return entries_.size(); }

  // On success the batch survives a power cut. Fails if there is no room, or the directory is another one
  // than was opened: it was replaced, or its file system is not mounted.
  base::Result<> append(const MarkBatch& batch);

  // The first file; nothing if another client has sent it. Fails if it can't be read, if the directory is
  // another one, or if the file is damaged, std::errc::bad_message: it is none of the files then.
  base::Result<std::optional<File>> first();
  const std::string& first_name() const { return entries_.front().name; }

  // Renames the damaged files that first() has met since the last call, and says which: their marks are lost.
  // Until then, the next client finds them, too.
  std::optional<std::string> set_damaged_aside();

  // Removes the file: its marks are acknowledged.
  base::Result<> remove(const std::string& name);

  // Puts a file with these marks, the rest of those of a file, in its place, at the end; if there is room.
  void shorten(const File& rest);

  // Puts the file behind the others.
  void put_last(const std::string& name);

 private:
  struct Entry {
    std::string name;
    std::uint64_t bytes;
  };

  Spool(base::FileSystem& files, std::filesystem::path directory, std::string socket,
        std::uint64_t bytes_max);

  base::Result<> identify();
  base::Result<> find_identity(const std::vector<std::string>& names);
  base::Result<> check_directory() const;
  base::Error other_directory() const;
  base::Result<> look();
  bool has_room(std::uint64_t bytes) const;
  void forget(const std::string& name);

  base::FileSystem* files_;
  std::filesystem::path directory_;
  std::string socket_;
  std::uint64_t bytes_max_;
  std::string own_name_;                // the beginning of the names of its files: of no other client
  std::string identity_;                // the name of a file that no other directory has
  std::uint64_t written_ = 0;           // files, or attempts
  std::uint64_t bytes_ = 0;             // of all entries, and what else was there
  std::uint64_t bytes_since_look_ = 0;  // written
  std::deque<Entry> entries_;
  std::vector<std::string> damaged_;  // no longer entries, and not renamed yet
};

}  // namespace spoor::client
