#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/directory_store.h"
#include "scanner/store/stored_children.h"

namespace spoor::scanner {

// The stored directories of one drive in the order of a walk: the root first, each before those below it.
// Failures are those of DirectoryStore.
//
// Not thread-safe. The rows must not be written during the iteration.
class StoredTree {
 public:
  // `store` must outlive it.
  StoredTree(DirectoryStore& store, std::int64_t parent_of_root)
      : store_(store), parent_of_root_(parent_of_root) {}

  // Starts after the directory of this path, even if it no longer exists. Once, before next().
  base::Result<> seek_behind(std::string_view path);

  // The next directory; nothing after the last one.
  base::Result<std::optional<DirectoryRow>> next();

  // Skips all below `row`, which next() returned last.
  void skip_below(const DirectoryRow& row);

  // The path of the directory that next() returned last.
  const std::string& path() const { return path_; }

 private:
  struct Level {
    StoredChildren children;
    std::size_t path_bytes = 0;  // of the directory whose children they are
  };

  void go_below(const DirectoryRow& row, std::optional<std::string> after);

  DirectoryStore& store_;
  const std::int64_t parent_of_root_;
  bool has_begun_ = false;
  std::deque<Level> open_;
  std::string path_;
};

}  // namespace spoor::scanner
