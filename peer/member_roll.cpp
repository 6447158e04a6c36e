#include "peer/member_roll.h"

#include <algorithm>
#include <utility>

namespace spoor::peer {
namespace {

using std::chrono::milliseconds;

class Update {
 public:
  Update(const SourceAnswer& answer, const RollRules& rules)
      : answer_(answer),
        rules_(rules),
        listed_(answer.urls.begin(), answer.urls.end()),
        lingering_(answer.lingering.begin(), answer.lingering.end()) {}

  MemberRoll::Source of(const MemberRoll::Source& before) {
    if (!answer_.problem.empty()) keep_listed(before.listed);
    MemberRoll::Source after{listed_, before.lingering};
    for (const auto& urls : {before.listed, lingering_}) {
      for (const std::string& url : urls) after.lingering.try_emplace(url, milliseconds(0));
    }
    std::erase_if(after.lingering, [&](const auto& member) { return listed_.contains(member.first); });
    return after;
  }

 private:
  // Those over the bound linger: names that never end would keep a source listing more and more.
  void keep_listed(const std::set<std::string>& before) {
    const std::size_t most = listed_.size() + rules_.kept_max;
    for (const std::string& url : before) {
      if (listed_.size() == most) return;
      if (!lingering_.contains(url)) listed_.insert(url);
    }
  }

  const SourceAnswer& answer_;
  const RollRules& rules_;
  std::set<std::string> listed_;
  const std::set<std::string> lingering_;
};

class Settlement {
 public:
  Settlement(milliseconds since_asked, const AddressStates& asked, const tracker::Cursors& stored,
             const RollRules& rules)
      : since_asked_(since_asked), asked_(asked), stored_(stored), rules_(rules) {}

  void settle(MemberRoll::Source& source, const SourceAnswer& answer) const {
    auto& lingering = source.lingering;
    for (auto& [url, silence] : lingering) {
      if (is(url, AddressState::answered)) silence = milliseconds(0);
      if (is(url, AddressState::silent)) silence += counted(answer.forget_after);
    }
    std::erase_if(lingering, [&](const auto& member) {
      const auto& [url, silence] = member;
      const bool is_over =
          answer.problem.empty() && (silence >= answer.forget_after || answer.struck.contains(url));
      return is(url, AddressState::left) || (is_over && may_be_forgotten(url));
    });
    keep_bounded(lingering);
  }

 private:
  bool is(const std::string& url, AddressState state) const {
    const auto found = asked_.find(url);
    return found != asked_.end() && found->second == state;
  }

  bool may_be_forgotten(const std::string& url) const {
    return is(url, AddressState::silent) && (url == rules_.own_url || stored_.contains(url));
  }

  milliseconds counted(milliseconds forget_after) const {
    return std::min(since_asked_, std::max(forget_after / 4, milliseconds(1)));
  }

  void keep_bounded(std::map<std::string, milliseconds>& lingering) const {
    if (lingering.size() <= rules_.kept_max) return;
    std::vector<std::pair<milliseconds, std::string>> forgettable;
    for (const auto& [url, silence] : lingering) {
      if (may_be_forgotten(url)) forgettable.emplace_back(silence, url);
    }
    std::sort(forgettable.rbegin(), forgettable.rend());
    const std::size_t surplus = lingering.size() - rules_.kept_max;
    forgettable.resize(std::min(forgettable.size(), surplus));
    for (const auto& [silence, url] : forgettable) lingering.erase(url);
  }

  const milliseconds since_asked_;
  const AddressStates& asked_;
  const tracker::Cursors& stored_;
  const RollRules& rules_;
};

milliseconds time_since(const std::optional<base::WallTime>& then, base::WallTime now) {
  if (!then || now <= *then) return milliseconds(0);
  return std::chrono::floor<milliseconds>(now - *then);
}

// Of a source that is no longer configured.
SourceAnswer nobody(const std::string& source) {
  return {.source = source, .urls = {}, .lingering = {}, .problem = {}};
}

}  // namespace

MemberRoll update_roll(const MemberRoll& before, std::span<const SourceAnswer> answers,
                       const RollRules& rules) {
  MemberRoll after;
  after.asked_at = before.asked_at;
  for (const SourceAnswer& answer : answers) {
    const auto old = before.sources.find(answer.source);
    after.sources[answer.source] =
        Update(answer, rules).of(old == before.sources.end() ? MemberRoll::Source() : old->second);
  }
  for (const auto& [name, old] : before.sources) {
    if (!after.sources.contains(name)) after.sources[name] = Update(nobody(name), rules).of(old);
  }
  return after;
}

MemberRoll settle_roll(const MemberRoll& before, std::span<const SourceAnswer> answers,
                       const AddressStates& asked, base::WallTime now, const tracker::Cursors& stored,
                       const RollRules& rules) {
  const Settlement settlement(time_since(before.asked_at, now), asked, stored, rules);
  MemberRoll after = before;
  after.asked_at = now;
  for (auto& [name, source] : after.sources) {
    const auto answer = std::find_if(answers.begin(), answers.end(),
                                     [&](const SourceAnswer& one) { return one.source == name; });
    settlement.settle(source, answer == answers.end() ? nobody(name) : *answer);
  }
  std::erase_if(after.sources, [&](const auto& source) {
    const bool is_configured = std::any_of(
        answers.begin(), answers.end(), [&](const SourceAnswer& one) { return one.source == source.first; });
    return !is_configured && source.second.lingering.empty();
  });
  return after;
}

}  // namespace spoor::peer
