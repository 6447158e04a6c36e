// The few operations on etcd that Spoor needs, over its JSON interface (version 3.4 and later).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "peer/http/transport.h"

namespace spoor::peer {

// The keys under it expire if no client keeps it alive for its time to live. 0: none.
struct EtcdLease {
  std::int64_t id = 0;

  friend bool operator==(const EtcdLease&, const EtcdLease&) = default;
};

struct EtcdPut {
  std::string key;
  std::string value;
  EtcdLease lease{};
};

struct EtcdEntry {
  std::string key;
  std::string value;
  EtcdLease lease{};
  std::int64_t mod_revision = 0;  // of the last write of this key
};

// The keys from `first` on, up to and without `end`.
struct EtcdRange {
  std::string first;
  std::string end;
};

// If two states of a range are equal, no key in it changed in between.
struct EtcdRangeState {
  std::string cluster_id;  // differs after etcd was restored from a backup
  std::int64_t count = 0;
  std::int64_t newest_revision = 0;

  friend bool operator==(const EtcdRangeState&, const EtcdRangeState&) = default;
};

// Tries the endpoints one after the other, beginning with the one that responded last. Responses are bounded
// and checked. With a user, it authenticates at the first request, and again where etcd no longer accepts the
// token.
//
// A put under an expired lease fails with std::errc::no_such_file_or_directory. Any other operation that
// failed may have been carried out. Not thread-safe; references must outlive it.
class EtcdClient {
 public:
  struct Options {
    std::string user = {};  // empty: etcd asks for none
    std::string password = {};
    // No further endpoint is tried after that; one exchange takes what the transport gives it.
    std::chrono::milliseconds operation_max{10'000};
    // Nothing further is sent once it asks to stop.
    std::stop_token stop = {};
  };

  // In one range; a longer one is an error, not cut off.
  static constexpr std::size_t entries_max = 20'000;
  // For the transport: the largest answer to take. A page of entries is far smaller.
  static constexpr std::uint64_t answer_bytes_max = std::uint64_t{2} << 20U;

  EtcdClient(Transport& transport, const base::Clock& clock, std::vector<base::Endpoint> endpoints,
             Options options);

  // Replaces the transport and the password, from the next operation on.
  void set_transport(Transport& transport, std::string password);

  base::Result<EtcdLease> grant(std::chrono::seconds ttl);

  // Whether the lease was still there.
  base::Result<bool> keep_alive(EtcdLease lease);

  // All that goes with it is gone at once. A success, too, where it was gone.
  base::Result<> revoke(EtcdLease lease);

  // In one transaction. No key may stand in it twice.
  base::Result<> put(std::span<const EtcdPut> puts);

  // All entries as they were at one moment, in the order of their keys.
  base::Result<std::vector<EtcdEntry>> list(const EtcdRange& range);
  base::Result<EtcdRangeState> state(const EtcdRange& range);

 private:
  base::Result<nlohmann::json> call(const char* target, const nlohmann::json& body);
  base::Result<nlohmann::json> request(const base::Endpoint& endpoint, const char* target,
                                       const std::string& body);
  base::Result<> authenticate(const base::Endpoint& endpoint);

  Transport* transport_;
  const base::Clock& clock_;
  const std::vector<base::Endpoint> endpoints_;
  Options options_;
  std::size_t next_ = 0;  // the endpoint to try first
  // Of the user; empty where etcd does not authenticate users.
  std::optional<std::string> token_;
};

}  // namespace spoor::peer
