#include "peer/membership/membership.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "peer/membership/last_known_members_file.h"

namespace spoor::peer {
namespace {

// Merges the sources into one view, each URL once.
class Merge {
 public:
  Merge(const std::optional<base::Endpoint>& own, const std::vector<base::Endpoint>& static_endpoints) {
    if (own) add(*own);
    for (const base::Endpoint& endpoint : static_endpoints) add(endpoint);
    view_.named_urls = known_;
  }

  void add(const LastKnownMembers& members) {
    for (const auto& [name, source] : members.sources) {
      for (const std::string& url : source.listed) add(name, url, view_.endpoints);
    }
    for (const auto& [name, source] : members.sources) {
      for (const auto& [url, silence] : source.departed) add(name, url, view_.departed);
    }
  }

  void add(const SourceListing& listing) {
    if (!listing.problem.empty()) add_unknown(fmt::format("{}: {}", listing.source, listing.problem));
    view_.expected.insert(view_.expected.end(), listing.expected.begin(), listing.expected.end());
    view_.gaps.insert(view_.gaps.end(), listing.gaps.begin(), listing.gaps.end());
    if (!listing.checkpoint.empty()) view_.checkpoint = listing.checkpoint;
  }

  void put_last(const std::set<std::string>& urls, bool keeps_first) {
    std::vector<base::Endpoint> last;
    std::erase_if(view_.endpoints, [&](const base::Endpoint& endpoint) {
      const bool is_first = &endpoint == &view_.endpoints.front();
      const bool is_late = !(keeps_first && is_first) && urls.contains(endpoint.to_string());
      if (is_late) last.push_back(endpoint);
      return is_late;
    });
    view_.endpoints.insert(view_.endpoints.end(), last.begin(), last.end());
  }

  void add_unknown(std::string why) { view_.unknown_sources.push_back(std::move(why)); }

  MembershipView take() && { return std::move(view_); }

 private:
  void add(const std::string& source, const std::string& url, std::vector<base::Endpoint>& list) {
    if (!known_.insert(url).second) return;
    auto endpoint = base::parse_endpoint(url);
    if (endpoint) {
      list.push_back(*std::move(endpoint));
    } else {
      add_unknown(fmt::format("{}: {}", source, endpoint.error().message));
    }
  }

  void add(const base::Endpoint& endpoint) {
    if (known_.insert(endpoint.to_string()).second) view_.endpoints.push_back(endpoint);
  }

  MembershipView view_;
  std::set<std::string> known_;  // URLs
};

}  // namespace

std::vector<std::string> urls_of(std::span<const base::Endpoint> endpoints, std::string& problem) {
  std::vector<std::string> urls;
  urls.reserve(endpoints.size());
  for (const base::Endpoint& endpoint : endpoints) {
    std::string url = endpoint.to_string();
    const auto parsed = base::parse_endpoint(url);
    if (parsed && *parsed == endpoint) {
      urls.push_back(std::move(url));
    } else if (problem.empty()) {
      problem = parsed ? fmt::format("'{}' is the URL of another address", url) : parsed.error().message;
    }
  }
  return urls;
}

Membership::Membership(Options options, std::optional<Store> store)
    : options_(std::move(options)), store_(std::move(store)) {}

LastKnownRules Membership::rules() const {
  return {.own_url = options_.own ? options_.own->to_string() : std::string()};
}

// Returns why members may be missing.
std::string Membership::load() {
  if (!store_) return {};
  LoadedMembers loaded = load_last_known_members(store_->files, store_->data_dir);
  last_known_ = std::move(loaded.last_known);
  is_damaged_ = loaded.is_damaged;
  // A file that is unreadable now may be whole: the next scan reads it.
  is_readable_ = loaded.problem.empty() || is_damaged_;
  return loaded.problem;
}

// Returns why the members could not be stored.
std::string Membership::store_listed(const LastKnownMembers& before) {
  const bool is_due = is_damaged_ || last_known_ != before;
  if (!store_ || store_->read_only || !is_readable_ || !is_due) return {};
  const auto stored = store_last_known_members(store_->files, store_->data_dir, last_known_, is_damaged_);
  if (!stored) return stored.error().message;
  is_damaged_ = false;
  return {};
}

MembershipView Membership::read(const LastScan& last) {
  Merge merge(options_.own, options_.static_endpoints);
  if (std::string problem = load(); !problem.empty()) merge.add_unknown(std::move(problem));
  listings_.clear();
  for (MemberSource* const source : options_.sources) {
    if (source != nullptr) std::ranges::move(source->list(last), std::back_inserter(listings_));
  }
  std::set<std::string> not_alive;
  for (const SourceListing& listing : listings_) {
    merge.add(listing);
    not_alive.insert(listing.not_alive.begin(), listing.not_alive.end());
  }
  const LastKnownMembers before = last_known_;
  last_known_ = update_last_known_members(before, listings_, rules());
  if (!store_) {
    for (auto& [name, source] : last_known_.sources) source.departed.clear();
  }
  merge.add(last_known_);
  if (std::string problem = store_listed(before); !problem.empty()) merge.add_unknown(std::move(problem));
  merge.put_last(not_alive, options_.own.has_value());
  MembershipView view = std::move(merge).take();
  if (view.checkpoint.empty()) view.checkpoint = last.checkpoint;
  return view;
}

base::Result<> Membership::store_responses(const AddressStates& responses, const tracker::Cursors& cursors) {
  // Members without a source of names are not remembered.
  if (!store_ || store_->read_only || !is_readable_ || last_known_.sources.empty()) return {};
  const auto after =
      apply_responses(last_known_, listings_, responses, store_->clock.wall_now(), cursors, rules());
  return store_last_known_members(store_->files, store_->data_dir, after, is_damaged_);
}

}  // namespace spoor::peer
