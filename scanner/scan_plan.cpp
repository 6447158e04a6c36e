#include "scanner/scan_plan.h"

#include <algorithm>

namespace spoor::scanner {
namespace {

bool holds_any(const tracker::BloomFilter& filter) { return filter.bits_set() != 0; }

}  // namespace

bool reads_all_below(Reason reason) {
  switch (reason) {
    case Reason::clean:
    case Reason::marked:
    case Reason::left_below:
      return false;
    case Reason::tree_mark:
    case Reason::below_a_reason:
    case Reason::full:
    case Reason::unknown:
    case Reason::other_directory:
    case Reason::not_known_below:
      return true;
  }
  return true;
}

ScanPlan::ScanPlan(const tracker::MarkSet& marks, bool full)
    : marks_(marks),
      full_(full),
      any_tree_mark_(!marks.tree_marks().empty()),
      any_mark_(any_tree_mark_ || std::any_of(marks.filters().begin(), marks.filters().end(), holds_any)) {}

// The first two come first: they decide whether what is stored may be used at all.
Reason ScanPlan::reason(std::string_view path, const tracker::PathHasher& hasher, std::uint64_t inode,
                        const std::optional<Known>& known, std::optional<Reason> above) const {
  if (!known) return Reason::unknown;
  if (known->inode != inode) return Reason::other_directory;
  if (full_) return Reason::full;
  if (above && reads_all_below(*above)) return Reason::below_a_reason;
  if (known->all_below_dirty) return Reason::not_known_below;
  if (any_tree_mark_ && marks_.tree_marks().covers(path)) return Reason::tree_mark;
  if (in_a_filter(path, hasher)) return Reason::marked;
  if (any_tree_mark_ && marks_.tree_marks().has_below(path)) return Reason::marked;
  return known->left_below ? Reason::left_below : Reason::clean;
}

// No mark names the root, since it is a prefix of them all (but a file at the top puts it in).
bool ScanPlan::in_a_filter(std::string_view path, const tracker::PathHasher& hasher) const {
  if (!any_mark_) return false;
  return path.empty() || marks_.filters_may_contain(hasher.hash());
}

}  // namespace spoor::scanner
