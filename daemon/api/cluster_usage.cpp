#include "daemon/api/cluster_usage.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "daemon/api/api_message.h"
#include "daemon/status/status_json.h"
#include "peer/http/certificate_names.h"
#include "scanner/report_json.h"
#include "scanner/usage/usage_sum.h"
#include "tracker/cycles/ids.h"

namespace spoor::daemon {
namespace {

using json = nlohmann::ordered_json;

// A response of a node has at most 10,000 directories.
constexpr std::uint64_t children_asked = 10'000;
constexpr std::uint64_t body_bytes_max = std::uint64_t{16} << 20U;
constexpr std::uint64_t bodies_bytes_max = std::uint64_t{64} << 20U;
constexpr std::size_t error_bytes_max = 500;
constexpr std::size_t word_bytes_max = 50;

struct Answer {
  NodeLabel node;
  scanner::Usage usage;
};

base::Error bad_answer(const std::string& text) {
  return {std::make_error_code(std::errc::bad_message), text};
}

std::string word_at(const json& object, const char* name) {
  const auto word = object.find(name);
  if (word == object.end() || !word->is_string()) return {};
  return base::printable(word->get<std::string>(), word_bytes_max);
}

std::optional<base::DiskSpace> read_space(const json& body) {
  const auto space = body.find("fullest_drive");
  if (space == body.end() || !space->is_object()) return std::nullopt;
  base::DiskSpace read{.type = word_at(*space, "file_system")};
  for (auto [name, target] : {std::pair{"bytes", &read.bytes}, std::pair{"used_bytes", &read.used_bytes},
                              std::pair{"free_bytes", &read.free_bytes}}) {
    const auto figure = space->find(name);
    if (figure == space->end() || !figure->is_number_unsigned()) return std::nullopt;
    *target = figure->get<std::uint64_t>();
  }
  return read;
}

std::optional<NodeLabel> read_label(const json& body) {
  const auto node = body.find("node");
  if (node == body.end() || !node->is_object()) return std::nullopt;
  NodeLabel label;
  for (auto [key, target] : {std::pair{"name", &label.name}, std::pair{"cluster", &label.cluster},
                             std::pair{"instance", &label.instance}}) {
    const auto value = node->find(key);
    if (value == node->end() || !value->is_string()) return std::nullopt;
    *target = value->get<std::string>();
  }
  label.version = word_at(*node, "version");
  label.fullest_drive = read_space(body);
  // The names are printed, and compared with those of nodes.
  if (!tracker::is_node_name(label.name) || !tracker::is_node_name(label.cluster)) return std::nullopt;
  return label;
}

base::Result<Answer> read_answer(const base::Result<peer::HttpResponse>& response, const std::string& cluster,
                                 const std::string& path) {
  if (!response) return response.error();
  if (!response->is_success()) {
    const std::string detail = peer::problem_detail(*response);
    return bad_answer(response->status == 400 ? "it may run an older Spoor: " + detail : detail);
  }
  const json body = peer::json_object(*response);
  if (!body.is_object()) {
    return bad_answer(
        fmt::format("its response is not a JSON object of at most {} values", peer::json_values_max));
  }
  auto label = read_label(body);
  if (!label) return bad_answer("its response does not name the node: it may run an older Spoor");
  if (label->cluster != cluster) {
    return bad_answer(fmt::format("node '{}' belongs to cluster '{}', not to '{}'",
                                  base::printable(label->name), base::printable(label->cluster), cluster));
  }
  if (auto issued = peer::check_issued_for(response->certificate_names, label->name); !issued)
    return issued.error();
  auto usage = scanner::usage_from_json(body);
  if (!usage) return usage.error();
  if (usage->total.path != path) return bad_answer("its response is about another directory");
  return Answer{*std::move(label), *std::move(usage)};
}

void put_figures(json& node, const scanner::Usage& usage) {
  if (usage.as_of) node["as_of"] = base::iso_time(*usage.as_of);
  node["files"] = usage.total.files;
  node["bytes"] = usage.total.bytes;
}

json node_json(const NodeLabel& label, const std::string& url, const base::Result<scanner::Usage>& usage) {
  json node{{"name", base::printable(label.name)},
            {"url", nullptr},
            {"version", nullptr},
            {"fullest_drive", space_json(label.fullest_drive)},
            {"ok", usage.has_value()},
            {"as_of", nullptr},
            {"files", nullptr},
            {"bytes", nullptr},
            {"growth_bytes", nullptr},
            {"complete", false},
            {"error", nullptr},
            {"last_known", false}};
  if (!url.empty()) node["url"] = url;
  if (!label.version.empty()) node["version"] = label.version;
  if (!usage) {
    node["error"] = base::printable(usage.error().message, error_bytes_max);
    return node;
  }
  put_figures(node, *usage);
  if (usage->total.growth) node["growth_bytes"] = usage->total.growth->bytes;
  node["complete"] = usage->is_complete(usage->total);
  return node;
}

void set_growth(scanner::UsageEntry& entry, const scanner::UsageGrowth& growth) {
  entry.growth = growth;
  if (entry.rest.count > 0) entry.rest.growth = growth;
  for (scanner::UsageEntry& child : entry.children) set_growth(child, growth);
}

// What changed since the report is not known: it is not complete, and nor is the growth, which it lacks.
scanner::Usage made_old(scanner::Usage usage, const std::optional<base::WallTime>& since) {
  usage.saw_everything = false;
  if (!since) return usage;
  scanner::UsageGrowth unknown;
  unknown.since = *since;
  unknown.complete = false;
  set_growth(usage.total, unknown);
  usage.history_since = usage.history_since.value_or(*since);
  return usage;
}

void drop_growth(scanner::UsageEntry& entry) {
  std::erase_if(entry.children, [](const scanner::UsageEntry& child) {
    return child.growth && child.growth->change == scanner::UsageGrowth::Change::deleted;
  });
  entry.growth.reset();
  entry.rest.growth.reset();
  for (scanner::UsageEntry& child : entry.children) drop_growth(child);
}

// The first directories, with the others in the rest of their parents.
scanner::Usage shortened(const scanner::Usage& usage) {
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
  scanner::for_each_entry(report.usage.total, [&](const scanner::UsageEntry& entry) {
    bytes += sizeof(entry) + entry.path.size();
    bytes += (entry.copied.size() + entry.rest.copied.size()) * copied_bytes;
  });
  if (report.usage.owners) bytes += report.usage.owners->list.size() * sizeof(report.usage.owners->list[0]);
  return bytes;
}

// The nodes that responded, and those that did not.
class Nodes {
 public:
  Nodes(const NodeLabel& own, const ClusterMembers& members, LastUsage& last, LastUsage::Query query)
      : own_(own),
        members_(members),
        last_(last),
        query_(std::move(query)),
        instances_{{own.name, own.instance}} {}

  void add_own(const base::Result<scanner::Usage>& usage) { add(own_, {}, usage); }

  void add_member(std::size_t index, const base::Result<Answer>& answer) {
    const std::string url = members_.endpoints[index].to_string();
    if (!answer && members_.own_urls.contains(url)) return;  // it is in the list
    if (!answer) return add({members_.names[index], {}, {}}, url, answer.error());
    // A node found at two addresses is one.
    const auto known = instances_.find(answer->node.name);
    if (known == instances_.end()) {
      add(answer->node, url, answer->usage);
      responded_.insert(url);
      return last_.keep(query_, {answer->node.name, url, answer->usage});
    }
    if (known->second == answer->node.instance) return;
    add({answer->node.name, {}, {}}, url,
        bad_answer(fmt::format("two daemons call themselves '{}': only the totals of one are added",
                               base::printable(answer->node.name))));
  }

  // Those that the last scan knows, and that no source of members lists any more: they may only be down.
  // Where a node did not respond, the last scan may know its name.
  void add_known(const std::vector<KnownPeer>& peers) {
    for (const KnownPeer& peer : peers) {
      if (is_listed(peer)) continue;
      add({peer.name, {}, {}}, peer.url,
          bad_answer("the last scan knows it, and it is not among the members now: it is down, or has left "
                     "since"));
    }
  }

  // Adds the figures that nodes reported before, of those that did not report any now. Call last.
  void add_last_known(const std::optional<base::WallTime>& since) {
    for (json& node : list_) {
      if (node["ok"].get<bool>()) continue;
      const auto name = node["name"].get<std::string>();
      const auto url = node["url"].is_null() ? std::string() : node["url"].get<std::string>();
      const auto* const last = last_.find(name, url, query_);
      // One that responds under another name, or at another address, counts already.
      if (last == nullptr || instances_.contains(last->node) || responded_.contains(last->url)) continue;
      sum_.add(made_old(last->usage, since));
      instances_.emplace(last->node, "");
      node["name"] = base::printable(last->node);
      put_figures(node, last->usage);
      node["last_known"] = true;
    }
  }

  scanner::UsageSum& sum() { return sum_; }
  bool has_missing() const { return has_missing_; }

  json to_json() {
    std::ranges::sort(list_, {}, [](const json& node) {
      return std::pair(node["name"].get<std::string>(),
                       node["url"].is_null() ? "" : node["url"].get<std::string>());
    });
    return list_;
  }

 private:
  bool is_listed(const KnownPeer& peer) {
    if (instances_.contains(peer.name) || failed_.contains(peer.name)) return true;
    const auto failed = std::ranges::find_if(
        list_, [&](const json& node) { return !node["ok"].get<bool>() && node["url"] == peer.url; });
    if (failed == list_.end()) return false;
    json& name = (*failed)["name"];
    if (name.get_ref<const std::string&>().empty()) name = base::printable(peer.name);
    return true;
  }

  void add(const NodeLabel& node, const std::string& url, const base::Result<scanner::Usage>& usage) {
    list_.push_back(node_json(node, url, usage));
    if (usage) {
      instances_.emplace(node.name, node.instance);
      sum_.add(*usage);
    } else {
      has_missing_ = true;
      if (!node.name.empty()) failed_.insert(node.name);
    }
  }

  const NodeLabel& own_;
  const ClusterMembers& members_;
  LastUsage& last_;
  const LastUsage::Query query_;
  scanner::UsageSum sum_;
  std::vector<json> list_;
  std::map<std::string, std::string> instances_;  // of this node and those that were added, by name
  std::set<std::string> failed_;                  // names
  std::set<std::string> responded_;               // URLs
  bool has_missing_ = false;
};

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

const LastUsage::Report* LastUsage::find(std::string_view node, std::string_view url,
                                         const Query& query) const {
  const Kept* deepest = nullptr;
  for (const Kept& kept : newest_first_) {
    const bool is_its = node.empty() ? kept.report.url == url : kept.report.node == node;
    if (!is_its || kept.query.path != query.path || (query.owners && !kept.report.usage.owners)) continue;
    if (kept.query.depth >= query.depth) return &kept.report;
    if (deepest == nullptr || kept.query.depth > deepest->query.depth) deepest = &kept;
  }
  return deepest == nullptr ? nullptr : &deepest->report;
}

json NodeLabel::to_json() const {
  return {{"name", name}, {"cluster", cluster}, {"instance", instance}, {"version", version}};
}

peer::Transport& ClusterUsage::transport(const peer::Credentials& credentials) {
  const bool is_same = credentials_.token == credentials.token && credentials_.tls == credentials.tls &&
                       credentials_.trusted_urls == credentials.trusted_urls;
  if (!transport_ || !is_same) {
    credentials_ = credentials;
    transport_ = options_.make_transport(peer::HttpTransport::Options{.credentials = credentials,
                                                                      .timeout = options_.timeout,
                                                                      .total_timeout = options_.timeout,
                                                                      .body_bytes_max = body_bytes_max,
                                                                      .bodies_bytes_max = bodies_bytes_max,
                                                                      .concurrent_max = 128});
  }
  return *transport_;
}

HttpResponse ClusterUsage::ask(const UsageTarget& target, const OwnUsage& own,
                               const ClusterMembers& members) {
  std::string query = fmt::format("/v1/usage?absent=empty&path={}&depth={}&sort={}&limit={}",
                                  boost::urls::encode(target.path, boost::urls::unreserved_chars),
                                  target.options.depth, target.order, children_asked);
  if (target.options.owners) query += "&owners=1";
  if (target.options.since) query += "&since=" + base::iso_time(*target.options.since);
  std::vector<peer::HttpRequest> requests;
  requests.reserve(members.endpoints.size());
  for (const base::Endpoint& endpoint : members.endpoints)
    requests.push_back({endpoint, "GET", query, {}, {}});

  NodeLabel label = options_.own;
  label.fullest_drive = own.fullest_drive;
  Nodes nodes(label, members, last_,
              {.path = target.path, .depth = target.options.depth, .owners = target.options.owners});
  nodes.add_own(own.usage);
  transport(members.credentials)
      .exchange(requests, [&](std::size_t index, const base::Result<peer::HttpResponse>& response) {
        nodes.add_member(index, read_answer(response, options_.own.cluster, target.path));
      });
  nodes.add_known(own.known_peers);
  nodes.add_last_known(target.options.since);

  scanner::Usage usage = nodes.sum().result(target.options);
  usage.since = target.options.since;
  const bool is_missing = nodes.has_missing() || !members.unknown_sources.empty();
  if (is_missing) usage.saw_everything = false;
  if (usage.is_absent && !is_missing && !target.options.absent_is_empty) {
    return to_response({404, "not_found",
                        fmt::format("no directory '{}' was found by the last scan of any node",
                                    base::printable(target.path))});
  }
  usage.is_absent = false;
  usage.total.path = target.path;
  json body = scanner::usage_json(usage);
  body["node"] = label.to_json();
  body["fullest_drive"] = space_json(label.fullest_drive);
  body["nodes"] = nodes.to_json();
  body["unknown_sources"] = members.unknown_sources;
  return json_response(body);
}

}  // namespace spoor::daemon
