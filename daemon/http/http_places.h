// Which connections are served if there are more than may be: a share for each peer.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "daemon/http/http_message.h"

namespace spoor::daemon {

// What a connection counts for: the user at the other end of a Unix socket, or the address. Of IPv6 it is
// the network of 64 bits, in which one machine can use every address.
std::string peer_of(const Caller& caller);

// The resources in use by the connections of all threads of a server, and counters since the start.
// Thread-safe.
class HttpTotals {
 public:
  // Counts a request whose header was refused.
  void count_unread(const std::string& code) {
    const std::scoped_lock lock(mutex_);
    ++unread_[code];
  }
  std::map<std::string, std::uint64_t> unread() const {
    const std::scoped_lock lock(mutex_);
    return unread_;
  }

  // Open connections that are refused, or were evicted and end now.
  std::size_t ending() const {
    const std::size_t served_now = served;
    return std::max<std::size_t>(open, served_now) - served_now;
  }

  std::atomic<std::size_t> open = 0;
  std::atomic<std::size_t> served = 0;
  std::atomic<std::uint64_t> accepted = 0;
  std::atomic<std::uint64_t> refused = 0;  // beyond connections_max
  std::atomic<std::uint64_t> handshakes_failed = 0;
  std::atomic<std::uint64_t> answer_bytes = 0;  // in use now

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> unread_;  // by the problem's code
};

class HttpPlace;

// The connections of one thread, and the memory that they use for bodies. Used on that thread, like its
// places, which must not outlive it.
class HttpPlaces {
 public:
  explicit HttpPlaces(HttpTotals& totals) : totals_(totals) {}

  std::size_t served() const { return served_count_; }
  std::uint64_t body_bytes() const { return body_bytes_; }

 private:
  friend class HttpPlace;
  using Weigh = std::uint64_t (*)(const HttpPlace&);  // 0: evicting the connection does not help
  using Clock = std::chrono::steady_clock;
  std::uint64_t weight_of(const std::string& peer, Weigh weigh) const;
  HttpPlace* find_for(std::uint64_t own, Weigh weigh, std::optional<Clock::time_point> idle_since) const;
  bool evict_for(std::uint64_t own, Weigh weigh, std::optional<Clock::time_point> idle_since);
  void remove(HttpPlace& place);

  HttpTotals& totals_;
  std::map<std::string, std::set<HttpPlace*>> served_;  // by their peer
  std::size_t served_count_ = 0;
  std::uint64_t body_bytes_ = 0;
};

// One connection: open during the lifetime of its place, and served after serve() succeeded.
//
// A connection that is served and waits for its client may be evicted: its socket is shut down, so that all
// further reads and writes fail.
class HttpPlace {
 public:
  using Clock = HttpPlaces::Clock;

  // `socket` is open as long as the place exists.
  HttpPlace(HttpPlaces& places, const Caller& caller, int socket);
  ~HttpPlace();
  HttpPlace(const HttpPlace&) = delete;
  HttpPlace& operator=(const HttpPlace&) = delete;

  // Returns false if `most` connections are served already and none is evicted for this one. That is one of
  // the peer with the most, if that is more than those of this peer will be; or one that has waited for
  // `yield_after`, of a peer with no fewer than this one. Of several it is the one that has waited longest.
  // Unix sockets may have a sixteenth more, so that clients of the network can't lock out the machine itself.
  bool serve(std::size_t most, std::chrono::milliseconds yield_after);
  bool is_served() const { return is_served_; }

  // The connection waits for its client from `now` on: it may be evicted.
  void wait(Clock::time_point now) { waits_since_ = now; }

  // It does not: a request is handled, or the socket is not used yet. Returns false if it was evicted.
  bool work() {
    waits_since_.reset();
    return !is_evicted_;
  }

  // Whether the client has closed its end, or the connection is broken. Thread-safe.
  bool is_client_gone() const;

  // Changes the memory that its body uses to `bytes`. Returns false, and changes nothing, if `bytes` is over
  // `small` and all bodies would use more than `most`, unless bodies that are being read are evicted for this
  // one: those of a peer that uses more than a third of `most`, and more than the one of this connection
  // will.
  bool hold_body(std::uint64_t bytes, std::uint64_t small, std::uint64_t most);

 private:
  friend class HttpPlaces;
  void set_body(std::uint64_t bytes);

  HttpPlaces& places_;
  const std::string peer_;
  const bool is_local_;  // a Unix socket
  const int socket_;
  bool is_served_ = false;
  bool is_evicted_ = false;
  std::optional<Clock::time_point> waits_since_;
  std::uint64_t body_bytes_ = 0;
};

}  // namespace spoor::daemon
