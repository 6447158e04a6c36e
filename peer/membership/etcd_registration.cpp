#include "peer/membership/etcd_registration.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace spoor::peer {

EtcdRegistration::EtcdRegistration(EtcdClient& client, const base::Clock& clock, Options options)
    : client_(client), clock_(clock), options_(std::move(options)) {}

base::Result<> EtcdRegistration::refresh() {
  const auto asked_at = clock_.steady_now();
  if (const auto done = hold(lease_, options_.forget_after); !done) return done;
  const EtcdLease before = alive_lease_;
  if (const auto done = hold(alive_lease_, options_.ttl); !done) return done;
  if (alive_lease_ != before) confirmed_at_.reset();
  if (const auto done = read(); !done) return done;
  if (const auto done = check_self(); !done) return done;
  confirmed_at_ = asked_at;
  if (const auto done = bound_old_entries(); !done) return done;
  return read_at_ ? base::Result<>() : read();  // reads what this call changed
}

base::Result<> EtcdRegistration::leave(EtcdClient& client) {
  if (alive_lease_ == EtcdLease()) return {};
  confirmed_at_.reset();
  return client.revoke(std::exchange(alive_lease_, {}));
}

// Under this or an earlier lease: an earlier run may have registered it.
base::Result<> EtcdRegistration::remove(EtcdClient& client) {
  const auto registry = read_registry(client, options_.location);
  if (!registry) return registry.error();
  for (const RegistryEntry& entry : *registry) {
    if (!is_self(entry)) continue;
    if (const auto done = client.revoke(entry.lease); !done) return done;
  }
  return {};
}

bool EtcdRegistration::is_registered() const {
  return confirmed_at_ && clock_.steady_now() - *confirmed_at_ < options_.ttl;
}

bool EtcdRegistration::is_self(const RegistryEntry& entry) const {
  return entry.member.node == options_.self.node && entry.member.url == options_.self.url;
}

base::Result<> EtcdRegistration::hold(EtcdLease& lease, std::chrono::seconds ttl) {
  if (lease != EtcdLease()) {
    const auto kept = client_.keep_alive(lease);
    if (!kept) return kept.error();
    if (*kept) return {};
    lease = {};
  }
  const auto granted = client_.grant(ttl);
  if (!granted) return granted.error();
  lease = *granted;
  return {};
}

// Reads the whole registry only if it has changed: each node polls every few seconds.
base::Result<> EtcdRegistration::read() {
  const auto state = client_.state(registry_range(options_.location));
  if (!state) return state.error();
  if (read_at_ == *state) return {};
  auto registry = read_registry(client_, options_.location);
  if (!registry) return registry.error();
  registry_ = *std::move(registry);
  read_at_ = *state;  // not newer than the registry: at worst it is read once more
  return {};
}

// The entry of this node may have been erased, replaced by another node, or lost with an older state of etcd.
base::Result<> EtcdRegistration::check_self() {
  conflict_.clear();
  bool is_there = false;
  EtcdLease former;
  for (const RegistryEntry& entry : registry_) {
    if (entry.member.node != options_.self.node) continue;
    if (is_self(entry) && entry.lease != lease_) former = entry.lease;
    is_there = is_there ||
               (entry.member == options_.self && entry.lease == lease_ && entry.alive_lease == alive_lease_);
    const bool is_ours =
        entry.alive_lease == alive_lease_ || (is_self(entry) && !confirmed_at_);  // of an earlier run
    if (!entry.is_alive() || is_ours) continue;
    conflict_ = fmt::format(
        "another spoord registers as node '{}' at {}: unless that one crashed just now, give each "
        "node a unique name and URL",
        entry.member.node, entry.member.url);
  }
  if (is_there) return {};
  read_at_.reset();
  auto done = register_member(client_, options_.location, options_.self, lease_, alive_lease_);
  if (!done || former == EtcdLease()) return done;
  return client_.revoke(former);  // or each start would leave one behind
}

// Of versions that put members under no lease: a node of one that does not return would stay a member.
base::Result<> EtcdRegistration::bound_old_entries() {
  for (const RegistryEntry& entry : registry_) {
    if (entry.lease != EtcdLease() || entry.is_alive() || is_self(entry)) continue;
    const auto lease = client_.grant(options_.forget_after);
    if (!lease) return lease.error();
    read_at_.reset();
    const auto done = register_member(client_, options_.location, entry.member, *lease, {});
    if (!done) return done;
  }
  return {};
}

}  // namespace spoor::peer
