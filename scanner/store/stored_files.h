#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "scanner/store/file_chunk.h"
#include "scanner/store/file_store.h"

namespace spoor::scanner {

// The stored files of one directory, by name, read a chunk at a time: a directory of millions does not have
// to fit in memory. Failures are those of FileStore.
//
// Not thread-safe. `store` must outlive it.
class StoredFiles {
 public:
  StoredFiles(FileStore& store, std::int64_t directory) : store_(&store), directory_(directory) {}

  // Moves to the first file after this name. Call at most once, before all other functions.
  base::Result<> seek_behind(std::string_view name);

  // The name of the current file; null after the last one. Valid until the next move.
  base::Result<const std::string*> peek();

  // Moves to the next file.
  void pop() { name_.reset(); }

  // Moves to this name, or to the first one after it. Returns whether the name exists.
  base::Result<bool> go_to(std::string_view name);

 private:
  base::Result<bool> fetch();

  FileStore* store_;
  std::int64_t directory_;
  std::uint64_t next_chunk_ = 0;
  std::unique_ptr<const std::string> bytes_;  // read by chunk_; at a stable address when this object is moved
  std::optional<FileChunkReader> chunk_;
  std::optional<std::string> name_;
};

}  // namespace spoor::scanner
