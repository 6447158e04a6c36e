// Finds members in the DNS.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/dns_source.h"
#include "base/endpoint.h"

namespace spoor::peer {

// The response of the DNS for one source. A name that does not exist is a response without endpoints; a
// failed query, or an SRV target without an address, is a problem.
struct DnsAnswer {
  std::vector<base::Endpoint> endpoints;  // by URL, without duplicates
  std::string problem;                    // why endpoints may be missing above; empty: none are
};

class Resolver {
 public:
  virtual ~Resolver() = default;

  // Blocks until all queries are answered or timed out. One answer for each source, in their order.
  virtual std::vector<DnsAnswer> resolve(std::span<const base::DnsSource> sources) = 0;
};

// Queries DNS servers, all sources in parallel. A timeout, a refusal, a server failure, an invalid response
// or a bound below is reported in `problem`.
//
// Thread-safe; calls share no state.
class DnsResolver final : public Resolver {
 public:
  struct Options {
    std::vector<base::DnsServer> servers;       // empty: those of the system (/etc/resolv.conf)
    std::chrono::milliseconds timeout{10'000};  // of one whole call
    std::size_t addresses_max = 4096;           // of one source; as many targets of its SRV records
    std::size_t concurrent_max = 64;            // queries in flight
  };

  explicit DnsResolver(Options options) : options_(std::move(options)) {}

  std::vector<DnsAnswer> resolve(std::span<const base::DnsSource> sources) override;

 private:
  Options options_;
};

}  // namespace spoor::peer
