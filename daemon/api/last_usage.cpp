#include "daemon/api/last_usage.h"

#include <algorithm>
#include <utility>

#include "scanner/store/usage_sum.h"

namespace spoor::daemon {
namespace {

using scanner::Usage;
using scanner::UsageEntry;
using scanner::UsageGrowth;

void drop_growth(UsageEntry& entry) {
  std::erase_if(entry.children, [](const UsageEntry& child) {
    return child.growth && child.growth->change == UsageGrowth::Change::deleted;
  });
  entry.growth.reset();
  entry.rest.growth.reset();
  for (UsageEntry& child : entry.children) drop_growth(child);
}

// The first directories, with the others in the rest of their parents.
Usage shortened(const Usage& usage) {
  scanner::UsageSum sum;
  sum.add(usage);
  scanner::UsageOptions options;
  options.owners = usage.with_owners;
  options.children_max = LastUsage::entries_each;
  options.entries_max = LastUsage::entries_each;
  options.path_bytes_max = LastUsage::path_bytes_each;
  return sum.result(options);
}

std::size_t bytes_of(const LastUsage::Report& report) {
  constexpr std::size_t copied_bytes = 64;  // of a factor in a map, about
  std::size_t bytes = sizeof(report) + report.node.size() + report.url.size();
  scanner::for_each_entry(report.usage.total, [&](const UsageEntry& entry) {
    bytes += sizeof(entry) + entry.path.size();
    bytes += (entry.copied.size() + entry.rest.copied.size()) * copied_bytes;
  });
  if (report.usage.owners) bytes += report.usage.owners->list.size() * sizeof(report.usage.owners->list[0]);
  return bytes;
}

}  // namespace

void LastUsage::keep(const Query& query, Report report) {
  const auto same = std::ranges::find_if(newest_first_, [&](const Kept& kept) {
    return kept.report.node == report.node && kept.query == query;
  });
  if (same != newest_first_.end()) {
    bytes_ -= same->bytes;
    newest_first_.erase(same);
  }
  drop_growth(report.usage.total);
  report.usage = shortened(report.usage);
  const std::size_t bytes = query.path.size() + bytes_of(report);
  newest_first_.push_front({query, std::move(report), bytes});
  bytes_ += bytes;
  while (bytes_ > bytes_max) {
    bytes_ -= newest_first_.back().bytes;
    newest_first_.pop_back();
  }
}

const LastUsage::Report* LastUsage::of_node(std::string_view node, const Query& query) const {
  return find(query, [&](const Report& report) { return report.node == node; });
}

const LastUsage::Report* LastUsage::of_url(std::string_view url, const Query& query) const {
  return find(query, [&](const Report& report) { return report.url == url; });
}

const LastUsage::Report* LastUsage::find(const Query& query,
                                         const std::function<bool(const Report&)>& is_of) const {
  const Kept* deepest = nullptr;
  for (const Kept& kept : newest_first_) {
    if (kept.query.path != query.path || !is_of(kept.report)) continue;
    if (query.owners && !kept.report.usage.owners) continue;
    if (kept.query.depth >= query.depth) return &kept.report;
    if (deepest == nullptr || kept.query.depth > deepest->query.depth) deepest = &kept;
  }
  return deepest == nullptr ? nullptr : &deepest->report;
}

}  // namespace spoor::daemon
