#include "daemon/http/http_places.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <utility>

namespace spoor::daemon {
namespace {

namespace ip = boost::asio::ip;

constexpr std::size_t local_share = 16;
constexpr std::uint64_t body_share = 3;

}  // namespace

std::string peer_of(const Caller& caller) {
  if (caller.unix_peer) return fmt::format("uid {}", caller.unix_peer->user);
  boost::system::error_code error;
  const auto address = ip::make_address(caller.address, error);
  if (error || !address.is_v6()) return caller.address;
  if (address.to_v6().is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, address.to_v6()).to_string();
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + bytes.size() / 2, bytes.end(), 0);
  return ip::make_address_v6(bytes).to_string();
}

std::uint64_t HttpPlaces::weight_of(const std::string& peer, Weigh weigh) const {
  const auto found = served_.find(peer);
  std::uint64_t weight = 0;
  if (found == served_.end()) return weight;
  for (const HttpPlace* const place : found->second) weight += weigh(*place);
  return weight;
}

// The connection that has waited longest of the heaviest peer that is heavier than `own`; if there is none,
// of those that are not lighter than `own` - 1, one that has waited since `idle_since`.
HttpPlace* HttpPlaces::find_for(std::uint64_t own, Weigh weigh,
                                std::optional<Clock::time_point> idle_since) const {
  HttpPlace* best = nullptr;
  std::uint64_t most = 0;
  for (const auto& [peer, places] : served_) {
    const std::uint64_t weight = weight_of(peer, weigh);
    const std::uint64_t excess = weight > own ? weight : 0;
    if (excess < most || weight + 1 < own) continue;
    for (HttpPlace* const place : places) {
      const auto since = place->waits_since_;
      if (!since || weigh(*place) == 0) continue;
      if (excess == 0 && since > idle_since) continue;
      if (best != nullptr && excess == most && since >= best->waits_since_) continue;
      best = place;
      most = excess;
    }
  }
  return best;
}

bool HttpPlaces::evict_for(std::uint64_t own, Weigh weigh, std::optional<Clock::time_point> idle_since) {
  HttpPlace* const found = find_for(own, weigh, idle_since);
  if (found == nullptr) return false;
  found->is_evicted_ = true;
  ::shutdown(found->socket_, SHUT_RDWR);
  found->set_body(0);
  remove(*found);
  return true;
}

void HttpPlaces::remove(HttpPlace& place) {
  const auto found = served_.find(place.peer_);
  if (found == served_.end() || found->second.erase(&place) == 0) return;
  if (found->second.empty()) served_.erase(found);
  --served_count_;
  --totals_.served;
}

HttpPlace::HttpPlace(HttpPlaces& places, const Caller& caller, int socket)
    : places_(places), peer_(peer_of(caller)), is_local_(caller.unix_peer.has_value()), socket_(socket) {
  ++places_.totals_.open;
}

HttpPlace::~HttpPlace() {
  set_body(0);
  places_.remove(*this);
  --places_.totals_.open;
}

bool HttpPlace::serve(std::size_t most, std::chrono::milliseconds yield_after) {
  constexpr auto count = [](const HttpPlace&) { return std::uint64_t{1}; };
  const std::size_t most_for_this = most + (is_local_ ? most / local_share : 0);
  if (places_.served_count_ >= most_for_this &&
      !places_.evict_for(places_.weight_of(peer_, count) + 1, count, Clock::now() - yield_after)) {
    return false;
  }
  places_.served_[peer_].insert(this);
  ++places_.served_count_;
  ++places_.totals_.served;
  is_served_ = true;
  return true;
}

bool HttpPlace::is_client_gone() const {
  pollfd client{socket_, POLLRDHUP, 0};
  return ::poll(&client, 1, 0) == 1;
}

bool HttpPlace::hold_body(std::uint64_t bytes, std::uint64_t small, std::uint64_t most) {
  constexpr auto weigh = [](const HttpPlace& place) { return place.body_bytes_; };
  if (bytes > small) {
    const std::uint64_t more = bytes - body_bytes_;
    const std::uint64_t own = places_.weight_of(peer_, weigh) + more;
    while (places_.body_bytes_ + more > most) {
      if (!places_.evict_for(std::max(own, most / body_share), weigh, std::nullopt)) return false;
    }
  }
  set_body(bytes);
  return true;
}

void HttpPlace::set_body(std::uint64_t bytes) {
  places_.body_bytes_ += bytes - std::exchange(body_bytes_, bytes);
}

}  // namespace spoor::daemon
