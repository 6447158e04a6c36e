// Marks on disk that the daemon has not acknowledged: a directory with a file for each time they were stored.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/file_system.h"
#include "client/mark_batch.h"

namespace spoor::client {

// A file is written whole or not at all: spoormk1, the number of batches (u32), for each its kind (u8),
// length (u32) and paths, and the checksum of all that (u64). Several clients may share a directory: marks
// that two of them send have the effect of one.
//
// Not thread-safe.
class Spool {
 public:
  // Fails if the directory can't be read. `files` must outlive the spool. `bytes_max`: of what this client
  // stores.
  static base::Result<Spool> open(base::FileSystem& files, std::filesystem::path directory,
                                  std::uint64_t bytes_max);

  // What this client knows of; it looks for files of others once, when it is opened.
  bool is_empty() const { return names_.empty(); }

  // On success the marks survive a power cut. Fails if there is no room, with nothing stored.
  base::Result<> append(const std::deque<MarkBatch>& batches);

  // Sends the marks, and removes each file whose marks are sent; ends with the first batch that could not be.
  // A file that is damaged is kept under another name, and reported once all others are sent.
  base::Result<> deliver(const std::function<bool(MarkBatch& batch)>& send);

 private:
  Spool(base::FileSystem& files, std::filesystem::path directory, std::uint64_t bytes_max);

  base::FileSystem* files_;
  std::filesystem::path directory_;
  std::uint64_t bytes_max_;
  std::string own_name_;       // the beginning of the names of its files: of no other client
  std::uint64_t written_ = 0;  // files
  std::uint64_t bytes_ = 0;    // since it was last empty
  std::deque<std::string> names_;
};

}  // namespace spoor::client
