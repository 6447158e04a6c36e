#include "daemon/membership/peer_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "daemon/process/task.h"
#include "peer/gather/cycle_exchange.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds interval{30'000};
constexpr std::chrono::minutes self_for{
    10};  // an address that does not respond counts as that of this daemon
// While a peer is down or a name can't be looked up: nodes start one by one.
constexpr std::chrono::milliseconds first_pause{500};
constexpr std::chrono::milliseconds timeout{2'000};
constexpr std::chrono::milliseconds total_timeout{4'000};  // short: a stop waits for it

constexpr std::size_t met_max = 10'000;

// Of the listings of DnsMembers: "dns spoor.example:7420".
constexpr std::string_view source_prefix = "dns ";

}  // namespace

struct PeerWatch::Dns {
  explicit Dns(std::shared_ptr<peer::MemberSource> its_source) : source(std::move(its_source)) {}

  std::shared_ptr<peer::MemberSource> source;
  // Of the last good lookup of each name that had an address; used while there is none.
  std::map<std::string, std::vector<std::string>> last_known;
};

// The result of one round of requests.
struct PeerWatch::Round {
  Introduction::Round introduced;  // met: the daemons that responded, without this one
  std::size_t others = 0;          // the endpoints, without those of this daemon
  std::shared_ptr<Dns> dns;        // that was read
  std::vector<base::Endpoint> dns_endpoints;
  std::vector<DnsState> dns_states;
  std::vector<PeerState> states;
};

PeerWatch::PeerWatch(asio::io_context& context, asio::thread_pool& pool, Options options,
                     Introduction& introduction, const base::Clock& clock, Timers& timers)
    : context_(context),
      pool_(pool),
      options_(std::move(options)),
      introduction_(introduction),
      clock_(clock),
      timer_(timers.make()),
      static_endpoints_(options_.static_endpoints),
      dns_(std::make_shared<Dns>(options_.dns)),
      members_read_(!options_.has_etcd) {
  set_credentials(options_.credentials);
  merge();
}

void PeerWatch::set_credentials(const peer::Credentials& credentials) {
  credentials_ = credentials;
  tls_expiry_ = {};
  if (!credentials.tls) return;
  tls_expiry_.certificate = peer::certificate_valid_until(*credentials.tls);
  if (credentials.has_own_ca) tls_expiry_.ca = peer::authorities_valid_until(*credentials.tls);
}

void PeerWatch::set_peers(std::vector<base::Endpoint> static_endpoints) {
  static_endpoints_ = std::move(static_endpoints);
  if (!static_endpoints_.empty()) introduction_.close_alone();
  merge();
  poll_now();
}

void PeerWatch::set_dns(std::shared_ptr<peer::MemberSource> dns) {
  dns_ = std::make_shared<Dns>(std::move(dns));
  if (dns_->source != nullptr) introduction_.close_alone();
  dns_read_ = false;
  poll_now();
}

void PeerWatch::set_members(std::vector<base::Endpoint> members) {
  members_ = std::move(members);
  const bool were_read = std::exchange(members_read_, true);
  const auto before = endpoints_;
  merge();
  if (endpoints_ != before || !were_read) poll_now();
}

// Keeps the states of the endpoints that remain.
void PeerWatch::merge() {
  endpoints_.clear();
  std::set<std::string> urls;
  for (const auto* const source : {&static_endpoints_, &members_, &dns_endpoints_}) {
    for (const auto& endpoint : *source) {
      if (urls.insert(endpoint.to_string()).second) endpoints_.push_back(endpoint);
    }
  }
  std::map<std::string, PeerState> known;
  for (PeerState& state : states_) known[state.url] = std::move(state);
  states_.clear();
  for (const auto& endpoint : endpoints_) {
    states_.push_back(std::move(known[endpoint.to_string()]));
    states_.back().url = endpoint.to_string();
  }
}

void PeerWatch::poll_now() {
  has_new_ = true;
  timer_->cancel();
}

bool PeerWatch::is_dns_read() const { return dns_read_ || dns_->source == nullptr; }

void PeerWatch::meet(const tracker::PeerId& member) {
  if (member == introduction_.id()) return;  // its addresses may be among those of the peers
  const bool is_known = std::ranges::any_of(states_, [&](const PeerState& peer) {
    return peer.state == "up" && peer.name == member.name && peer.instance == member.instance;
  });
  if (!is_known && met_.size() < met_max && met_.insert(member).second) poll_now();
}

void PeerWatch::start() { asio::co_spawn(context_, run(), rethrow); }

void PeerWatch::stop() {
  stopped_ = true;
  timer_->cancel();
}

asio::awaitable<void> PeerWatch::run() {
  std::chrono::milliseconds pause = first_pause;
  while (!stopped_) {
    if (std::exchange(has_new_, false)) pause = first_pause;
    auto transport = options_.make_transport(peer::HttpTransport::Options{
        .credentials = credentials_, .timeout = timeout, .total_timeout = total_timeout});
    std::vector<base::Endpoint> known = static_endpoints_;
    known.insert(known.end(), members_.begin(), members_.end());
    introduction_.begin_round();
    const tracker::KnownAt began_at = introduction_.now();
    auto polling =
        asio::co_spawn(pool_, poll(dns_, std::move(known), std::move(transport)), asio::use_awaitable);
    auto round = co_await std::move(polling);
    round.introduced.began_at = began_at;
    co_await take(std::move(round));
    if (stopped_) break;
    if (has_new_) continue;
    const bool all_up =
        std::ranges::all_of(states_, [](const PeerState& peer) { return peer.state == "up"; }) &&
        std::ranges::all_of(dns_states_, [](const DnsState& dns) { return dns.error.empty(); });
    const auto now = all_up ? interval : pause;
    pause = all_up ? first_pause : std::min(2 * pause, interval);
    if (co_await timer_->wait(now)) met_.clear();
  }
}

// On the pool: touches nothing but its parameters and what is const.
asio::awaitable<PeerWatch::Round> PeerWatch::poll(std::shared_ptr<Dns> dns, std::vector<base::Endpoint> known,
                                                  std::unique_ptr<peer::Transport> transport) {
  Round round;
  std::vector<base::Endpoint> from_dns;
  std::vector<peer::SourceListing> listings;
  if (dns->source) listings = dns->source->list();
  std::set<std::string> listed_urls;  // by DNS, now
  for (peer::SourceListing& listing : listings) {
    listed_urls.insert(listing.listed.begin(), listing.listed.end());
    std::vector<std::string>& urls = dns->last_known[listing.source];
    const std::size_t found = listing.listed.size();
    if (listing.problem.empty() && found > 0)
      urls = std::move(listing.listed);
    else
      std::ranges::copy_if(listing.listed, std::back_inserter(urls), [&](const std::string& url) {
        return std::ranges::find(urls, url) == urls.end();
      });
    const std::size_t members = listing.problem.empty() ? found : urls.size();
    round.dns_states.push_back({listing.source.substr(source_prefix.size()), listing.problem, members});
    for (const std::string& url : urls) {
      if (auto endpoint = base::parse_endpoint(url)) from_dns.push_back(*std::move(endpoint));
    }
  }
  std::vector<peer::HttpRequest> requests;
  std::set<std::string> urls;
  for (const auto* const source : {&std::as_const(known), &std::as_const(from_dns)}) {
    for (const auto& endpoint : *source) {
      if (!urls.insert(endpoint.to_string()).second) continue;
      requests.push_back(peer::probe_request(endpoint, options_.cluster, introduction_.self()));
    }
  }
  std::set<std::string> own_urls;
  transport->exchange(requests, [&](std::size_t index, const base::Result<peer::HttpResponse>& response) {
    PeerState state{.url = requests[index].endpoint.to_string(), .state = "down"};
    if (const auto frame = peer::read_frame(response)) {
      state.state = "up";
      state.name = frame->sender.node;
      state.instance = frame->answer.instance;
      if (frame->run == options_.run) {
        own_urls.insert(state.url);
        round.introduced.is_listed = round.introduced.is_listed || listed_urls.contains(state.url);
        state.is_self = true;
      } else if (frame->sender.cluster == options_.cluster && !frame->is_closed) {
        // One that retires may have handed its records on already.
        round.introduced.met.push_back({state.name, state.instance});
      }
    } else {
      state.error = frame.error().message;
    }
    round.states.push_back(std::move(state));
  });
  round.others = requests.size() - own_urls.size();
  // DNS names of a whole service list this node, too.
  for (const auto& endpoint : from_dns) {
    if (!own_urls.contains(endpoint.to_string())) round.dns_endpoints.push_back(endpoint);
  }
  round.dns = std::move(dns);
  co_return round;
}

asio::awaitable<void> PeerWatch::take(Round round) {
  bool are_members_known = members_read_ && !has_new_;  // else the round was without the new ones
  if (round.dns == dns_) {                              // else they were replaced meanwhile
    dns_endpoints_ = std::move(round.dns_endpoints);
    for (const DnsState& now : round.dns_states) {
      const auto before = std::ranges::find(dns_states_, now.source, &DnsState::source);
      if (!now.error.empty() && (before == dns_states_.end() || before->error.empty())) {
        spdlog::warn("peers.dns: {}: {}", now.source, now.error);
      }
    }
    dns_states_ = std::move(round.dns_states);
    // A name without addresses is no proof that there are no members.
    const bool are_dns_good = std::ranges::all_of(
        dns_states_, [](const DnsState& dns) { return dns.error.empty() && dns.members > 0; });
    are_members_known = are_members_known && are_dns_good;
    // Others may have joined that a source which can't be read would list.
    const bool are_all_known = are_dns_good && !dns_states_.empty() && !options_.has_etcd;
    round.introduced.are_all = are_all_known && round.introduced.met.size() == round.others;
    const bool is_unlisted = !dns_states_.empty() && are_dns_good && !round.introduced.is_listed;
    if (!std::exchange(is_unlisted_, is_unlisted) && is_unlisted) {
      spdlog::warn(
          "peers.dns lists no address of this node: while another node is down for half of "
          "peers.forget_after, "
          "marks are not acknowledged");
    }
    dns_read_ = true;
    merge();
  }
  for (PeerState& state : round.states) take(std::move(state));
  round.introduced.is_alone = are_members_known && round.others == 0;
  co_await introduction_.take(std::move(round.introduced));
}

std::vector<PeerState> PeerWatch::others() const {
  std::vector<PeerState> others;
  std::ranges::copy_if(states_, std::back_inserter(others),
                       [](const PeerState& peer) { return !peer.is_self; });
  return others;
}

void PeerWatch::take(PeerState now) {
  const auto found = std::ranges::find(states_, now.url, &PeerState::url);
  if (found == states_.end()) return;  // no longer a peer
  PeerState& known = *found;
  if (now.state != known.state) {
    if (now.state == "up") {
      spdlog::info("peer {} ({}) is up", now.name, now.url);
    } else {
      const std::string name = known.name.empty() ? "" : known.name + ' ';
      spdlog::warn("peer {}({}) is down: {}", name, now.url, now.error);
    }
  }
  if (now.name.empty()) now.name = known.name;
  if (now.instance.is_none()) now.instance = known.instance;
  // Its address may be that of another node by now.
  const bool may_be_self = known.last_seen && clock_.wall_now() - *known.last_seen < self_for;
  if (now.state != "up" && may_be_self) now.is_self = known.is_self;
  now.last_seen = now.state == "up" ? std::optional(clock_.wall_now()) : known.last_seen;
  known = std::move(now);
}

}  // namespace spoor::daemon
