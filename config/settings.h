// The table of all settings: dotted key, member of the struct, accepted values. Loading, printing, range
// checks and the suggestion for an unknown key all use it, so a setting cannot be missing from one of them.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "config/config.h"

namespace spoor::config {

// How a value is written and its range, where its type alone does not determine them. `T` is const when
// printing.
template <class T>
struct Whole {
  T& value;
  std::uint64_t least;
  std::uint64_t most;
};

template <class T>
struct ByteSize {
  T& bytes;
  std::uint64_t least;
  std::uint64_t most;
};

template <class T>
struct Duration {
  T& value;
  std::chrono::milliseconds least;
};

// Ensures that the sum of a duration and any clock reading fits in 64 bits of nanoseconds.
inline constexpr std::chrono::milliseconds duration_most = std::chrono::hours(24) * 36'500;

// URLs; `T` is a vector of base::Endpoint.
template <class T>
struct Urls {
  T& endpoints;
  std::uint16_t default_port;
};

// "all", or a list of paths.
template <class Bool, class Paths>
struct AllOr {
  Bool& all;
  Paths& paths;
};

template <class Enum>
using EnumName = std::pair<std::string_view, Enum>;

// The names of each enum's values. If two names have the same value, the first is printed.
constexpr std::array<EnumName<Durability>, 3> names_of(Durability) {
  return {{{"disk", Durability::disk}, {"os", Durability::os}, {"memory", Durability::memory}}};
}
constexpr std::array<EnumName<BucketNames>, 2> names_of(BucketNames) {
  return {{{"any", BucketNames::any}, {"s3", BucketNames::s3}}};
}
constexpr std::array<EnumName<Daemons>, 2> names_of(Daemons) {
  return {{{"all", Daemons::all}, {"own", Daemons::own}}};
}
constexpr std::array<EnumName<Require>, 2> names_of(Require) {
  return {{{"any", Require::any}, {"all", Require::all}}};
}
constexpr std::array<EnumName<Unwatched>, 2> names_of(Unwatched) {
  return {{{"walk", Unwatched::walk}, {"partial", Unwatched::partial}}};
}
constexpr std::array<EnumName<EventFormat>, 2> names_of(EventFormat) {
  return {{{"structured", EventFormat::structured}, {"batched", EventFormat::batched}}};
}
constexpr std::array<EnumName<LogLevel>, 6> names_of(LogLevel) {
  return {{{"trace", LogLevel::trace},
           {"debug", LogLevel::debug},
           {"info", LogLevel::info},
           {"warn", LogLevel::warn},
           {"error", LogLevel::error},
           {"warning", LogLevel::warn}}};
}
constexpr std::array<EnumName<LogFormat>, 2> names_of(LogFormat) {
  return {{{"text", LogFormat::text}, {"json", LogFormat::json}}};
}
// Role::none has no name: a role must be given.
constexpr std::array<EnumName<Role>, 4> names_of(Role) {
  return {{{"mark", Role::mark}, {"read", Role::read}, {"peer", Role::peer}, {"admin", Role::admin}}};
}

template <class T, class Part>
concept MaybeConst = std::same_as<std::remove_const_t<T>, Part>;

// visit_parts(part, visit) calls visit(key, value) for each member of one object of the file, in the file's
// order.

template <MaybeConst<Tls> T, class Visit>
void visit_parts(T& tls, Visit&& visit) {
  visit("certificate", tls.certificate);
  visit("key", tls.key);
  visit("client_ca", tls.client_ca);
}

template <MaybeConst<PeerTls> T, class Visit>
void visit_parts(T& tls, Visit&& visit) {
  visit("ca", tls.ca);
  visit("certificate", tls.certificate);
  visit("key", tls.key);
}

template <MaybeConst<Listener> T, class Visit>
void visit_parts(T& listener, Visit&& visit) {
  visit("address", listener.address);
  visit("port", Whole{listener.port, 0, 65'535});
  visit("unix", listener.unix_path);
  visit("insecure", listener.insecure);
  visit("tls", listener.tls);
  visit("page", listener.page);
  visit("mode", listener.mode);
  visit("group", listener.group);
}

template <MaybeConst<Token> T, class Visit>
void visit_parts(T& token, Visit&& visit) {
  visit("name", token.name);
  visit("role", token.role);
  visit("sha256", token.sha256);
  visit("file", token.file);
}

template <MaybeConst<UnixRule> T, class Visit>
void visit_parts(T& rule, Visit&& visit) {
  visit("user", rule.user);
  visit("group", rule.group);
  visit("role", rule.role);
}

template <MaybeConst<CertificateRule> T, class Visit>
void visit_parts(T& rule, Visit&& visit) {
  visit("name", rule.name);
  visit("role", rule.role);
}

template <MaybeConst<UsageCopies> T, class Visit>
void visit_parts(T& copies, Visit&& visit) {
  visit("path", copies.path);
  visit("factor", copies.factor);
}

template <MaybeConst<UsageLimit> T, class Visit>
void visit_parts(T& limit, Visit&& visit) {
  visit("path", limit.path);
  visit("bytes", ByteSize{limit.bytes, 0, 1ULL << 62U});
  visit("files", Whole{limit.files, 0, 1ULL << 62U});
  visit("growth_per_day", ByteSize{limit.growth_per_day_bytes, 0, 1ULL << 62U});
  visit("cluster", limit.cluster);
}

template <MaybeConst<Sink> T, class Visit>
void visit_parts(T& sink, Visit&& visit) {
  visit("name", sink.name);
  visit("url", sink.url);
  visit("topic", sink.topic);
  visit("format", sink.format);
  visit("batch", Whole{sink.batch, 1, 100'000});
  visit("existing", sink.existing);
  visit("user", sink.user);
  visit("password_file", sink.password_file);
  visit("token_file", sink.token_file);
  visit("tls", sink.tls);
}

template <MaybeConst<Etcd> T, class Visit>
void visit_parts(T& etcd, Visit&& visit) {
  visit("endpoints", Urls{etcd.endpoints, base::etcd_port});
  visit("prefix", etcd.prefix);
  visit("ttl", Duration{etcd.ttl, std::chrono::seconds(2)});
  visit("forget_after", Duration{etcd.forget_after, std::chrono::minutes(1)});
  visit("url", etcd.url);
  visit("tls", etcd.tls);
  visit("user", etcd.user);
  visit("password_file", etcd.password_file);
}

// Where the setting stands in the document: "/section/setting" of "section.setting".
inline nlohmann::json::json_pointer pointer_to(std::string_view key) {
  std::string path = '/' + std::string(key);
  std::ranges::replace(path, '.', '/');
  return nlohmann::json::json_pointer(path);
}

template <class T>
concept HasParts = requires(T& part) { visit_parts(part, [](std::string_view, auto&&) {}); };

// Calls visit(key, value) for every setting, in the order of the file. `ConfigT` is Config or
// const Config.
template <class ConfigT, class Visit>
void visit_settings(ConfigT& config, Visit&& visit) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  visit("node.name", config.node.name);
  visit("node.cluster", config.node.cluster);
  visit("node.data_dir", config.node.data_dir);
  visit("drives", config.drives);
  visit("listen", config.listen);
  visit("tracker.items", Whole{config.tracker.items, 1, 200'000'000});
  visit("tracker.fp_rate", config.tracker.fp_rate);
  visit("tracker.history", Whole{config.tracker.history, 1, 1024});
  visit("tracker.save_interval", Duration{config.tracker.save_interval, seconds(1)});
  visit("tracker.durability", config.tracker.durability);
  visit("tracker.memory_limit", ByteSize{config.tracker.memory_limit_bytes, 1, 1ULL << 50U});
  visit("namespace.exclude", config.name_space.exclude);
  visit("namespace.bucket_names", config.name_space.bucket_names);
  visit("peers.static", Urls{config.peers.static_endpoints, base::spoor_port});
  visit("peers.dns", config.peers.dns);
  visit("peers.dns_servers", config.peers.dns_servers);
  visit("peers.dns_tls", config.peers.dns_tls);
  visit("peers.forget_after", Duration{config.peers.forget_after, seconds(0)});
  visit("peers.etcd", config.peers.etcd);
  visit("peers.token_file", config.peers.token_file);
  visit("peers.token_to_all", config.peers.token_to_all);
  visit("peers.tls", config.peers.tls);
  visit("peers.timeout", Duration{config.peers.timeout, milliseconds(1)});
  visit("scan.min_cycle_age", Duration{config.scan.min_cycle_age, seconds(0)});
  visit("scan.daemons", config.scan.daemons);
  visit("scan.require", config.scan.require);
  visit("scan.threads", Whole{config.scan.threads, 0, 256});
  visit("scan.max_dirs_per_second", Whole{config.scan.max_dirs_per_second, 0, 1'000'000'000});
  visit("scan.audit_period", Duration{config.scan.audit_period, seconds(0)});
  visit("scan.file_feed", config.scan.file_feed);
  visit("usage.copies", config.usage.copies);
  visit("usage.limits", config.usage.limits);
  visit("usage.limit_command", config.usage.limit_command);
  visit("usage.owners", config.usage.owners);
  visit("history.keep", config.history.keep);
  visit("history.depth", Whole{config.history.depth, 0, 8});
  visit("history.prefixes", config.history.prefixes);
  visit("watch.drives", AllOr{config.watch.all_drives, config.watch.drives});
  visit("watch.batch", Duration{config.watch.batch, milliseconds(1)});
  visit("watch.timeout", Duration{config.watch.timeout, milliseconds(1)});
  visit("watch.unwatched", config.watch.unwatched);
  visit("publish.interval", Duration{config.publish.interval, milliseconds(100)});
  visit("publish.sinks", config.publish.sinks);
  visit("auth.tokens", config.auth.tokens);
  visit("auth.unix", config.auth.unix_peers);
  visit("auth.certificates", config.auth.certificates);
  visit("limits.max_body", ByteSize{config.limits.max_body_bytes, 1ULL << 10U, 1ULL << 30U});
  visit("limits.max_bodies", ByteSize{config.limits.max_bodies_bytes, 1ULL << 10U, 1ULL << 40U});
  visit("limits.threads", Whole{config.limits.threads, 0, 256});
  visit("limits.max_connections", Whole{config.limits.max_connections, 1, 1'000'000});
  visit("log.level", config.log.level);
  visit("log.format", config.log.format);
}

}  // namespace spoor::config
