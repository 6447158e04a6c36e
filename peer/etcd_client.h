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
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "peer/transport.h"

namespace spoor::peer {

// What goes with it is gone when nobody kept it alive for its time to live; 0 is none.
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

struct EtcdListing {
  std::vector<EtcdEntry> entries;  // in the order of their keys
  std::string cluster_id;          // another one where etcd was set up anew
  std::int64_t revision = 0;       // of all of etcd; never falls, but where a backup was put back
};

// That the key was last written at this revision; 0: that it is not there.
struct EtcdCondition {
  std::string key;
  std::int64_t mod_revision = 0;
};

// Written and erased at one moment.
struct EtcdChanges {
  std::vector<EtcdPut> puts;
  std::vector<std::string> erased = {};
};

// Two equal ones of one range: nothing in it was written or erased in between.
struct EtcdRangeState {
  std::string cluster_id;  // another one where etcd was restored from a backup
  std::int64_t count = 0;
  std::int64_t newest_revision = 0;

  friend bool operator==(const EtcdRangeState&, const EtcdRangeState&) = default;
};

// Tries the endpoints one after the other, beginning with the one that answered last. What etcd answers
// is believed no more than any other answer from outside: bounded and checked.
//
// A put under a lease that is gone fails with std::errc::no_such_file_or_directory. Any other operation that
// failed may have been carried out. Not thread-safe; references must outlive it.
class EtcdClient {
 public:
  struct Options {
    // No further endpoint is tried after that; one exchange takes what the transport gives it.
    std::chrono::milliseconds operation_max{10'000};
    // Nothing further is sent once it asks to stop.
    std::stop_token stop = {};
  };

  // In one range; a longer one is an error, not cut off.
  static constexpr std::size_t entries_max = 20'000;
  // For the transport: the largest answer to take. A page of entries is far smaller.
  static constexpr std::uint64_t answer_bytes_max = std::uint64_t{2} << 20U;

  EtcdClient(Transport& transport, const base::Clock& clock, std::vector<Endpoint> endpoints,
             Options options);

  base::Result<EtcdLease> grant(std::chrono::seconds ttl);

  // Whether the lease was still there.
  base::Result<bool> keep_alive(EtcdLease lease);

  // All that goes with it is gone at once. A success, too, where it was gone.
  base::Result<> revoke(EtcdLease lease);

  // All or none.
  base::Result<> put(std::span<const EtcdPut> puts);

  // Whether all conditions held, and the changes were made. No key may stand in them twice.
  base::Result<bool> change_if(std::span<const EtcdCondition> conditions, const EtcdChanges& changes);

  // Whether the key was absent and is put now. Also true where it stands under this lease already, by an
  // earlier attempt whose answer was lost.
  base::Result<bool> put_if_absent(const EtcdPut& put);

  // All entries as they were at one moment.
  base::Result<EtcdListing> list(const EtcdRange& range);
  base::Result<EtcdRangeState> state(const EtcdRange& range);

 private:
  base::Result<nlohmann::json> call(const char* target, const nlohmann::json& body);
  base::Result<nlohmann::json> ask(const char* target, const std::string& body);

  Transport& transport_;
  const base::Clock& clock_;
  const std::vector<Endpoint> endpoints_;
  const Options options_;
  std::size_t next_ = 0;  // the endpoint to try first
};

}  // namespace spoor::peer
