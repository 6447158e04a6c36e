// The configuration of a node: one plain struct with the defaults. Its sections and names are those of the
// file (config/spoor.example.json).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/dns_source.h"
#include "base/endpoint.h"
#include "tracker/paths/copy_rules.h"
#include "tracker/storage/instance_record.h"

namespace spoor::config {

using tracker::Durability;
enum class BucketNames { any, s3 };
enum class Require { any, all };
enum class Daemons { all, own };
enum class Unwatched { walk, partial };
enum class EventFormat { structured, batched };
enum class LogLevel { trace, debug, info, warn, error };
enum class LogFormat { text, json };

// What a client may do: mark paths; read this node's state; request marks as a peer; everything.
enum class Role { none, mark, read, peer, admin };

// PEM files, each a path or "credential:NAME" (secret_file.h).
struct Tls {
  std::filesystem::path certificate = {};
  std::filesystem::path key = {};
  std::filesystem::path client_ca = {};  // Empty: no client certificate is requested.

  bool operator==(const Tls&) const = default;
};

// Either an address and a port, or a Unix socket.
struct Listener {
  std::string address = {};              // An IP address; empty for a Unix socket.
  std::uint16_t port = 7420;             // 0: any free port.
  std::filesystem::path unix_path = {};  // Empty for an address.
  bool insecure = false;                 // Accepts requests from any address without credentials.
  std::optional<Tls> tls = {};           // None: plain HTTP.
  bool page = true;                      // Serves the page for browsers.
  std::string mode = {};                 // Of the Unix socket, octal; empty: 0660.
  std::string group = {};                // Of the Unix socket; empty: the daemon's group.

  bool operator==(const Listener&) const = default;
};

using PeerTls = base::TlsClientFiles;  // Each file a path or "credential:NAME", see secret_file.h.
using UsageCopies = tracker::CopyRules::Rule;

// Section "peers.etcd": members that register themselves in etcd.
struct Etcd {
  std::vector<base::Endpoint> endpoints;
  std::string prefix = "spoor";  // of all keys
  std::chrono::milliseconds ttl = std::chrono::seconds(30);
  std::chrono::milliseconds forget_after = std::chrono::hours(24);
  std::string url;                      // At which other nodes reach this node; empty: see derived.h.
  std::optional<PeerTls> tls;           // For https endpoints.
  std::string user;                     // Empty: etcd asks for none.
  std::filesystem::path password_file;  // A path or "credential:NAME".
  bool operator==(const Etcd&) const = default;
};

// A client that presents this token has its role.
struct Token {
  std::string name = {};  // For logs and metrics.
  Role role = Role::none;
  std::string sha256 = {};          // Of the token, in hexadecimal. Empty if `file` is set.
  std::filesystem::path file = {};  // Contains the token: a path or "credential:NAME".
  bool operator==(const Token&) const = default;
};

// The role of a process that connects to the Unix socket: of this user, or in this group.
struct UnixRule {
  std::string user = {};
  std::string group = {};
  Role role = Role::none;
  bool operator==(const UnixRule&) const = default;
};

// The role of a client with a certificate.
struct CertificateRule {
  std::string name = {};  // A glob that matches a name in the certificate.
  Role role = Role::none;
  bool operator==(const CertificateRule&) const = default;
};

// A size of a directory from which a scan warns. 0: no limit.
struct UsageLimit {
  std::string path = {};  // Empty: everything.
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  std::uint64_t growth_per_day_bytes = 0;
  bool cluster = false;  // Of the totals of all nodes, not of this node's.
  bool operator==(const UsageLimit&) const = default;
};

// Where spoor-publish publishes the change feed.
struct Sink {
  std::string name = {};  // For metrics and logs; the consumer "publish:NAME" of the feed has its position.
  std::string url = {};   // sink_url.h
  std::string topic = "spoor.changes";        // Of Kafka; the subject of NATS.
  EventFormat format = EventFormat::batched;  // Of HTTP.
  std::uint32_t batch = 10'000;               // Events that are published before one waits, at most.
  bool existing = true;                       // At its start, and after a reset: publishes all that exists.
  std::string user = {};                      // Empty: none.
  std::filesystem::path password_file = {};   // Of this user: a path or "credential:NAME".
  std::filesystem::path token_file = {};      // Of HTTP and NATS: a path or "credential:NAME".
  std::optional<PeerTls> tls = {};
  bool operator==(const Sink&) const = default;
};

struct Config {
  struct Node {
    std::string name;
    std::string cluster = "default";
    std::filesystem::path data_dir = "/var/lib/spoor";
    bool operator==(const Node&) const = default;
  };

  struct Tracker {
    std::uint64_t items = 200'000;
    double fp_rate = 0.1;
    std::uint32_t history = 16;
    std::chrono::milliseconds save_interval = std::chrono::minutes(5);
    Durability durability = Durability::disk;
    std::uint64_t memory_limit_bytes = 256ULL << 20U;
    bool operator==(const Tracker&) const = default;
  };

  // Section "namespace".
  struct Namespace {
    std::vector<std::string> exclude;  // Globs.
    BucketNames bucket_names = BucketNames::any;
    bool operator==(const Namespace&) const = default;
  };

  struct Peers {
    std::vector<base::Endpoint> static_endpoints;  // "static".
    std::vector<base::DnsSource> dns;
    std::vector<base::DnsServer> dns_servers;  // Empty: those of the system.
    bool dns_tls = false;                      // The members in `dns` are reached by https.
    std::chrono::milliseconds forget_after = std::chrono::hours(24);
    std::optional<Etcd> etcd;
    std::filesystem::path token_file;  // Contains the token that is sent to peers; empty: none.
    bool token_to_all = false;         // Also to addresses that only DNS or etcd lists.
    std::optional<PeerTls> tls;        // For https:// URLs.
    std::chrono::milliseconds timeout = std::chrono::seconds(10);
    bool operator==(const Peers&) const = default;
  };

  struct Scan {
    std::chrono::milliseconds min_cycle_age = std::chrono::seconds(60);
    // Whose marks a scan reads. `own`: those of this node, if all its drives are watched.
    Daemons daemons = Daemons::all;
    Require require = Require::any;
    std::uint32_t threads = 0;                                             // 0: the scanner chooses.
    std::uint32_t max_dirs_per_second = 0;                                 // 0: no limit.
    std::chrono::milliseconds audit_period = std::chrono::hours(24 * 30);  // 0: off.
    bool file_feed = false;  // The change feed lists files, too.
    bool operator==(const Scan&) const = default;
  };

  struct Auth {
    std::vector<Token> tokens;
    std::vector<UnixRule> unix_peers;  // "unix"; none: see default_unix_roles in daemon/api/access.h.
    std::vector<CertificateRule> certificates;
    bool operator==(const Auth&) const = default;
  };

  struct Usage {
    std::vector<UsageCopies> copies;  // The first that matches a directory applies to all below it.
    std::vector<UsageLimit> limits;
    std::string limit_command = {};  // That a scan runs with /bin/sh when one is crossed. Empty: none.
    bool owners = false;             // Totals by owner, down to history.depth.
    bool operator==(const Usage&) const = default;
  };

  // The totals of directories over time, kept by the scans.
  struct History {
    bool keep = true;
    std::uint32_t depth = 2;            // Of directories this many levels below the root.
    std::vector<std::string> prefixes;  // And of these, at any depth.
    bool operator==(const History&) const = default;
  };

  // What spoor-watch marks by events of the kernel.
  struct Watch {
    bool all_drives = false;                    // "drives" is "all".
    std::vector<std::filesystem::path> drives;  // Else: these of the node's drives.
    std::chrono::milliseconds batch{20};        // Events are read in batches this far apart.
    std::chrono::milliseconds timeout = std::chrono::seconds(10);  // Of a scan that waits for spoor-watch.
    Unwatched unwatched = Unwatched::walk;  // What a scan does where spoor-watch does not respond.
    bool operator==(const Watch&) const = default;
  };

  // What spoor-publish does.
  struct Publish {
    std::chrono::milliseconds interval = std::chrono::seconds(5);  // Of looking for new scans.
    std::vector<Sink> sinks;
    bool operator==(const Publish&) const = default;
  };

  struct Limits {
    std::uint64_t max_body_bytes = 8ULL << 20U;
    std::uint64_t max_bodies_bytes = 24ULL << 20U;  // Of all concurrent requests together.
    std::uint32_t threads = 1;                      // That serve connections; 0: one for each processor.
    std::uint32_t max_connections = 1024;
    bool operator==(const Limits&) const = default;
  };

  struct Log {
    LogLevel level = LogLevel::info;
    LogFormat format = LogFormat::text;
    bool operator==(const Log&) const = default;
  };

  Node node;
  std::vector<std::filesystem::path> drives;  // Absolute and normal: no "//", "." or trailing "/".
  std::vector<Listener> listen = {Listener{.address = "127.0.0.1"},
                                  Listener{.unix_path = "/run/spoor/spoor.sock"}};
  bool listen_is_default = true;  // `listen` is not set in the file or by an override.
  Tracker tracker;
  Namespace name_space;
  Peers peers;
  Scan scan;
  Usage usage;
  History history;
  Watch watch;
  Publish publish;
  Auth auth;
  Limits limits;
  Log log;

  bool operator==(const Config&) const = default;
};

}  // namespace spoor::config
