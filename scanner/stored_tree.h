#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "scanner/directory_row.h"
#include "scanner/directory_store.h"
#include "scanner/stored_children.h"

namespace spoor::scanner {

// The stored directories of one drive, in the order in which a walk comes to them: the root first, each
// before those below it. Fails where the database does.
//
// Not thread-safe. The rows must not be written meanwhile.
class StoredTree {
 public:
  // `store` must outlive it.
  StoredTree(DirectoryStore& store, std::int64_t parent_of_root)
      : store_(store), parent_of_root_(parent_of_root) {}

  // Goes on behind the directory of that path, whether it is still there or not. Once, before next().
  base::Result<> seek_behind(std::string_view path);

  // The next one; nothing behind the last.
  base::Result<std::optional<DirectoryRow>> next();

  // Leaves out all below `row`, the one that next() returned last.
  void skip_below(const DirectoryRow& row);

  // Of the one that next() gave.
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
