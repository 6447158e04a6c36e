// Marks on disk that the daemon has not acknowledged: a directory with a file for each batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/file_system.h"
#include "client/mark_batch.h"

namespace spoor::client {

// A file is written whole or not at all: spoormk1, the kind (u8), the paths, and the checksum of all that
// (u64). Several clients may share a directory: marks that two of them send have the effect of one. The file
// `socket` has the path of the socket of the daemon that they are for.
//
// Not thread-safe.
class Spool {
 public:
  // Fails if the directory can't be read, or has marks for another daemon. `files` must outlive the spool.
  // `bytes_max`: of all files in it.
  static base::Result<Spool> open(base::FileSystem& files, const std::filesystem::path& directory,
                                  const std::filesystem::path& socket, std::uint64_t bytes_max);

  // The files that this client knows of: it looks for those of others once, when it is opened.
  std::size_t size() const { return entries_.size(); }

  // On success the batch survives a power cut. Fails if there is no room, or the directory is another one
  // than was opened: it was replaced, or its file system is not mounted.
  base::Result<> append(const MarkBatch& batch);

  // The batch of the first file; nothing if another client has sent it. Fails if the file can't be read, if
  // the directory is another one, or if the file is damaged: it is renamed then, and its marks are lost.
  base::Result<std::optional<MarkBatch>> first();

  // Removes the first file: its marks are acknowledged.
  base::Result<> remove_first();

  // Puts a file with these marks, the rest of the first one's, in its place, at the end; if there is room.
  void shorten_first(const MarkBatch& rest);

  // Puts the first file behind the others.
  void skip_first();

 private:
  struct Entry {
    std::string name;
    std::uint64_t bytes;
  };

  Spool(base::FileSystem& files, std::filesystem::path directory, std::string socket,
        std::uint64_t bytes_max);

  base::Result<> check_directory() const;
  std::filesystem::path first_file() const { return directory_ / entries_.front().name; }
  void forget_first();

  base::FileSystem* files_;
  std::filesystem::path directory_;
  std::string socket_;
  std::uint64_t bytes_max_;
  std::string own_name_;       // the beginning of the names of its files: of no other client
  std::uint64_t written_ = 0;  // files, or attempts
  std::uint64_t bytes_ = 0;    // of all entries, and what else was there
  std::deque<Entry> entries_;
};

}  // namespace spoor::client
