#include "peer/membership/dns_members.h"

#include <ares.h>
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

namespace spoor::peer {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// Fits into a packet without IP fragmentation; longer responses are requested over TCP.
constexpr int udp_bytes_max = 1232;
constexpr int tries = 3;

using Channel = std::unique_ptr<ares_channeldata, decltype(&ares_destroy)>;

std::string message_for(int status) {
  switch (status) {
    case ARES_ETIMEOUT:
    case ARES_ECANCELLED:
      return "no answer in time";
    // c-ares reports the first also if a server responded with one of the others.
    case ARES_ECONNREFUSED:
    case ARES_ESERVFAIL:
    case ARES_EREFUSED:
    case ARES_ENOTIMP:
      return "no DNS server resolves the name: each fails, refuses or can't be reached";
    case ARES_EBADNAME:
      return "not a valid DNS name";
    case ARES_EBADRESP:
    case ARES_EFORMERR:
      return "the DNS server's response is invalid";
    default:
      return ares_strerror(status);
  }
}

template <class Address>
std::string to_text(int family, const Address& address) {
  char text[INET6_ADDRSTRLEN] = {};
  return ::inet_ntop(family, &address, text, sizeof(text)) == nullptr ? std::string() : text;
}

// One lookup of all names. Its address must not change: c-ares keeps a pointer to it.
class Run {
 public:
  explicit Run(const DnsMembers::Options& options)
      : options_(options),
        deadline_(SteadyClock::now() + options.timeout),
        sources_(options.names),
        found_(sources_.size()),
        answers_(sources_.size()) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() = default;

  std::vector<DnsAnswer> run() {
    if (const int status = open(); status != ARES_SUCCESS) {
      for (DnsAnswer& answer : answers_) {
        answer.problem = fmt::format("cannot look up names: {}", ares_strerror(status));
      }
      return std::move(answers_);
    }
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const base::DnsSource& source = sources_[i];
      if (source.is_srv) {
        lookups_.push_back({*this, i, ns_t_srv, source.name, 0});
      } else {
        look_up_addresses(i, source.name, source.port);
      }
    }
    finish();
    for (const auto& [source, target] : targets_without_address_) {
      note(source, fmt::format("its target '{}' has no address", target));
    }
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      for (auto& [url, endpoint] : found_[i]) answers_[i].endpoints.push_back(std::move(endpoint));
    }
    return std::move(answers_);
  }

 private:
  struct Lookup {
    Run& run;
    std::size_t source;
    int type;
    std::string name;
    std::uint16_t port;
  };

  int open() {
    static const int initialised = ares_library_init(ARES_LIB_INIT_ALL);
    if (initialised != ARES_SUCCESS) return initialised;
    ares_options settings{};
    settings.flags = ARES_FLAG_EDNS;
    settings.ednspsz = udp_bytes_max;
    settings.tries = tries;
    // c-ares doubles it at each try: 1 + 2 + 4 times this for each server, which leaves time for another.
    settings.timeout =
        static_cast<int>(std::clamp<milliseconds::rep>(options_.timeout.count() / 8, 1, 10'000));
    settings.sock_state_cb = [](void* self, ares_socket_t socket, int readable, int writable) noexcept {
      static_cast<Run*>(self)->watch(socket, readable != 0, writable != 0);
    };
    settings.sock_state_cb_data = this;
    ares_channel channel = nullptr;
    const int status = ares_init_options(
        &channel, &settings,
        ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_TRIES | ARES_OPT_TIMEOUTMS | ARES_OPT_SOCK_STATE_CB);
    if (status != ARES_SUCCESS) return status;
    channel_.reset(channel);
    return use_servers();
  }

  int use_servers() {
    if (options_.servers.empty()) return ARES_SUCCESS;
    std::vector<ares_addr_port_node> nodes(options_.servers.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const base::DnsServer& server = options_.servers[i];
      ares_addr_port_node& node = nodes[i];
      node.next = i + 1 < nodes.size() ? &nodes[i + 1] : nullptr;
      node.family = server.address.find(':') == std::string::npos ? AF_INET : AF_INET6;
      if (::inet_pton(node.family, server.address.c_str(), &node.addr) != 1) return ARES_EBADSTR;
      node.udp_port = server.port;
      node.tcp_port = server.port;
    }
    return ares_set_servers_ports(channel_.get(), nodes.data());
  }

  void watch(ares_socket_t socket, bool readable, bool writable) {
    if (!readable && !writable) {
      sockets_.erase(socket);
      return;
    }
    sockets_[socket] = static_cast<short>((readable ? POLLIN : 0) | (writable ? POLLOUT : 0));
  }

  void look_up_addresses(std::size_t source, const std::string& name, std::uint16_t port) {
    lookups_.push_back({*this, source, ns_t_a, name, port});
    lookups_.push_back({*this, source, ns_t_aaaa, name, port});
  }

  void finish() {
    for (;;) {
      start_lookups();
      if (in_flight_ == 0) return;
      wait();
    }
  }

  void start_lookups() {
    while (next_ < lookups_.size() && in_flight_ < options_.concurrent_max) {
      Lookup& lookup = lookups_[next_++];
      if (is_over_) {
        fail(lookup, ARES_ETIMEOUT);
        continue;
      }
      ++in_flight_;
      const auto on_answer = [](void* of, int status, int, unsigned char* bytes, int size) noexcept {
        const auto& answered = *static_cast<const Lookup*>(of);
        --answered.run.in_flight_;
        answered.run.take(answered, status, {bytes, static_cast<std::size_t>(size)});
      };
      ares_query(channel_.get(), lookup.name.c_str(), ns_c_in, lookup.type, on_answer, &lookup);
    }
  }

  void wait() {
    const auto left = std::chrono::ceil<milliseconds>(deadline_ - SteadyClock::now());
    if (left.count() <= 0) return give_up();
    const auto most = std::min<milliseconds>(left, std::chrono::hours(1)).count();
    timeval limit{most / 1000, most % 1000 * 1000};
    timeval due{};
    const timeval* const pause = ares_timeout(channel_.get(), &limit, &due);
    std::vector<pollfd> polled;
    polled.reserve(sockets_.size());
    for (const auto& [socket, events] : sockets_) polled.push_back({socket, events, 0});
    const int ready = ::poll(polled.data(), polled.size(),
                             static_cast<int>(pause->tv_sec * 1000 + pause->tv_usec / 1000 + 1));
    if (ready < 0 && errno != EINTR) return give_up();
    for (const pollfd& socket : polled) {
      if (ready <= 0 || socket.revents == 0) continue;
      const bool readable = (socket.revents & ~POLLOUT) != 0;
      const bool writable = (socket.revents & POLLOUT) != 0;
      ares_process_fd(channel_.get(), readable ? socket.fd : ARES_SOCKET_BAD,
                      writable ? socket.fd : ARES_SOCKET_BAD);
    }
    ares_process_fd(channel_.get(), ARES_SOCKET_BAD, ARES_SOCKET_BAD);  // timeouts
  }

  void give_up() {
    is_over_ = true;
    ares_cancel(channel_.get());
  }

  void take(const Lookup& lookup, int status, std::span<const unsigned char> answer) {
    // The name, or a record of this type, does not exist. An SRV target without any address is reported at
    // the end.
    if (status == ARES_ENOTFOUND || status == ARES_ENODATA) return;
    if (status == ARES_SUCCESS) status = read(lookup, answer);
    if (status != ARES_SUCCESS && status != ARES_ENODATA) fail(lookup, status);
  }

  int read(const Lookup& lookup, std::span<const unsigned char> answer) {
    if (lookup.type == ns_t_srv) return read_srv(lookup, answer);
    if (lookup.type == ns_t_a) {
      return read_addresses(lookup, answer, ares_parse_a_reply, AF_INET, &ares_addrttl::ipaddr);
    }
    return read_addresses(lookup, answer, ares_parse_aaaa_reply, AF_INET6, &ares_addr6ttl::ip6addr);
  }

  template <class Record, class Address>
  int read_addresses(const Lookup& lookup, std::span<const unsigned char> answer, auto parse, int family,
                     Address Record::* address) {
    // One more than the bound, so that an excess is detected.
    std::vector<Record> records(options_.addresses_max + 1);
    int count = static_cast<int>(records.size());
    const int status = parse(answer.data(), static_cast<int>(answer.size()), nullptr, records.data(), &count);
    if (status != ARES_SUCCESS) return status;
    for (const Record& record : std::span(records).first(static_cast<std::size_t>(count))) {
      add(lookup, to_text(family, record.*address));
    }
    return ARES_SUCCESS;
  }

  int read_srv(const Lookup& lookup, std::span<const unsigned char> answer) {
    ares_srv_reply* records = nullptr;
    const int status = ares_parse_srv_reply(answer.data(), static_cast<int>(answer.size()), &records);
    const std::unique_ptr<void, decltype(&ares_free_data)> owner(records, &ares_free_data);
    if (status != ARES_SUCCESS) return status;
    // Priorities and weights select one of the servers; a scan requests all of them.
    std::set<std::pair<std::string, std::uint16_t>> targets;
    for (const ares_srv_reply* record = records; record != nullptr; record = record->next) {
      const std::string target = record->host == nullptr ? "" : record->host;
      if (target.empty() || target == ".") continue;  // "the service is not offered here"
      if (record->port == 0) {
        note(lookup.source, fmt::format("its SRV record for '{}' has no port", target));
      } else if (targets.size() == options_.addresses_max) {
        note(lookup.source, fmt::format("it has more than {} targets", options_.addresses_max));
        break;
      } else {
        targets.emplace(target, record->port);
      }
    }
    for (const auto& [target, port] : targets) {
      targets_without_address_.emplace(lookup.source, target);
      look_up_addresses(lookup.source, target, port);
    }
    return ARES_SUCCESS;
  }

  void add(const Lookup& lookup, const std::string& address) {
    targets_without_address_.erase({lookup.source, lookup.name});
    auto& found = found_[lookup.source];
    base::Endpoint endpoint{address, lookup.port, {}};
    endpoint.tls_name = lookup.name.substr(0, lookup.name.size() - (lookup.name.ends_with('.') ? 1 : 0));
    std::string url = endpoint.to_string();
    if (found.size() == options_.addresses_max && !found.contains(url)) {
      note(lookup.source, fmt::format("it has more than {} addresses", options_.addresses_max));
      return;
    }
    found.emplace(std::move(url), std::move(endpoint));
  }

  void fail(const Lookup& lookup, int status) {
    const bool is_itself = lookup.name == sources_[lookup.source].name;
    note(lookup.source,
         is_itself ? message_for(status) : fmt::format("{}: {}", lookup.name, message_for(status)));
  }

  // Keeps the first problem.
  void note(std::size_t source, std::string problem) {
    if (answers_[source].problem.empty()) answers_[source].problem = std::move(problem);
  }

  const DnsMembers::Options& options_;
  const SteadyClock::time_point deadline_;
  const std::vector<base::DnsSource>& sources_;
  std::vector<std::map<std::string, base::Endpoint>> found_;  // for each source, by URL
  std::vector<DnsAnswer> answers_;
  // SRV targets without an address so far: it may be missing only for a while.
  std::set<std::pair<std::size_t, std::string>> targets_without_address_;  // by source
  std::deque<Lookup> lookups_;  // c-ares keeps pointers to those that were started
  std::size_t next_ = 0;        // the first that was not started
  std::size_t in_flight_ = 0;
  bool is_over_ = false;
  std::map<ares_socket_t, short> sockets_;   // the events for poll(2)
  Channel channel_{nullptr, &ares_destroy};  // destroyed first: its destruction calls back
};

}  // namespace

DnsMembers::DnsMembers(Options options) : options_(std::move(options)) {
  std::vector<base::DnsSource> names;
  for (base::DnsSource& name : options_.names) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  options_.names = std::move(names);
}

std::vector<SourceListing> DnsMembers::list() { return to_listings(options_, resolve_names(options_)); }

std::vector<DnsAnswer> resolve_names(const DnsMembers::Options& options) {
  return options.names.empty() ? std::vector<DnsAnswer>() : Run(options).run();
}

std::vector<SourceListing> to_listings(const DnsMembers::Options& options, std::vector<DnsAnswer> answers) {
  std::vector<SourceListing> listings;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    for (base::Endpoint& endpoint : answers[i].endpoints) {
      endpoint.is_tls = options.is_tls;
      if (!options.is_tls) endpoint.tls_name.clear();
    }
    listings.push_back({.source = "dns " + options.names[i].to_string(),
                        .listed = urls_of(answers[i].endpoints, answers[i].problem)});
    listings.back().problem = std::move(answers[i].problem);
  }
  return listings;
}

}  // namespace spoor::peer
