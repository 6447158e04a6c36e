#include "peer/membership/etcd_registration.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace spoor::peer {
namespace {

constexpr int attempts_max = 4;

}  // namespace

EtcdRegistration::EtcdRegistration(EtcdClient& client, const base::Clock& clock, Options options)
    : client_(client), clock_(clock), options_(std::move(options)) {}

base::Result<> EtcdRegistration::refresh() {
  evicted_.clear();
  if (const auto done = hold_lease(); !done) return done;
  if (const auto done = read(); !done) return done;
  if (const auto done = check_self(); !done) return done;
  if (const auto done = evict_absent(); !done) return done;
  return read_at_ ? base::Result<>() : read();  // reads what this call changed
}

base::Result<> EtcdRegistration::leave(EtcdClient& client) {
  if (lease_ == EtcdLease()) return {};
  is_entered_ = false;
  confirmed_at_.reset();
  return client.revoke(std::exchange(lease_, {}));
}

bool EtcdRegistration::is_registered() const {
  return is_entered_ && confirmed_at_ && clock_.steady_now() - *confirmed_at_ < options_.ttl;
}

bool EtcdRegistration::is_self(const RegistryEntry& entry) const {
  return entry.member.node == options_.self.node && entry.member.url == options_.self.url;
}

base::Result<> EtcdRegistration::hold_lease() {
  const auto asked_at = clock_.steady_now();
  if (lease_ != EtcdLease()) {
    const auto kept = client_.keep_alive(lease_);
    if (!kept) return kept.error();
    if (*kept) {
      confirmed_at_ = asked_at;
      return {};
    }
    lease_ = {};
  }
  is_entered_ = false;
  const auto granted = client_.grant(options_.ttl);
  if (!granted) return granted.error();
  lease_ = *granted;
  confirmed_at_ = asked_at;
  return {};
}

base::Result<> EtcdRegistration::enter() {
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    read_at_.reset();
    const auto done = register_member(client_, options_.location, options_.self, lease_, registry_);
    if (!done) {
      is_entered_ = false;
      return done.error();
    }
    if (*done) {
      is_entered_ = true;
      is_missing_ = false;
      return {};
    }
    if (const auto again = read(); !again) return again;
  }
  return base::Error(std::make_error_code(std::errc::resource_unavailable_try_again),
                     "etcd is busy with other nodes that register: trying again");
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
  bool is_in_registry = false;
  bool is_there = false;
  for (const RegistryEntry& entry : registry_.entries) {
    if (entry.member.node != options_.self.node) continue;
    is_in_registry = is_in_registry || entry.member == options_.self;
    is_there = is_there ||
               (is_self(entry) && entry.member == options_.self && entry.is_alive && entry.lease == lease_);
    const bool is_ours = entry.lease == lease_ || (is_self(entry) && !is_entered_);  // of an earlier run
    if (!entry.is_alive || is_ours) continue;
    conflict_ = fmt::format(
        "another spoord registers as node '{}' at {}: unless that one crashed just now, give each "
        "node a unique name and URL",
        entry.member.node, entry.member.url);
  }
  is_missing_ = !is_in_registry;
  if (!is_there) return enter();
  is_entered_ = true;
  return {};
}

// Records one observation and returns the members absent for longer than `forget_after`. A write of the entry
// in between restarts its time. Time between observations counts only up to `ttl`, so that an outage of etcd
// makes no member absent.
std::vector<RegistryEntry> EtcdRegistration::absent_members() {
  const auto now = clock_.steady_now();
  const auto step = std::min<std::chrono::nanoseconds>(now - last_look_.value_or(now), options_.ttl);
  last_look_ = now;
  const auto before = std::exchange(absences_, {});
  std::vector<RegistryEntry> absent;
  for (const RegistryEntry& entry : registry_.entries) {
    if (entry.is_alive) continue;
    const std::string key = entry.member.node + ' ' + entry.member.url;
    Absence& absence = absences_[key];
    absence.mod_revision = entry.mod_revision;
    const auto known = before.find(key);
    if (known != before.end() && known->second.mod_revision == entry.mod_revision) {
      absence.length = known->second.length + step;
    }
    if (absence.length > options_.forget_after) absent.push_back(entry);
  }
  return absent;
}

// One at a time: a probe takes as long as its timeout.
base::Result<> EtcdRegistration::evict_absent() {
  std::vector<RegistryEntry> gone = absent_members();
  std::erase_if(gone, [&](const RegistryEntry& entry) { return is_self(entry); });
  // Old URLs of this daemon, which is registered at another one now: evicted without the wait for
  // `forget_after`.
  for (const RegistryEntry& entry : registry_.entries) {
    const bool is_old = entry.member.node == options_.self.node &&
                        entry.member.instance == options_.self.instance && !is_self(entry);
    if (is_old && !entry.is_alive) gone.push_back(entry);
  }
  const std::size_t probes = std::min(gone.size(), probes_max);
  for (std::size_t i = 0; i < probes; ++i) {
    const RegistryEntry& entry = gone[next_probe_++ % gone.size()];
    // It may have lost only its connection to etcd, and still acknowledge marks.
    if (options_.answers(entry)) continue;
    const auto done = evict_member(client_, options_.location, entry);
    if (!done) return done.error();
    read_at_.reset();
    if (*done) evicted_.push_back(entry);
    break;
  }
  return {};
}

}  // namespace spoor::peer
