#include "peer/etcd_registration.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace spoor::peer {
namespace {

constexpr int attempts_max = 4;

}  // namespace

EtcdRegistration::EtcdRegistration(EtcdClient& client, const base::Clock& clock, Options options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      absences_(options_.forget_after, options_.ttl) {}

base::Result<> EtcdRegistration::refresh() {
  struck_.clear();
  if (const auto done = hold_lease(); !done) return done;
  if (const auto done = read(); !done) return done;
  if (const auto done = check_self(); !done) return done;
  if (const auto done = strike_the_gone(); !done) return done;
  return read_at_ ? base::Result<>() : read();  // what this call itself changed
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

bool EtcdRegistration::is_self(const RollEntry& entry) const {
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

// Many that come at once are in each other's way, since all of them change the ledger.
base::Result<> EtcdRegistration::enter() {
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    read_at_.reset();
    const auto done = enter_roll(client_, options_.place, options_.self, lease_, roll_);
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

// The whole roll only if something changed: each node asks every few seconds.
base::Result<> EtcdRegistration::read() {
  const auto state = client_.state(roll_range(options_.place));
  if (!state) return state.error();
  if (read_at_ == *state) return {};
  auto roll = read_roll(client_, options_.place);
  if (!roll) return roll.error();
  roll_ = *std::move(roll);
  read_at_ = *state;  // older than the roll, if anything: it is then read once more
  return {};
}

// Somebody may have erased this node's entry, restored an old state of etcd, or taken the node's name.
base::Result<> EtcdRegistration::check_self() {
  conflict_.clear();
  bool is_on_roll = false;
  bool is_there = false;
  for (const RollEntry& entry : roll_.entries) {
    if (entry.member.node != options_.self.node) continue;
    is_on_roll = is_on_roll || entry.member == options_.self;
    is_there = is_there ||
               (is_self(entry) && entry.member == options_.self && entry.is_alive && entry.lease == lease_);
    const bool is_ours = entry.lease == lease_ || (is_self(entry) && !is_entered_);  // of an earlier run
    if (!entry.is_alive || is_ours) continue;
    conflict_ = fmt::format(
        "another spoord registers as node '{}' at {}: if it is not one that crashed just now, give each "
        "node a name and a URL of its own",
        entry.member.node, entry.member.url);
  }
  is_missing_ = !is_on_roll;
  if (!is_there || roll_.ledger.id.empty()) return enter();
  is_entered_ = true;
  return {};
}

// One at a time: each changes what the next has to be held against.
base::Result<> EtcdRegistration::strike_the_gone() {
  std::vector<RollEntry> gone = absences_.look(roll_.entries, clock_.steady_now());
  std::erase_if(gone, [&](const RollEntry& entry) { return is_self(entry); });
  // This very daemon is at another URL now, which the roll tells: nobody has to ask at its old ones.
  for (const RollEntry& entry : roll_.entries) {
    const bool is_old = entry.member.node == options_.self.node &&
                        entry.member.instance == options_.self.instance && !is_self(entry);
    if (is_old && !entry.is_alive) gone.push_back(entry);
  }
  const std::size_t probes = std::min(gone.size(), probes_max);
  for (std::size_t i = 0; i < probes; ++i) {
    const RollEntry& entry = gone[next_probe_++ % gone.size()];
    // It may have lost etcd alone, and go on taking marks.
    if (options_.answers(entry)) continue;
    const auto done = strike_from_roll(client_, options_.place, entry, roll_.ledger);
    if (!done) return done.error();
    read_at_.reset();
    if (*done) struck_.push_back(entry);
    break;
  }
  return {};
}

}  // namespace spoor::peer
