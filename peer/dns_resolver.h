// Finds members in the DNS.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "peer/dns_source.h"
#include "peer/endpoint.h"

namespace spoor::peer {

// What the DNS says of one source. That nobody is there is an answer; that it can't be found out is not, nor
// is the target of an SRV record that has no address.
struct DnsAnswer {
  std::vector<Endpoint> endpoints;  // by URL, none twice
  std::string problem;              // why endpoints may be missing above; empty where none is
};

class Resolver {
 public:
  virtual ~Resolver() = default;
  Resolver() = default;
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Blocks until all is answered or given up. An answer for each source, in their order.
  virtual std::vector<DnsAnswer> resolve(std::span<const DnsSource> sources) = 0;
};

// Asks DNS servers, all sources side by side. Answers that lack something for a timeout, a refusal, a
// server's failure, nonsense or a bound below say so in `problem`.
//
// Thread-safe; every call works alone.
class DnsResolver final : public Resolver {
 public:
  struct Options {
    std::vector<DnsServer> servers;             // empty: those of the system (/etc/resolv.conf)
    std::chrono::milliseconds timeout{10'000};  // of one whole call
    std::size_t addresses_max = 4096;           // of one source; as many targets of its SRV records
    std::size_t concurrent_max = 64;            // queries on their way at a time
  };

  explicit DnsResolver(Options options) : options_(std::move(options)) {}

  std::vector<DnsAnswer> resolve(std::span<const DnsSource> sources) override;

 private:
  Options options_;
};

}  // namespace spoor::peer
