#include "scanner/store/stored_children.h"

#include <utility>

namespace spoor::scanner {
namespace {

constexpr std::size_t fetched_max = 512;

}  // namespace

base::Result<DirectoryRow*> StoredChildren::peek() {
  if (at_ == fetched_.size() && !all_fetched_ && parent_ != 0) {
    auto rows = store_->children(parent_, last_name_, fetched_max);
    if (!rows) return rows.error();
    fetched_ = std::move(*rows);
    at_ = 0;
    all_fetched_ = fetched_.size() < fetched_max;
    if (!fetched_.empty()) last_name_ = fetched_.back().name;
  }
  return at_ < fetched_.size() ? &fetched_[at_] : nullptr;
}

}  // namespace spoor::scanner
