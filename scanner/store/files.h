#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "scanner/store/numbered_names.h"

namespace spoor::scanner {

// Anything in a directory that is not a directory itself.
struct File {
  std::string_view name;
  std::uint64_t signature = 0;  // of its name, size, mtime and ctime: part of the directory's signature
};

// The files of one directory. There may be millions: each takes 16 bytes and its name.
//
// Not thread-safe.
class Files {
 public:
  void add(std::string_view name, std::uint64_t signature) { list_.add(name, signature); }

  // Sorts by name, bytewise, and removes duplicate names.
  void sort() { list_.sort(); }

  std::size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  // The name is valid as long as this object, until the next add().
  File operator[](std::size_t number) const { return {list_.name(number), list_.number(number)}; }

  // Approximate heap use.
  std::size_t memory_bytes() const { return list_.memory_bytes(); }

 private:
  NumberedNames list_;
};

}  // namespace spoor::scanner
