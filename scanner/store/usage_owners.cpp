#include "scanner/store/usage_owners.h"

#include <algorithm>
#include <utility>

namespace spoor::scanner {

void FirstOwners::add(const OwnerEntry& entry) {
  const auto before = [this](const OwnerEntry& a, const OwnerEntry& b) { return is_before(a, b); };
  std::vector<OwnerEntry>& list = owners_.list;
  list.push_back(entry);
  std::ranges::push_heap(list, before);
  if (list.size() <= count_max_) return;
  std::ranges::pop_heap(list, before);
  ++owners_.rest_count;
  owners_.rest.add(list.back().totals);
  list.pop_back();
}

UsageOwners FirstOwners::take() {
  std::ranges::sort_heap(owners_.list,
                         [this](const OwnerEntry& a, const OwnerEntry& b) { return is_before(a, b); });
  return std::move(owners_);
}

bool FirstOwners::is_before(const OwnerEntry& a, const OwnerEntry& b) const {
  const bool by_size = order_ == UsageOrder::size || order_ == UsageOrder::growth;
  if (by_size && a.totals.bytes != b.totals.bytes) return a.totals.bytes > b.totals.bytes;
  if (order_ == UsageOrder::files && a.totals.files != b.totals.files) return a.totals.files > b.totals.files;
  return a.owner < b.owner;
}

}  // namespace spoor::scanner
