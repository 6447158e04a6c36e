#include "peer/membership/dns_members.h"

#include <algorithm>
#include <utility>

namespace spoor::peer {

DnsMembers::DnsMembers(std::shared_ptr<Resolver> resolver, Options options)
    : resolver_(std::move(resolver)), options_(std::move(options)) {
  std::vector<base::DnsSource> names;
  for (base::DnsSource& name : options_.names) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  options_.names = std::move(names);
}

std::vector<SourceListing> DnsMembers::list() {
  if (options_.names.empty()) return {};
  auto answers = resolver_->resolve(options_.names);
  std::vector<SourceListing> listings;
  listings.reserve(answers.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    for (base::Endpoint& endpoint : answers[i].endpoints) {
      endpoint.is_tls = options_.is_tls;
      if (!options_.is_tls) endpoint.tls_name.clear();
    }
    SourceListing listing{.source = "dns " + options_.names[i].to_string(),
                          .listed = urls_of(answers[i].endpoints, answers[i].problem)};
    listing.problem = std::move(answers[i].problem);
    listings.push_back(std::move(listing));
  }
  return listings;
}

}  // namespace spoor::peer
