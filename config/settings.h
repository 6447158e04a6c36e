// The table of all settings: dotted key, member of the struct, accepted values. Reading, printing, range
// checks and the suggestion for an unknown key use it; only a listener is printed by code of its own.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"
#include "config/problem.h"

namespace spoor::config {

// How a number is written: 5, "8MiB", "10s".
enum class Unit { none, bytes, milliseconds };

// A number or duration with bounds.
template <class T>
struct Number {
  T& value;
  Unit unit;
  std::uint64_t least;
  std::uint64_t most;
};

template <class T>
Number<T> whole(T& value, std::uint64_t least, std::uint64_t most) {
  return {value, Unit::none, least, most};
}

inline Number<std::uint64_t> size(std::uint64_t& bytes, std::uint64_t least, std::uint64_t most) {
  return {bytes, Unit::bytes, least, most};
}

// The longest one ensures that its sum with any clock reading fits in 64 bits of nanoseconds.
inline Number<std::chrono::milliseconds> duration(std::chrono::milliseconds& value,
                                                  std::chrono::milliseconds least) {
  constexpr std::chrono::milliseconds most = std::chrono::hours(24) * 36'500;
  return {value, Unit::milliseconds, static_cast<std::uint64_t>(least.count()),
          static_cast<std::uint64_t>(most.count())};
}

// URLs of servers.
struct Urls {
  std::vector<base::Endpoint>& endpoints;
  std::uint16_t default_port;
};

// "all", or a list of paths.
struct AllOr {
  bool& all;
  std::vector<std::filesystem::path>& paths;
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

// visit_parts(part, visit) calls visit(key, value) for each member of one object of the file, in the file's
// order.

void visit_parts(Tls& tls, auto&& visit) {
  visit("certificate", tls.certificate);
  visit("key", tls.key);
  visit("client_ca", tls.client_ca);
}

void visit_parts(PeerTls& tls, auto&& visit) {
  visit("ca", tls.ca);
  visit("certificate", tls.certificate);
  visit("key", tls.key);
}

void visit_parts(Listener& listener, auto&& visit) {
  visit("address", listener.address);
  visit("port", whole(listener.port, 0, 65'535));
  visit("unix", listener.unix_path);
  visit("insecure", listener.insecure);
  visit("tls", listener.tls);
  visit("page", listener.page);
  visit("mode", listener.mode);
  visit("group", listener.group);
}

void visit_parts(Token& token, auto&& visit) {
  visit("name", token.name);
  visit("role", token.role);
  visit("sha256", token.sha256);
  visit("file", token.file);
}

void visit_parts(UnixRule& rule, auto&& visit) {
  visit("user", rule.user);
  visit("group", rule.group);
  visit("role", rule.role);
}

void visit_parts(CertificateRule& rule, auto&& visit) {
  visit("name", rule.name);
  visit("role", rule.role);
}

void visit_parts(UsageCopies& copies, auto&& visit) {
  visit("path", copies.path);
  visit("factor", copies.factor);
}

void visit_parts(UsageLimit& limit, auto&& visit) {
  visit("path", limit.path);
  visit("bytes", size(limit.bytes, 0, 1ULL << 62U));
  visit("files", whole(limit.files, 0, 1ULL << 62U));
  visit("growth_per_day", size(limit.growth_per_day_bytes, 0, 1ULL << 62U));
  visit("cluster", limit.cluster);
}

void visit_parts(Sink& sink, auto&& visit) {
  visit("name", sink.name);
  visit("url", sink.url);
  visit("topic", sink.topic);
  visit("format", sink.format);
  visit("batch", whole(sink.batch, 1, 100'000));
  visit("existing", sink.existing);
  visit("user", sink.user);
  visit("password_file", sink.password_file);
  visit("token_file", sink.token_file);
  visit("tls", sink.tls);
}

void visit_parts(Etcd& etcd, auto&& visit) {
  visit("endpoints", Urls{etcd.endpoints, base::etcd_port});
  visit("prefix", etcd.prefix);
  visit("ttl", duration(etcd.ttl, std::chrono::seconds(2)));
  visit("forget_after", duration(etcd.forget_after, std::chrono::minutes(1)));
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

// Calls visit(key, value) for every setting, in the order of the file.
void visit_settings(Config& config, auto&& visit) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  visit("node.name", config.node.name);
  visit("node.cluster", config.node.cluster);
  visit("node.data_dir", config.node.data_dir);
  visit("drives", config.drives);
  visit("listen", config.listen);
  visit("tracker.items", whole(config.tracker.items, 1, 200'000'000));
  visit("tracker.fp_rate", config.tracker.fp_rate);
  visit("tracker.history", whole(config.tracker.history, 1, 1024));
  visit("tracker.save_interval", duration(config.tracker.save_interval, seconds(1)));
  visit("tracker.durability", config.tracker.durability);
  visit("tracker.memory_limit", size(config.tracker.memory_limit_bytes, 1, 1ULL << 50U));
  visit("namespace.exclude", config.name_space.exclude);
  visit("namespace.bucket_names", config.name_space.bucket_names);
  visit("peers.static", Urls{config.peers.static_endpoints, base::spoor_port});
  visit("peers.dns", config.peers.dns);
  visit("peers.dns_servers", config.peers.dns_servers);
  visit("peers.dns_tls", config.peers.dns_tls);
  visit("peers.forget_after", duration(config.peers.forget_after, seconds(0)));
  visit("peers.etcd", config.peers.etcd);
  visit("peers.token_file", config.peers.token_file);
  visit("peers.token_to_all", config.peers.token_to_all);
  visit("peers.tls", config.peers.tls);
  visit("peers.timeout", duration(config.peers.timeout, milliseconds(1)));
  visit("scan.min_cycle_age", duration(config.scan.min_cycle_age, seconds(0)));
  visit("scan.daemons", config.scan.daemons);
  visit("scan.require", config.scan.require);
  visit("scan.threads", whole(config.scan.threads, 0, 256));
  visit("scan.max_dirs_per_second", whole(config.scan.max_dirs_per_second, 0, 1'000'000'000));
  visit("scan.audit_period", duration(config.scan.audit_period, seconds(0)));
  visit("scan.file_feed", config.scan.file_feed);
  visit("usage.copies", config.usage.copies);
  visit("usage.limits", config.usage.limits);
  visit("usage.limit_command", config.usage.limit_command);
  visit("usage.owners", config.usage.owners);
  visit("history.keep", config.history.keep);
  visit("history.depth", whole(config.history.depth, 0, 8));
  visit("history.prefixes", config.history.prefixes);
  visit("watch.drives", AllOr{config.watch.all_drives, config.watch.drives});
  visit("watch.batch", duration(config.watch.batch, milliseconds(1)));
  visit("watch.timeout", duration(config.watch.timeout, milliseconds(1)));
  visit("watch.unwatched", config.watch.unwatched);
  visit("publish.interval", duration(config.publish.interval, milliseconds(100)));
  visit("publish.sinks", config.publish.sinks);
  visit("auth.tokens", config.auth.tokens);
  visit("auth.unix", config.auth.unix_peers);
  visit("auth.certificates", config.auth.certificates);
  visit("limits.max_body", size(config.limits.max_body_bytes, 1ULL << 10U, 1ULL << 30U));
  visit("limits.max_bodies", size(config.limits.max_bodies_bytes, 1ULL << 10U, 1ULL << 40U));
  visit("limits.threads", whole(config.limits.threads, 0, 256));
  visit("limits.max_connections", whole(config.limits.max_connections, 1, 1'000'000));
  visit("log.level", config.log.level);
  visit("log.format", config.log.format);
}

// The dotted keys of all settings; the key of each section precedes those of its settings.
std::vector<std::string_view> known_keys();

// Copies the settings of `document` to `config`. Adds each unknown key and each value of the wrong type to
// `problems`; such a setting keeps its previous value. Does not check ranges (find_problems()).
// `override_text`: the document contains one setting, given as key=value; this is its unparsed value. For a
// setting of type string, a value without quotes is a string even if it looks like a number.
void read_settings(const nlohmann::json& document, std::optional<std::string_view> override_text,
                   Config& config, Problems& problems);

}  // namespace spoor::config
