// The options of the daemon's parts, from the configuration and the files that it names.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "config/config.h"
#include "daemon/api/access.h"
#include "daemon/http/http_session.h"
#include "daemon/membership/etcd_membership.h"
#include "peer/http/credentials.h"
#include "peer/membership/membership.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

tracker::Persistence::Options persistence_options(const config::Config& config, std::string rules);

// A body of the allowed size fits. Raises the limit on open files (RLIMIT_NOFILE) as far as possible; if it
// is too low, fewer connections are allowed, and a warning is logged.
HttpLimits http_limits(const config::Config& config, std::size_t other_threads);

// Each fails if a file is unusable, or if `auth` names a user or group that this machine does not know.
base::Result<std::shared_ptr<const Access>> load_access(const config::Config::Auth& auth);
base::Result<peer::Credentials> peer_credentials(const config::Config::Peers& peers);
base::Result<EtcdMembership::Secrets> etcd_secrets(const config::Etcd& etcd);

// Which certificate in `credentials` has expired, and when; none: it is valid, or there is none.
std::optional<std::string> certificate_expiry(const std::optional<config::PeerTls>& files,
                                              const peer::Credentials& credentials, base::WallTime now);

// `peers.etcd` must be set.
EtcdMembership::Options etcd_options(const config::Config& config, const std::string& instance,
                                     EtcdMembership::Secrets secrets);

// Null if no DNS name is configured. The default is short: a stop waits for it.
std::shared_ptr<peer::MemberSource> dns_members(
    const config::Config::Peers& peers, std::chrono::milliseconds timeout = std::chrono::milliseconds(2'000));

}  // namespace spoor::daemon
