#pragma once

#include <memory>
#include <vector>

#include "base/dns_source.h"
#include "peer/membership/dns_resolver.h"
#include "peer/membership/member_source.h"

namespace spoor::peer {

// The members that DNS names list.
class DnsMembers final : public MemberSource {
 public:
  struct Options {
    std::vector<base::DnsSource> names;
    // Uses https. The certificate must be for the name in `names`, or for the target of its SRV record.
    bool is_tls = false;
  };

  DnsMembers(std::shared_ptr<Resolver> resolver, Options options);

  // Resolves all names in parallel.
  std::vector<SourceListing> list() override;

 private:
  const std::shared_ptr<Resolver> resolver_;
  Options options_;
};

}  // namespace spoor::peer
