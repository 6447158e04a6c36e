#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/endpoint.h"
#include "base/error.h"
#include "base/file_system.h"
#include "daemon/http/http_message.h"
#include "peer/http/credentials.h"
#include "peer/http/http_transport.h"
#include "scanner/usage/usage_query.h"

namespace spoor::daemon {

// How this daemon names itself in its reports.
struct NodeLabel {
  std::string name;
  std::string cluster;
  std::string instance;
  std::string version = {};                           // empty: not known
  std::optional<base::DiskSpace> fullest_drive = {};  // as at its last snapshot; not in to_json()

  nlohmann::ordered_json to_json() const;
};

// The members of the cluster, as far as this node knows them.
struct ClusterMembers {
  std::vector<base::Endpoint> endpoints;     // without its own
  std::vector<std::string> names;            // of the endpoints, as found before; empty: unknown
  std::set<std::string> own_urls = {};       // where this daemon was found last
  std::vector<std::string> unknown_sources;  // DNS names or etcd that may list further ones, and why
  peer::Credentials credentials;
};

// A peer that the last scan expects.
struct KnownPeer {
  std::string name;
  std::string url;  // where it was read last; empty: not known
};

// What this node adds itself: its totals, or why there are none, and the peers that its last scan knows.
struct OwnUsage {
  base::Result<scanner::Usage> usage;
  std::vector<KnownPeer> known_peers;
  std::optional<base::DiskSpace> fullest_drive = {};
};

// The query of a request for the totals of one directory.
struct UsageTarget {
  std::string path;
  std::string order;  // its name in a query
  scanner::UsageOptions options;
};

// The totals of directories that nodes reported last, for the time when they do not respond.
//
// Memory is bounded: of each report the first directories are kept, and the reports that came in last. Not
// thread-safe.
class LastUsage {
 public:
  static constexpr std::size_t bytes_max = std::size_t{16} << 20U;  // of all, about
  static constexpr std::size_t entries_each = 200;
  static constexpr std::size_t path_bytes_each = std::size_t{64} << 10U;

  // What was asked for: the same answer to it is replaced.
  struct Query {
    std::string path;
    std::uint64_t depth = 1;
    bool owners = false;

    friend bool operator==(const Query&, const Query&) = default;
  };

  struct Report {
    std::string node;
    std::string url;  // where it responded
    scanner::Usage usage;
  };

  // Without growth, and without directories that exist no longer.
  void keep(const Query& query, Report report);

  // The last report of the node, or of that at the URL if `node` is empty; null if none is kept. With the
  // owners if they are wanted, and as deep, if there is such a report. Valid until the next keep().
  const Report* find(std::string_view node, std::string_view url, const Query& query) const;

 private:
  struct Kept {
    Query query;
    Report report;
    std::size_t bytes = 0;
  };

  std::list<Kept> newest_first_;
  std::size_t bytes_ = 0;
};

// Asks all members for their totals of a directory, side by side, and adds them up by path. A node that does
// not respond is named in the response, and counts with the totals that it reported last, if it has.
//
// Not thread-safe. Waits for responses for `timeout` at most. Parsing one takes further time and memory,
// which peer::json_values_max bounds. Connections stay open between calls.
class ClusterUsage {
 public:
  struct Options {
    NodeLabel own;
    std::chrono::milliseconds timeout;
    peer::MakeTransport make_transport = peer::make_http_transport;
  };

  explicit ClusterUsage(Options options) : options_(std::move(options)) {}

  HttpResponse ask(const UsageTarget& target, const OwnUsage& own, const ClusterMembers& members);

 private:
  peer::Transport& transport(const peer::Credentials& credentials);

  const Options options_;
  LastUsage last_;
  std::unique_ptr<peer::Transport> transport_;
  peer::Credentials credentials_;  // of `transport_`
};

}  // namespace spoor::daemon
