#include "peer/member_roll.h"

#include <algorithm>
#include <utility>

namespace spoor::peer {
namespace {

class Update {
 public:
  Update(base::WallTime now, const tracker::Cursors& stored, const RollRules& rules)
      : now_(now), stored_(stored), rules_(rules) {}

  MemberRoll::Source source(const MemberRoll::Source& before, const SourceAnswer& answer) const {
    MemberRoll::Source after;
    after.listed.insert(answer.urls.begin(), answer.urls.end());
    const bool is_whole = answer.problem.empty();
    if (!is_whole) keep_listed(before.listed, after.listed);
    after.lingering = before.lingering;
    for (const std::string& url : before.listed) after.lingering.try_emplace(url, now_);
    std::erase_if(after.lingering, [&](const auto& member) { return after.listed.contains(member.first); });
    for (auto& member : after.lingering) member.second = std::min(member.second, now_);
    if (is_whole) {
      std::erase_if(after.lingering, [&](const auto& member) {
        return now_ - member.second >= answer.forget_after && may_be_forgotten(member.first);
      });
    }
    keep_bounded(after.lingering);
    return after;
  }

 private:
  bool may_be_forgotten(const std::string& url) const {
    return url == rules_.own_url || stored_.contains(url);
  }

  // Those over the bound linger: names that never end would keep a source listing more and more.
  void keep_listed(const std::set<std::string>& before, std::set<std::string>& listed) const {
    const std::size_t most = listed.size() + rules_.kept_max;
    for (const std::string& url : before) {
      if (listed.size() == most) return;
      listed.insert(url);
    }
  }

  void keep_bounded(std::map<std::string, base::WallTime>& lingering) const {
    if (lingering.size() <= rules_.kept_max) return;
    std::vector<std::pair<base::WallTime, std::string>> forgettable;
    for (const auto& [url, since] : lingering) {
      if (may_be_forgotten(url)) forgettable.emplace_back(since, url);
    }
    std::sort(forgettable.begin(), forgettable.end());
    const std::size_t surplus = lingering.size() - rules_.kept_max;
    forgettable.resize(std::min(forgettable.size(), surplus));
    for (const auto& [since, url] : forgettable) lingering.erase(url);
  }

  const base::WallTime now_;
  const tracker::Cursors& stored_;
  const RollRules& rules_;
};

}  // namespace

MemberRoll update_roll(const MemberRoll& before, std::span<const SourceAnswer> answers, base::WallTime now,
                       const tracker::Cursors& stored, const RollRules& rules) {
  const Update update(now, stored, rules);
  MemberRoll after;
  for (const SourceAnswer& answer : answers) {
    const auto old = before.sources.find(answer.source);
    after.sources[answer.source] =
        update.source(old == before.sources.end() ? MemberRoll::Source() : old->second, answer);
  }
  for (const auto& [name, old] : before.sources) {
    if (after.sources.contains(name)) continue;
    auto left = update.source(old, {.source = name, .urls = {}, .problem = {}});
    if (!left.lingering.empty()) after.sources[name] = std::move(left);
  }
  return after;
}

}  // namespace spoor::peer
