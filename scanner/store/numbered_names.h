#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::scanner {

// Names with a number each. There may be millions: each takes 16 bytes and its name, of 64 KiB at most.
//
// Not thread-safe.
class NumberedNames {
 public:
  void add(std::string_view name, std::uint64_t number);

  // Sorts by name, bytewise, and removes duplicate names.
  void sort();

  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  // Valid as long as this object, until the next add().
  std::string_view name(std::size_t at) const { return name_of(items_[at]); }
  std::uint64_t number(std::size_t at) const { return items_[at].number; }

  // Approximate heap use.
  std::size_t memory_bytes() const { return items_.capacity() * sizeof(Item) + names_.capacity(); }

 private:
  struct Item {
    std::uint64_t number;
    std::uint64_t name;  // its offset in names_, 48 bits, and its length in bytes, 16
  };

  std::string_view name_of(const Item& item) const {
    return std::string_view(names_).substr(item.name >> 16U, item.name & 0xFFFFU);
  }

  std::vector<Item> items_;
  std::string names_;
};

}  // namespace spoor::scanner
