#include "scanner/store/numbered_names.h"

#include <algorithm>

namespace spoor::scanner {

void NumberedNames::add(std::string_view name, std::uint64_t number) {
  items_.push_back({number, names_.size() << 16U | name.size()});
  names_ += name;
}

void NumberedNames::sort() {
  const auto by_name = [this](const Item& a, const Item& b) { return name_of(a) < name_of(b); };
  const auto same_name = [this](const Item& a, const Item& b) { return name_of(a) == name_of(b); };
  if (!std::is_sorted(items_.begin(), items_.end(), by_name))
    std::sort(items_.begin(), items_.end(), by_name);
  items_.erase(std::unique(items_.begin(), items_.end(), same_name), items_.end());
}

}  // namespace spoor::scanner
