#pragma once

#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "config/config.h"
#include "peer/http/http_transport.h"
#include "peer/membership/etcd_client.h"
#include "peer/membership/etcd_registry.h"

namespace spoor::cli {

// A client of the etcd in `peers.etcd`, for one command. Not thread-safe.
class EtcdConnection {
 public:
  // `peers.etcd` must be set. Fails if the password or a TLS file is unusable. The clock must outlive it.
  static base::Result<std::unique_ptr<EtcdConnection>> open(const config::Config& config,
                                                            const base::Clock& clock);

  const peer::EtcdLocation location;
  peer::HttpTransport transport;
  peer::EtcdClient client;

 private:
  EtcdConnection(const config::Config& config, const peer::Credentials& credentials, std::string password,
                 const base::Clock& clock);
};

}  // namespace spoor::cli
