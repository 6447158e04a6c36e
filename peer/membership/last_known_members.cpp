#include "peer/membership/last_known_members.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace spoor::peer {
namespace {

using std::chrono::milliseconds;

LastKnownMembers::Source update(const LastKnownMembers::Source& before, const SourceListing& listing,
                                std::size_t kept_max) {
  LastKnownMembers::Source after{{listing.listed.begin(), listing.listed.end()}, before.departed};
  const std::set<std::string> departed(listing.departed.begin(), listing.departed.end());
  if (!listing.problem.empty()) {
    // Those beyond the bound become departed: otherwise the list of a source would grow with each change of
    // its addresses.
    const std::size_t most = after.listed.size() + kept_max;
    for (const std::string& url : before.listed) {
      if (after.listed.size() == most) break;
      if (!departed.contains(url)) after.listed.insert(url);
    }
  }
  for (const auto& urls : {before.listed, departed}) {
    for (const std::string& url : urls) after.departed.try_emplace(url, milliseconds(0));
  }
  std::erase_if(after.departed, [&](const auto& member) { return after.listed.contains(member.first); });
  return after;
}

class ResponseUpdate {
 public:
  ResponseUpdate(milliseconds since_asked, const AddressStates& responses, const tracker::Cursors& stored,
                 const LastKnownRules& rules)
      : since_asked_(since_asked), responses_(responses), stored_(stored), rules_(rules) {}

  void update(LastKnownMembers::Source& source, const SourceListing& listing) const {
    auto& departed = source.departed;
    for (auto& [url, silence] : departed) {
      if (is(url, AddressState::answered)) silence = milliseconds(0);
      if (is(url, AddressState::silent)) silence += counted(listing.forget_after);
    }
    std::erase_if(departed, [&](const auto& member) {
      const auto& [url, silence] = member;
      const bool is_over =
          listing.problem.empty() && (silence >= listing.forget_after || listing.evicted.contains(url));
      return is(url, AddressState::left) || (is_over && may_be_forgotten(url));
    });
    keep_bounded(departed);
  }

 private:
  bool is(const std::string& url, AddressState state) const {
    const auto found = responses_.find(url);
    return found != responses_.end() && found->second == state;
  }

  bool may_be_forgotten(const std::string& url) const {
    return is(url, AddressState::silent) && (url == rules_.own_url || stored_.contains(url));
  }

  milliseconds counted(milliseconds forget_after) const {
    return std::min(since_asked_, std::max(forget_after / 4, milliseconds(1)));
  }

  void keep_bounded(std::map<std::string, milliseconds>& departed) const {
    if (departed.size() <= rules_.kept_max) return;
    std::vector<std::pair<milliseconds, std::string>> forgettable;
    for (const auto& [url, silence] : departed) {
      if (may_be_forgotten(url)) forgettable.emplace_back(silence, url);
    }
    std::sort(forgettable.rbegin(), forgettable.rend());
    const std::size_t surplus = departed.size() - rules_.kept_max;
    forgettable.resize(std::min(forgettable.size(), surplus));
    for (const auto& [silence, url] : forgettable) departed.erase(url);
  }

  const milliseconds since_asked_;
  const AddressStates& responses_;
  const tracker::Cursors& stored_;
  const LastKnownRules& rules_;
};

milliseconds time_since(const std::optional<base::WallTime>& then, base::WallTime now) {
  if (!then || now <= *then) return milliseconds(0);
  return std::chrono::floor<milliseconds>(now - *then);
}

// Of a source that is no longer configured.
SourceListing unconfigured(const std::string& source) { return {.source = source, .listed = {}}; }

}  // namespace

LastKnownMembers update_last_known_members(const LastKnownMembers& before,
                                           std::span<const SourceListing> listings,
                                           const LastKnownRules& rules) {
  LastKnownMembers after;
  after.asked_at = before.asked_at;
  for (const SourceListing& listing : listings) {
    const auto old = before.sources.find(listing.source);
    after.sources[listing.source] = update(
        old == before.sources.end() ? LastKnownMembers::Source() : old->second, listing, rules.kept_max);
  }
  for (const auto& [name, old] : before.sources) {
    if (!after.sources.contains(name)) after.sources[name] = update(old, unconfigured(name), rules.kept_max);
  }
  return after;
}

LastKnownMembers apply_responses(const LastKnownMembers& before, std::span<const SourceListing> listings,
                                 const AddressStates& responses, base::WallTime now,
                                 const tracker::Cursors& stored, const LastKnownRules& rules) {
  const ResponseUpdate responded(time_since(before.asked_at, now), responses, stored, rules);
  LastKnownMembers after = before;
  after.asked_at = now;
  for (auto at = after.sources.begin(); at != after.sources.end();) {
    auto& [name, source] = *at;
    const auto listing = std::ranges::find(listings, name, &SourceListing::source);
    const bool is_configured = listing != listings.end();
    responded.update(source, is_configured ? *listing : unconfigured(name));
    at = is_configured || !source.departed.empty() ? std::next(at) : after.sources.erase(at);
  }
  return after;
}

}  // namespace spoor::peer
