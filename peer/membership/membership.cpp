#include "peer/membership/membership.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace spoor::peer {

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

MembershipView merge_members(const std::optional<base::Endpoint>& own,
                             std::span<const base::Endpoint> static_endpoints,
                             std::span<const SourceListing> listings) {
  MembershipView view;
  std::set<std::string> urls;
  const auto add = [&](const base::Endpoint& endpoint) {
    if (urls.insert(endpoint.to_string()).second) view.endpoints.push_back(endpoint);
  };
  if (own) add(*own);
  for (const base::Endpoint& endpoint : static_endpoints) add(endpoint);
  view.named_urls = urls;
  std::set<std::string> not_alive;
  std::set<std::string> elsewhere = urls;
  for (const SourceListing& listing : listings) {
    const auto is_unknown = [&](const std::string& why) {
      view.unknown_sources.push_back(fmt::format("{}: {}", listing.source, why));
    };
    if (!listing.problem.empty()) is_unknown(listing.problem);
    for (const std::string& url : listing.listed) {
      if (!listing.not_alive.contains(url)) elsewhere.insert(url);
      const auto endpoint = base::parse_endpoint(url);
      if (endpoint) {
        add(*endpoint);
      } else {
        is_unknown(endpoint.error().message);
      }
    }
    for (const auto& [name, homes] : listing.homes)
      view.listed_homes[name].insert(homes.begin(), homes.end());
    view.registered.insert(listing.registered.begin(), listing.registered.end());
    not_alive.insert(listing.not_alive.begin(), listing.not_alive.end());
  }
  std::ranges::set_difference(not_alive, elsewhere, std::inserter(view.not_alive, view.not_alive.end()));
  std::vector<base::Endpoint> late;
  std::erase_if(view.endpoints, [&](const base::Endpoint& each) {
    const bool is_own = own && each == *own;
    const bool is_late = !is_own && not_alive.contains(each.to_string());
    if (is_late) late.push_back(each);
    return is_late;
  });
  view.endpoints.insert(view.endpoints.end(), late.begin(), late.end());
  return view;
}

}  // namespace spoor::peer
