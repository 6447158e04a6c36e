// The entries of one directory, as they are listed and stored.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scanner/store/directory_row.h"

namespace spoor::scanner {

// Names with a number each, as entries of the form {name, number}. There may be millions: each takes 16 bytes
// and its name, of 64 KiB at most.
//
// Not thread-safe.
template <class Entry>
class NumberedNames {
 public:
  void add(std::string_view name, std::uint64_t number) {
    items_.push_back({number, names_.size() << 16U | name.size()});
    names_ += name;
  }

  // Sorts by name, bytewise, and removes duplicate names.
  void sort() {
    const auto name = [this](const Item& item) { return name_of(item); };
    if (!std::ranges::is_sorted(items_, {}, name)) std::ranges::sort(items_, {}, name);
    const auto duplicates = std::ranges::unique(items_, {}, name);
    items_.erase(duplicates.begin(), duplicates.end());
  }

  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  // The name is valid as long as this object, until the next add().
  Entry operator[](std::size_t at) const { return {name_of(items_[at]), items_[at].number}; }

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

struct Subdirectory {
  std::string_view name;
  std::uint64_t inode = 0;  // as the listing gives it: of the directory beneath a mount
};
using Subdirectories = NumberedNames<Subdirectory>;

// Anything in a directory that is not a directory itself.
struct File {
  std::string_view name;
  std::uint64_t signature = 0;  // of its name, size, mtime and ctime: part of the directory's signature
};
using Files = NumberedNames<File>;

// A file that had more than one hard link when a directory was read, in that directory or elsewhere.
struct LinkedFile {
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;      // as in the directory's own totals
  std::uint64_t allocated = 0;  // likewise
  std::optional<Owner> owner = {};

  friend bool operator==(const LinkedFile&, const LinkedFile&) = default;
};

// The linked files of one directory, by inode, without duplicates.
using LinkedFiles = std::vector<LinkedFile>;

}  // namespace spoor::scanner
