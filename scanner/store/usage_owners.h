#pragma once

#include <cstdint>
#include <vector>

#include "scanner/store/owner_sums.h"

namespace spoor::scanner {

enum class UsageOrder {
  size,  // apparent size, the largest first
  files,
  name,
  growth,  // in bytes, the largest change first, of either sign; those without history last
};

// Who owns the files of a directory and of all below it.
struct UsageOwners {
  std::vector<OwnerEntry> list;  // in the requested order; by growth as by size, by name as by the ids
  std::uint64_t rest_count = 0;  // further owners
  OwnedTotals rest;              // of them
  // Whether an owner's figures contain all of its files.
  bool complete = true;
};

// Keeps the first owners in an order, and sums up the others.
//
// Not thread-safe.
class FirstOwners {
 public:
  FirstOwners(UsageOrder order, std::uint64_t count_max) : order_(order), count_max_(count_max) {}

  void add(const OwnerEntry& entry);

  // Call last.
  UsageOwners take();

 private:
  bool is_before(const OwnerEntry& a, const OwnerEntry& b) const;

  const UsageOrder order_;
  const std::uint64_t count_max_;
  UsageOwners owners_;  // its list is a heap with the last one in the order on top
};

}  // namespace spoor::scanner
