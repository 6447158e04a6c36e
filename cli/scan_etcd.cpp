#include "cli/scan_etcd.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

#include "config/advertised_url.h"
#include "peer/endpoint.h"
#include "peer/roll_position.h"
#include "scanner/pace.h"

namespace spoor::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds turn_least{5};
constexpr seconds turn_most{60};  // a scan that died with it keeps it from others for so long

peer::CycleOpener::Options turn_options(const config::Config& config, const peer::EtcdPlace& place,
                                        const base::Clock& clock) {
  return {.place = place,
          .node = config.node.name,
          .ttl = std::clamp(std::chrono::ceil<seconds>(config.scan.min_cycle_age), turn_least, turn_most),
          .wait_max = config.peers.timeout,
          .seed = std::random_device()(),
          .wait = [&clock](milliseconds pause) {
            scanner::SystemWaiter().wait(clock.steady_now() + pause, std::stop_token());
            return true;
          }};
}

}  // namespace

ScanEtcd::Connection::Connection(const config::Config& config, const base::Clock& clock)
    : EtcdConnection(config, clock),
      own_name(config.node.name),
      own_url(config::advertised_url(config).value()),
      forget_after(config.peers.etcd->forget_after),
      opener(client, clock, turn_options(config, place, clock)) {}

ScanEtcd::ScanEtcd(const config::Config& config, const base::Clock& clock) {
  if (config.peers.etcd) connection_.emplace(config, clock);
}

std::optional<peer::MemberRegistry> ScanEtcd::registry() {
  if (!connection_) return std::nullopt;
  const auto list = [this]() -> base::Result<peer::RegistryAnswer> {
    auto roll = peer::read_roll(connection_->client, connection_->place);
    if (!roll) return roll.error();
    if (roll->ledger.id.empty()) {
      return base::Error(
          std::make_error_code(std::errc::no_such_file_or_directory),
          fmt::format("no node has registered under '{}' yet", peer::folder_of(connection_->place)));
    }
    connection_->roll = *std::move(roll);
    auto answer = peer::to_registry_answer(*connection_->roll);
    // Others reach this node there, which it may not do itself; its own daemon is asked anyway.
    std::erase_if(answer.listed, [&](const peer::Endpoint& endpoint) {
      return endpoint.to_string() == connection_->own_url;
    });
    return answer;
  };
  return peer::MemberRegistry{"etcd", list, connection_->forget_after};
}

std::vector<peer::ExpectedPeer> ScanEtcd::expected() const {
  std::vector<peer::ExpectedPeer> expected;
  if (!connection_ || !connection_->roll) return expected;
  for (const peer::RollEntry& entry : connection_->roll->entries) {
    // A namesake elsewhere is not this node.
    const bool is_own =
        entry.member.node == connection_->own_name && entry.member.url == connection_->own_url;
    const auto instance = tracker::InstanceId::parse(entry.member.instance);
    expected.push_back(
        {entry.member.node, entry.endpoint, instance && !is_own ? *instance : tracker::InstanceId()});
  }
  return expected;
}

std::vector<std::string> ScanEtcd::gaps(const std::string& position, const tracker::Cursors& cursors) const {
  if (!connection_ || !connection_->roll) return {};
  return peer::gaps_since(position, *connection_->roll, connection_->place, cursors);
}

std::string ScanEtcd::position(const std::string& last) const {
  if (!connection_ || !connection_->roll) return last;
  return peer::RollPosition::of(*connection_->roll, connection_->place).to_text();
}

void ScanEtcd::put_dead_last(std::vector<peer::Endpoint>& endpoints) const {
  if (!connection_ || !connection_->roll) return;
  std::set<std::string> living;
  std::set<std::string> dead;
  for (const peer::RollEntry& entry : connection_->roll->entries) {
    (entry.is_alive ? living : dead).insert(entry.endpoint.to_string());
  }
  std::vector<peer::Endpoint> last;
  std::erase_if(endpoints, [&](const peer::Endpoint& endpoint) {
    const std::string url = endpoint.to_string();
    const bool is_own = &endpoint == &endpoints.front();  // it stands first whatever etcd knows
    const bool is_dead = !is_own && dead.contains(url) && !living.contains(url);
    if (is_dead) last.push_back(endpoint);
    return is_dead;
  });
  endpoints.insert(endpoints.end(), last.begin(), last.end());
}

bool ScanEtcd::take_turn() { return !connection_ || !connection_->roll || connection_->opener.take_turn(); }

void ScanEtcd::give_back() {
  if (connection_) connection_->opener.give_back();
}

}  // namespace spoor::cli
