#include "peer/members.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "peer/member_roll.h"
#include "peer/member_roll_file.h"

namespace spoor::peer {
namespace {

std::vector<std::string> urls_of(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> urls;
  urls.reserve(endpoints.size());
  for (const Endpoint& endpoint : endpoints) urls.push_back(endpoint.to_string());
  return urls;
}

std::vector<SourceAnswer> ask_dns(const MemberSources& sources, Resolver& resolver) {
  std::vector<DnsSource> names;
  for (const DnsSource& name : sources.dns) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.empty()) return {};
  const auto found = resolver.resolve(names);
  std::vector<SourceAnswer> answers;
  answers.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    answers.push_back({.source = "dns " + names[i].to_string(),
                       .urls = urls_of(found[i].endpoints),
                       .problem = found[i].problem,
                       .forget_after = sources.forget_after});
  }
  return answers;
}

// Its list is the whole truth: whoever left it is not asked any longer.
SourceAnswer ask(const MemberRegistry& registry) {
  SourceAnswer answer{.source = registry.label, .urls = {}, .problem = {}};
  const auto listed = registry.list();
  if (listed) {
    answer.urls = urls_of(*listed);
  } else {
    answer.problem = listed.error().message;
  }
  return answer;
}

class Joining {
 public:
  explicit Joining(const MemberSources& sources) {
    list(sources.own);
    for (const Endpoint& endpoint : sources.static_endpoints) list(endpoint);
  }

  void add(const MemberRoll& roll) {
    for (const auto& [name, source] : roll.sources) {
      for (const std::string& url : source.listed) list(parse_endpoint(url).value());
    }
    for (const auto& [name, source] : roll.sources) {
      for (const auto& [url, since] : source.lingering) {
        if (known_.insert(url).second) members_.lingering.push_back(parse_endpoint(url).value());
      }
    }
  }

  void add_unknown(std::string words) { members_.unknown.push_back(std::move(words)); }

  Members take() { return std::move(members_); }

 private:
  void list(const Endpoint& endpoint) {
    if (known_.insert(endpoint.to_string()).second) members_.endpoints.push_back(endpoint);
  }

  Members members_;
  std::set<std::string> known_;  // URLs
};

}  // namespace

Members find_members(const MemberSources& sources, Resolver& resolver, const RollStore& store) {
  Joining joining(sources);
  const LoadedRoll loaded = load_roll(store.files, store.data_dir);
  if (!loaded.problem.empty()) joining.add_unknown(loaded.problem);

  auto answers = ask_dns(sources, resolver);
  if (sources.registry) answers.push_back(ask(*sources.registry));
  for (const SourceAnswer& answer : answers) {
    if (!answer.problem.empty()) joining.add_unknown(fmt::format("{}: {}", answer.source, answer.problem));
  }
  const MemberRoll roll = update_roll(loaded.roll, answers, store.clock.wall_now(), store.cursors,
                                      {.own_url = sources.own.to_string()});
  joining.add(roll);

  // One that can't be read just now may be whole: it is left for the next scan.
  const bool is_usable = loaded.problem.empty() || loaded.is_damaged;
  const bool is_due = loaded.is_damaged || roll != loaded.roll;
  if (!store.read_only && is_usable && is_due) {
    const auto stored = store_roll(store.files, store.data_dir, roll, loaded.is_damaged);
    if (!stored) joining.add_unknown(stored.error().message);
  }
  return joining.take();
}

}  // namespace spoor::peer
