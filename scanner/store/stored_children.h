#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/directory_store.h"

namespace spoor::scanner {

// The stored children of one directory by name, fetched some hundred at a time: a directory of millions does
// not have to fit in memory. Rows up to the current one may be written during the iteration.
//
// Not thread-safe.
class StoredChildren {
 public:
  // `parent` 0: no children. Starts after the name `after`, if given. `store` must outlive it.
  StoredChildren(DirectoryStore& store, std::int64_t parent, std::optional<std::string> after = std::nullopt)
      : store_(&store), parent_(parent), last_name_(std::move(after)) {}

  // The current row; null after the last one. Valid until the next call.
  base::Result<DirectoryRow*> peek();

  // Moves to the next row, after peek().
  void pop() { ++at_; }

 private:
  DirectoryStore* store_;
  std::int64_t parent_;
  std::vector<DirectoryRow> fetched_;
  std::size_t at_ = 0;
  std::optional<std::string> last_name_;
  bool all_fetched_ = false;
};

}  // namespace spoor::scanner
