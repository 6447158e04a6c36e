#pragma once

#include "base/clock.h"
#include "config/config.h"
#include "peer/etcd_client.h"
#include "peer/etcd_roll.h"
#include "peer/http_transport.h"

namespace spoor::cli {

// etcd as `peers.etcd` names it, for one command. Not thread-safe.
struct EtcdConnection {
  // `peers.etcd` must be set. The clock must outlive it.
  EtcdConnection(const config::Config& config, const base::Clock& clock);

  const peer::EtcdPlace place;
  peer::HttpTransport transport;
  peer::EtcdClient client;
};

}  // namespace spoor::cli
