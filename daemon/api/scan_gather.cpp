#include "daemon/api/scan_gather.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "daemon/api/api_message.h"
#include "daemon/process/task.h"
#include "peer/membership/membership.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using json = nlohmann::ordered_json;

constexpr unsigned attempts_max = 3;  // of a request to a peer: it may be restarting
constexpr int round_timeouts = 6;     // the time limit of all peers together, in limits of one peer
// Of the filters, of the responses that are being read, and so of the response to the scan.
constexpr std::uint64_t marks_bytes_max = std::uint64_t{512} << 20U;

HttpResponse stopping() { return to_response({503, "overloaded", "this daemon is stopping"}); }

}  // namespace

// The requests to this daemon do not leave the process.
class ScanGather::SelfTransport final : public peer::Transport {
 public:
  SelfTransport(ScanGather& owner, std::unique_ptr<peer::Transport> others)
      : owner_(owner), others_(std::move(others)) {}

  void exchange(std::span<const peer::HttpRequest> requests, const OnResponse& on_response) override {
    std::vector<peer::HttpRequest> to_others;
    std::vector<std::size_t> indices;
    std::vector<std::pair<std::size_t, std::future<peer::HttpResponse>>> own;
    for (std::size_t index = 0; index < requests.size(); ++index) {
      const peer::HttpRequest& request = requests[index];
      if (request.endpoint == owner_.options_.self) {
        own.emplace_back(index,
                         asio::co_spawn(owner_.context_, owner_.answer(request.body), asio::use_future));
      } else {
        indices.push_back(index);
        to_others.push_back(request);
      }
    }
    others_->exchange(to_others, [&](std::size_t at, base::Result<peer::HttpResponse> response) {
      on_response(indices[at], std::move(response));
    });
    for (auto& [index, response] : own) on_response(index, response.get());
  }

 private:
  ScanGather& owner_;
  const std::unique_ptr<peer::Transport> others_;
};

ScanGather::ScanGather(asio::io_context& context, Options options, AnswerSelf answer_self,
                       const PeerWatch& peers, const EtcdMembership* etcd, const base::Clock& clock)
    : context_(context),
      options_(std::move(options)),
      answer_self_(std::move(answer_self)),
      peers_(peers),
      etcd_(etcd),
      clock_(clock),
      dns_(options_.dns),
      members_digest_(options_.members_digest) {}

ScanGather::Sources ScanGather::sources() const {
  Sources sources;
  sources.static_endpoints = peers_.static_endpoints();
  sources.dns = dns_;
  if (etcd_ != nullptr) sources.etcd = etcd_->lister();
  sources.credentials = peers_.credentials();
  sources.states = peers_.states();
  sources.members_digest = members_digest_;
  return sources;
}

std::vector<peer::SourceListing> ScanGather::Sources::list() const {
  std::vector<peer::SourceListing> listings;
  if (dns) listings = dns->list();
  if (etcd) listings.push_back(etcd());
  return listings;
}

asio::awaitable<HttpResponse> ScanGather::list_members(const HttpRequest& request, std::string caller) {
  if (const auto unknown = unknown_parameter(request, {})) co_return to_response(*unknown);
  const CallerQueue::Place place(listers_, std::move(caller));
  if (!place.is_held()) co_return too_many("requests for the members wait");
  std::function<HttpResponse()> listing = [this, from = sources()] { return members_response(from); };
  auto response = co_await run_on(listing_, std::move(listing));
  co_return response;
}

// On `listing_`. A member has a name once it has responded to this daemon, or where its source has one.
HttpResponse ScanGather::members_response(const Sources& sources) const {
  if (stop_.stop_requested()) return stopping();
  json members = json::array();
  const auto add = [&](std::string_view node, std::string_view url, std::string_view source,
                       std::string_view state) {
    members.push_back({{"node", node.empty() ? json(nullptr) : json(node)},
                       {"url", url},
                       {"source", source},
                       {"state", state}});
  };
  add(options_.node.node, options_.self.to_string(), "this node", "up");
  const auto add_listed = [&](const std::string& url, const peer::SourceListing& listing) {
    const auto known = std::ranges::find(sources.states, url, &PeerState::url);
    const PeerState state = known == sources.states.end() ? PeerState() : *known;
    if (state.is_self) return;
    std::string name = state.name;
    for (const auto& [node, homes] : listing.homes) {
      if (homes.contains(url)) name = node;
    }
    add(name, url, listing.source, listing.not_alive.contains(url) ? "not registered" : state.state);
  };
  for (const auto& endpoint : sources.static_endpoints)
    add_listed(endpoint.to_string(), {.source = "peers.static", .listed = {}});
  json problems = json::array();
  for (const peer::SourceListing& listing : sources.list()) {
    for (const std::string& url : listing.listed) add_listed(url, listing);
    if (!listing.problem.empty()) problems.push_back(listing.source + ": " + listing.problem);
  }
  return json_response({{"members", std::move(members)}, {"problems", std::move(problems)}});
}

asio::awaitable<HttpResponse> ScanGather::gather(const HttpRequest& request, std::string caller) {
  const CallerQueue::Place place(callers_, std::move(caller));
  if (!place.is_held()) co_return too_many("scans gather");
  std::function<HttpResponse()> gathering = [this, &request, from = sources()] {
    return gather_from(from, request.body);
  };
  auto response = co_await run_on(gathering_, std::move(gathering));
  co_return response;
}

// On `gathering_`.
HttpResponse ScanGather::gather_from(const Sources& sources, const std::string& body) {
  if (stop_.stop_requested()) return stopping();
  auto query = peer::decode_gather_query(body);
  if (!query) return to_response({400, "invalid_request", query.error().message});
  const tracker::NodeIdentity& asked = query->node;
  if (asked.cluster != options_.node.cluster || asked.node != options_.node.node ||
      query->instance != options_.instance) {
    return to_response(
        {409, "wrong_node",
         fmt::format(
             "this is instance {} of node '{}' in cluster '{}', and the scan is of instance {} of '{}' in "
             "'{}': a scan and its daemon must use the same node.data_dir; check --url and listen",
             options_.instance.to_string(), options_.node.node, options_.node.cluster,
             query->instance.to_string(), base::printable(asked.node), base::printable(asked.cluster))});
  }
  peer::GatherOptions& options = query->options;
  options.members = members(*query, sources);
  options.cluster = options_.node.cluster;
  options.own_url = options_.self.to_string();
  options.own_name = options_.node.node;
  options.own_instance = options_.instance;
  options.marks_bytes_max = marks_bytes_max;
  if (!options.read_only) bound_since_last_scan(options);
  peer::HttpTransport::Options transport_options{.credentials = sources.credentials,
                                                 .timeout = query->timeout,
                                                 .total_timeout = round_timeouts * query->timeout,
                                                 .attempts_max = attempts_max,
                                                 .bodies_bytes_max = marks_bytes_max,
                                                 .stop = stop_.get_token()};
  auto& trusted = transport_options.credentials.trusted_urls;
  if (trusted) trusted = options.members.named_urls;
  SelfTransport transport(*this, options_.make_transport(std::move(transport_options)));
  const auto gathered = peer::gather(transport, query->book, options);
  if (stop_.stop_requested()) return stopping();
  HttpResponse response;
  response.is_counted = false;  // asked for by an admin, and made for one at a time
  response.content_type = peer::gathered_content_type;
  response.body = peer::encode_gathered(gathered);
  return response;
}

// The scan goes by the time of day: if that is set forward, silent members are not silent for longer.
void ScanGather::bound_since_last_scan(peer::GatherOptions& options) {
  const auto now = clock_.steady_now();
  const auto last = std::exchange(gathered_at_, now);
  if (!last) return;
  const auto elapsed = std::chrono::floor<std::chrono::milliseconds>(now - *last);
  options.since_last_scan = std::min(options.since_last_scan, elapsed);
}

peer::MembershipView ScanGather::members(const peer::GatherQuery& query, const Sources& sources) const {
  if (query.options.own_only) return peer::merge_members(options_.self, {}, {});
  auto view = peer::merge_members(options_.self, sources.static_endpoints, sources.list());
  if (query.members_digest != sources.members_digest) {
    view.unknown_sources.emplace_back(
        "the configuration: 'peers' there is not what spoord has read; systemctl reload spoord, or restart "
        "it if "
        "peers.etcd has changed");
  }
  return view;
}

asio::awaitable<peer::HttpResponse> ScanGather::answer(std::string body) {
  HttpRequest request;
  request.body = std::move(body);
  auto responding = answer_self_(request);
  auto response = co_await std::move(responding);
  peer::HttpResponse answered;
  answered.status = response.status;
  answered.content_type = response.content_type;
  answered.body = std::move(response.body);
  co_return answered;
}

}  // namespace spoor::daemon
