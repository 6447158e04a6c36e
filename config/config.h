// The configuration of a node: one plain struct that holds the defaults. Its sections and names are
// those of the file (config/spoor.example.json).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace spoor::config {

enum class Durability { disk, os, memory };
enum class BucketNames { any, s3 };
enum class Require { any, all };
enum class NewPeers { walk, trust };
enum class LogLevel { trace, debug, info, warn, error };
enum class LogFormat { text, json };

// What somebody may do: mark; read what is known here; ask for marks as another node of the cluster; all.
enum class Role { none, mark, read, peer, admin };

// Files in PEM, each a path or "credential:NAME", see secret_file.h.
struct Tls {
  std::filesystem::path certificate = {};
  std::filesystem::path key = {};
  std::filesystem::path client_ca = {};  // Empty: clients are not asked for a certificate.

  bool operator==(const Tls&) const = default;
};

// Either an address and a port, or a Unix socket.
struct Listener {
  std::string address = {};              // An IP address; empty for a Unix socket.
  std::uint16_t port = 7420;             // 0 takes a free one.
  std::filesystem::path unix_path = {};  // Empty for an address.
  bool insecure = false;                 // Asks nobody who he is, wherever he comes from.
  std::optional<Tls> tls = {};           // None: plain.
  std::string mode = {};                 // Of the socket, octal; empty: 0660.
  std::string group = {};                // Of the socket; empty: the daemon's.

  bool operator==(const Listener&) const = default;
};

// Section "peers.etcd": members that register themselves.
struct Etcd {
  std::vector<std::string> endpoints;  // http://host:port
  std::string prefix = "spoor";        // of all keys
  std::chrono::milliseconds ttl = std::chrono::seconds(30);
  std::chrono::milliseconds forget_after = std::chrono::hours(24);
  std::string url;  // Where others reach this node; empty: see advertised_url.h.
  bool operator==(const Etcd&) const = default;
};

// Whoever knows a token may do what its role allows.
struct Token {
  std::string name = {};  // For people.
  Role role = Role::none;
  std::string sha256 = {};          // Of the token, in hexadecimal; or else:
  std::filesystem::path file = {};  // That holds the token: a path or "credential:NAME".
  bool operator==(const Token&) const = default;
};

// A process at the Unix socket: of this user, or in this group.
struct UnixRule {
  std::string user = {};
  std::string group = {};
  Role role = Role::none;
  bool operator==(const UnixRule&) const = default;
};

struct CertificateRule {
  std::string name = {};  // Of the certificate: a glob.
  Role role = Role::none;
  bool operator==(const CertificateRule&) const = default;
};

// How this node shows other daemons who it is, and knows them.
struct PeerTls {
  std::filesystem::path ca = {};           // Empty: the authorities that the system trusts.
  std::filesystem::path certificate = {};  // Empty: none is shown.
  std::filesystem::path key = {};
  bool operator==(const PeerTls&) const = default;
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
    std::vector<std::string> static_urls;  // "static": http://host[:port] or unix:/path.
    std::vector<std::string> dns;          // name[:port] or srv:_service._proto.name.
    std::vector<std::string> dns_servers;  // address[:port]; none: those of the system.
    std::chrono::milliseconds forget_after = std::chrono::hours(24);
    std::optional<Etcd> etcd;
    std::filesystem::path token_file;  // Holds the token to show them; empty: none.
    bool token_to_all = false;         // Else not to addresses that DNS or etcd alone names.
    std::optional<PeerTls> tls;        // For https:// URLs.
    std::chrono::milliseconds timeout = std::chrono::seconds(10);
    bool operator==(const Peers&) const = default;
  };

  struct Scan {
    std::chrono::milliseconds min_cycle_age = std::chrono::seconds(60);
    Require require = Require::any;
    NewPeers new_peers = NewPeers::walk;
    std::uint32_t threads = 0;                                             // 0: the scanner chooses.
    std::uint32_t max_dirs_per_second = 0;                                 // 0: no limit.
    std::chrono::milliseconds audit_period = std::chrono::hours(24 * 30);  // 0: off.
    bool file_feed = false;  // The change feed names files, too.
    bool operator==(const Scan&) const = default;
  };

  struct Auth {
    std::vector<Token> tokens;
    std::vector<UnixRule> unix_peers;           // "unix"; none: see default_unix_roles in daemon/access.h.
    std::vector<CertificateRule> certificates;  // Who comes with a certificate, and may do what.
    bool operator==(const Auth&) const = default;
  };

  struct Limits {
    std::uint64_t max_body_bytes = 8ULL << 20U;
    std::uint64_t max_bodies_bytes = 24ULL << 20U;  // Of all requests at a time.
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
  bool listen_is_default = true;  // Nobody gave `listen`.
  Tracker tracker;
  Namespace name_space;
  Peers peers;
  Scan scan;
  Auth auth;
  Limits limits;
  Log log;

  bool operator==(const Config&) const = default;
};

}  // namespace spoor::config
