#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "scanner/numbered_names.h"

namespace spoor::scanner {

// Anything in a directory that is not a directory itself.
struct File {
  std::string_view name;
  std::uint64_t signature = 0;  // of its name, size, mtime and ctime: as it goes into the directory's own
};

// The files of one directory. There may be millions: each takes 16 bytes and its name.
//
// Not thread-safe.
class Files {
 public:
  void add(std::string_view name, std::uint64_t signature) { list_.add(name, signature); }

  // By name, bytewise; no name stays twice.
  void sort() { list_.sort(); }

  std::size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  // Its name is valid as long as the list is there.
  File operator[](std::size_t number) const { return {list_.name(number), list_.number(number)}; }

  // What it takes on the heap, about.
  std::size_t memory_bytes() const { return list_.memory_bytes(); }

 private:
  NumberedNames list_;
};

}  // namespace spoor::scanner
