#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "scanner/directory_row.h"
#include "scanner/directory_store.h"

namespace spoor::scanner {

// The stored children of one directory by name, fetched some hundred at a time: a directory of
// millions does not have to fit in memory. Rows up to the one it stands on may be written meanwhile.
//
// Not thread-safe.
class StoredChildren {
 public:
  // `parent` 0: there are none. Only those behind the name `after`, where one is given. `store` must outlive
  // it.
  StoredChildren(DirectoryStore& store, std::int64_t parent, std::optional<std::string> after = std::nullopt)
      : store_(&store), parent_(parent), last_name_(std::move(after)) {}

  // The row it stands on; null behind the last one. Valid until the next call.
  base::Result<DirectoryRow*> peek();

  // Goes on to the next row.
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
