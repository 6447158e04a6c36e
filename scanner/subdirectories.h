#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "scanner/numbered_names.h"

namespace spoor::scanner {

struct Subdirectory {
  std::string_view name;
  std::uint64_t inode = 0;  // as the listing gives it: beneath whatever is mounted there
};

// The subdirectories of one directory. There may be millions: each takes 16 bytes and its name.
//
// Not thread-safe.
class Subdirectories {
 public:
  void add(std::string_view name, std::uint64_t inode) { list_.add(name, inode); }

  // By name, bytewise; no name stays twice.
  void sort() { list_.sort(); }

  std::size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  // Its name is valid as long as the list is there.
  Subdirectory operator[](std::size_t number) const { return {list_.name(number), list_.number(number)}; }

  // What it takes on the heap, about.
  std::size_t memory_bytes() const { return list_.memory_bytes(); }

 private:
  NumberedNames list_;
};

}  // namespace spoor::scanner
