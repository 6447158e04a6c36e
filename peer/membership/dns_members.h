// Finds members in the DNS.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/dns_source.h"
#include "base/endpoint.h"
#include "peer/membership/membership.h"

namespace spoor::peer {

// The response of the DNS for one source. A name that does not exist is a response without endpoints; a
// failed query, or an SRV target without an address, is a problem.
struct DnsAnswer {
  std::vector<base::Endpoint> endpoints;  // by URL, without duplicates
  std::string problem;                    // why endpoints may be missing above; empty: none are
};

// The members that DNS names list: queries DNS servers, all names in parallel. A timeout, a refusal, a server
// failure, an invalid response or a bound below is reported in `problem`.
//
// Thread-safe; calls share no state.
class DnsMembers final : public MemberSource {
 public:
  struct Options {
    std::vector<base::DnsSource> names = {};
    // Uses https. The certificate must be for the name in `names`, or for the target of its SRV record.
    bool is_tls = false;
    std::vector<base::DnsServer> servers = {};  // empty: those of the system (/etc/resolv.conf)
    std::chrono::milliseconds timeout{10'000};  // of one whole call
    std::size_t addresses_max = 4096;           // of one source; as many targets of its SRV records
    std::size_t concurrent_max = 64;            // queries in flight
  };

  // Each name is resolved once, however often it is given.
  explicit DnsMembers(Options options);

  std::vector<SourceListing> list() override;

 private:
  Options options_;
};

// One answer for each name, in their order.
std::vector<DnsAnswer> resolve_names(const DnsMembers::Options& options);

std::vector<SourceListing> to_listings(const DnsMembers::Options& options, std::vector<DnsAnswer> answers);

}  // namespace spoor::peer
