#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "scanner/file_chunk.h"
#include "scanner/file_store.h"

namespace spoor::scanner {

// The files that are kept of one directory, by name, a chunk at a time: a directory of millions does not have
// to fit in memory. Fails where the database does.
//
// Not thread-safe. `store` must outlive it.
class StoredFiles {
 public:
  StoredFiles(FileStore& store, std::int64_t directory) : store_(&store), directory_(directory) {}

  // Goes on to the first one behind that name. Once, and first.
  base::Result<> seek_behind(std::string_view name);

  // The name of the one it stands on; null behind the last one. Valid until it goes on.
  base::Result<const std::string*> peek();

  // Goes on to the next one.
  void pop() { name_.reset(); }

  // Goes on to that name, or behind it where there is none. Whether there is one.
  base::Result<bool> go_to(std::string_view name);

 private:
  base::Result<bool> fetch();

  FileStore* store_;
  std::int64_t directory_;
  std::uint64_t next_chunk_ = 0;
  std::unique_ptr<const std::string> bytes_;  // read by chunk_, wherever this is moved to
  std::optional<FileChunkReader> chunk_;
  std::optional<std::string> name_;
};

}  // namespace spoor::scanner
