#include "peer/members.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "peer/member_roll_file.h"

namespace spoor::peer {
namespace {

// Those that can be told by their URLs; the others are a problem of the source.
std::vector<std::string> urls_of(const std::vector<Endpoint>& endpoints, std::string& problem) {
  std::vector<std::string> urls;
  urls.reserve(endpoints.size());
  for (const Endpoint& endpoint : endpoints) {
    std::string url = endpoint.to_string();
    const auto read = parse_endpoint(url);
    if (read && *read == endpoint) {
      urls.push_back(std::move(url));
    } else if (problem.empty()) {
      problem = read ? fmt::format("its address '{}' means another one", url) : read.error().message;
    }
  }
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
    SourceAnswer answer{.source = "dns " + names[i].to_string(),
                        .urls = {},
                        .lingering = {},
                        .problem = found[i].problem,
                        .forget_after = sources.forget_after,
                        .struck = {}};
    answer.urls = urls_of(found[i].endpoints, answer.problem);
    answers.push_back(std::move(answer));
  }
  return answers;
}

SourceAnswer ask(const MemberRegistry& registry) {
  SourceAnswer answer{.source = registry.label,
                      .urls = {},
                      .lingering = {},
                      .problem = {},
                      .forget_after = registry.forget_after,
                      .struck = {}};
  const auto said = registry.list();
  if (said) {
    answer.urls = urls_of(said->listed, answer.problem);
    answer.lingering = urls_of(said->lingering, answer.problem);
    answer.struck = said->struck;
  } else {
    answer.problem = said.error().message;
  }
  return answer;
}

RollRules rules_for(const std::string& own_url) { return {.own_url = own_url}; }

class Joining {
 public:
  explicit Joining(const MemberSources& sources) {
    list(sources.own);
    for (const Endpoint& endpoint : sources.static_endpoints) list(endpoint);
    members_.named_urls = known_;
  }

  void add(const MemberRoll& roll) {
    for (const auto& [name, source] : roll.sources) {
      for (const std::string& url : source.listed) add(name, url, members_.endpoints);
    }
    for (const auto& [name, source] : roll.sources) {
      for (const auto& [url, silence] : source.lingering) add(name, url, members_.lingering);
    }
  }

  void add_unknown(std::string words) { members_.unknown.push_back(std::move(words)); }

  Members take() && { return std::move(members_); }

 private:
  void add(const std::string& source, const std::string& url, std::vector<Endpoint>& list) {
    if (!known_.insert(url).second) return;
    auto endpoint = parse_endpoint(url);
    if (endpoint) {
      list.push_back(*std::move(endpoint));
    } else {
      add_unknown(fmt::format("{}: {}", source, endpoint.error().message));
    }
  }

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
  MemberRoll roll = update_roll(loaded.roll, answers, rules_for(sources.own.to_string()));
  joining.add(roll);

  // One that can't be read just now may be whole: it is left for the next scan.
  const bool is_usable = loaded.problem.empty() || loaded.is_damaged;
  const bool is_due = loaded.is_damaged || roll != loaded.roll;
  bool is_damaged = loaded.is_damaged;
  if (!store.read_only && is_usable && is_due) {
    const auto stored = store_roll(store.files, store.data_dir, roll, is_damaged);
    if (!stored) joining.add_unknown(stored.error().message);
    if (stored) is_damaged = false;
  }
  Members members = std::move(joining).take();
  members.roll = std::move(roll);
  members.answers = std::move(answers);
  members.may_store = is_usable && !store.read_only;
  members.is_damaged = is_damaged;
  return members;
}

base::Result<> settle_members(const Members& members, const AddressStates& asked, const RollStore& store) {
  // Where members have no names, there is nothing to keep.
  if (!members.may_store || members.roll.sources.empty()) return {};
  const auto settled = settle_roll(members.roll, members.answers, asked, store.clock.wall_now(),
                                   store.cursors, rules_for(members.endpoints.front().to_string()));
  return store_roll(store.files, store.data_dir, settled, members.is_damaged);
}

}  // namespace spoor::peer
