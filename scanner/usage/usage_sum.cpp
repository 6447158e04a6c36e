#include "scanner/usage/usage_sum.h"

#include <algorithm>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

namespace spoor::scanner {
namespace {

bool is_child(std::string_view path, std::string_view parent) {
  if (!path.starts_with(parent)) return false;
  path.remove_prefix(parent.size());
  if (!parent.empty() && !path.starts_with('/')) return false;
  if (!parent.empty()) path.remove_prefix(1);
  return !path.empty() && path != "." && path != ".." && path.find('/') == std::string_view::npos;
}

// Nothing if one of them is unknown. A change that differs between nodes is growth.
void add_growth(std::optional<UsageGrowth>& sum, bool is_first, const std::optional<UsageGrowth>& other) {
  if (is_first) {
    sum = other;
  } else if (!sum || !other) {
    sum.reset();
  } else {
    sum->add(*other);
    if (sum->change == other->change && sum->from == other->from) return;
    sum->change = UsageGrowth::Change::grown;
    sum->from.clear();
  }
}

}  // namespace

void UsageSum::add(const Usage& usage) {
  path_ = usage.total.path;
  ++usages_;
  if (usage.is_absent) ++absent_;
  has_as_of_ = has_as_of_ && usage.as_of;
  if (usage.as_of) as_of_ = std::min(as_of_, *usage.as_of);
  saw_everything_ = saw_everything_ && usage.saw_everything;
  truncated_ = truncated_ || usage.truncated;
  is_scanning_ = is_scanning_ || usage.is_scanning;
  has_copy_rules_ = has_copy_rules_ || usage.has_copy_rules;
  has_growth_ = has_growth_ && usage.history_since;
  if (usage.history_since)
    history_since_ = std::max(history_since_.value_or(*usage.history_since), *usage.history_since);
  history_is_full_ = history_is_full_ || usage.history_is_full;
  // A node that never had the directory has no history of it.
  if (!usage.is_absent) add_growth(top_.figures.growth, usages_ - absent_ == 1, usage.total.growth);
  if (!usage.is_absent) add_owners(usage);
  add(top_, usage.total);
}

// An owner that one node lists may be in the rest of another one.
void UsageSum::add_owners(const Usage& usage) {
  has_owners_ = has_owners_ && usage.owners;
  if (!has_owners_) return;
  owners_complete_ = owners_complete_ && usage.owners->complete && usage.owners->rest_count == 0;
  more_owners_.rest_count = saturating_add(more_owners_.rest_count, usage.owners->rest_count);
  more_owners_.rest.add(usage.owners->rest);
  for (const auto& [owner, totals] : usage.owners->list) {
    if (owners_.size() < owners_held_max || owners_.contains(owner)) {
      owners_[owner].add(totals);
    } else {
      owners_complete_ = false;
      ++more_owners_.rest_count;
      more_owners_.rest.add(totals);
    }
  }
}

void UsageSum::add(Node& node, const UsageEntry& entry) {
  node.figures.add(entry);
  node.mtime_ns = std::max(node.mtime_ns, entry.mtime_ns);
  node.is_open = node.is_open || entry.is_open;
  const bool has_rest = entry.rest.count > 0;
  // A bound on the whole answer of a node leaves directories closed.
  bool is_cut = has_rest || entry.is_unread || (!entry.is_open && entry.dirs > 0);
  if (has_rest) {
    add_growth(node.rest.growth, node.rest.count == 0, entry.rest.growth);
    node.rest.count = saturating_add(node.rest.count, entry.rest.count);
    node.rest.add(entry.rest);
  }
  std::vector<Node*> listed;
  for (const UsageEntry& child : entry.children) {
    if (!is_child(child.path, entry.path)) continue;
    auto known = node.children.find(child.path);
    if (known == node.children.end()) {
      const bool fits =
          held_ < entries_held_max && path_bytes_held_ + child.path.size() <= path_bytes_held_max;
      if (!fits) {
        add_to_rest(node.rest, child);
        is_cut = truncated_ = true;
        continue;
      }
      ++held_;
      path_bytes_held_ += child.path.size();
      known = node.children.emplace(child.path, Node()).first;
      known->second.figures.growth = child.growth;
    } else {
      add_growth(known->second.figures.growth, false, child.growth);
    }
    listed.push_back(&known->second);
    add(known->second, child);
  }
  if (!is_cut) return;
  ++node.cut;
  for (Node* const child : listed) ++child->listed_by_cut;
}

Usage UsageSum::result(const UsageOptions& options) const {
  Usage usage;
  if (usages_ > 0 && has_as_of_) usage.as_of = as_of_;
  usage.saw_everything = saw_everything_;
  usage.truncated = truncated_;
  usage.is_scanning = is_scanning_;
  usage.is_absent = absent_ == usages_;
  usage.has_copy_rules = has_copy_rules_;
  if (has_growth_) usage.history_since = history_since_;
  usage.history_is_full = history_is_full_;
  usage.with_owners = options.owners;
  if (options.owners && has_owners_ && !top_.figures.is_saturated()) {
    FirstOwners first(options.order, options.children_max);
    for (const auto& [owner, totals] : owners_) first.add({owner, totals});
    usage.owners = first.take();
    usage.owners->complete = owners_complete_;
    usage.owners->rest_count = saturating_add(usage.owners->rest_count, more_owners_.rest_count);
    usage.owners->rest.add(more_owners_.rest);
  }
  static_cast<UsageFigures&>(usage.total) = top_.figures;
  usage.total.path = path_;
  usage.total.mtime_ns = top_.mtime_ns;
  std::uint64_t entries_left = options.entries_max;
  std::uint64_t path_bytes_left = options.path_bytes_max;
  struct Waiting {
    UsageEntry* entry;
    const Node* node;
    bool is_exact;  // all nodes that have it list it
  };
  std::deque<Waiting> waiting{{&usage.total, &top_, true}};
  // Level by level, so that bounds cut the deepest levels.
  for (; !waiting.empty(); waiting.pop_front()) {
    const auto [entry, node, is_exact] = waiting.front();
    entry->is_open = node->is_open;
    entry->rest = node->rest;
    entry->rest.complete = entry->rest.complete && is_exact;
    if (!has_growth_) entry->growth.reset();
    if (!has_growth_) entry->rest.growth.reset();
    struct Listed {
      UsageEntry entry;
      const Node* node;
      bool is_exact;
    };
    std::vector<Listed> children;
    for (const auto& [path, child] : node->children) {
      children.push_back({UsageEntry(), &child, is_exact && child.listed_by_cut == node->cut});
      UsageEntry& listed = children.back().entry;
      static_cast<UsageFigures&>(listed) = child.figures;
      listed.complete = listed.complete && children.back().is_exact;
      if (!has_growth_) listed.growth.reset();
      listed.path = path;
      listed.depth = entry->depth + 1;
      listed.mtime_ns = child.mtime_ns;
    }
    std::ranges::sort(children, [&](const auto& one, const auto& other) {
      return is_before(options.order, one.entry, other.entry);
    });
    std::size_t kept = 0;
    for (; kept < children.size() && kept < std::min(options.children_max, entries_left); ++kept) {
      const std::uint64_t path_bytes = children[kept].entry.path.size();
      if (path_bytes > path_bytes_left) break;
      path_bytes_left -= path_bytes;
    }
    entries_left -= kept;
    if (kept < std::min<std::uint64_t>(options.children_max, children.size())) usage.truncated = true;
    for (std::size_t at = kept; at < children.size(); ++at) add_to_rest(entry->rest, children[at].entry);
    entry->children.reserve(kept);  // `waiting` points into it
    for (std::size_t at = 0; at < kept; ++at) {
      entry->children.push_back(std::move(children[at].entry));
      waiting.push_back({&entry->children.back(), children[at].node, children[at].is_exact});
    }
  }
  return usage;
}

}  // namespace spoor::scanner
