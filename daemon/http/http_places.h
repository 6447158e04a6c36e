// Which connections are served if there are more than may be: a share for each peer.
#pragma once

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

class HttpPlace;

// The connections of all threads of a server, and the memory that they use for bodies. Thread-safe.
class HttpPlaces {
 public:
  std::size_t open() const { return open_; }
  std::uint64_t body_bytes() const { return body_bytes_; }

  // Open ones that are refused, or were evicted and end now.
  std::size_t ending() const;

 private:
  friend class HttpPlace;
  using Weigh = std::uint64_t (*)(const HttpPlace&);  // 0: evicting the connection does not help
  std::uint64_t weight_of(const std::string& peer, Weigh weigh) const;
  HttpPlace* find_for(std::uint64_t own, Weigh weigh, std::optional<std::int64_t> idle_since) const;
  bool evict_for(std::uint64_t own, Weigh weigh, std::optional<std::int64_t> idle_since);
  bool evict(HttpPlace& place);
  void remove(HttpPlace& place);

  mutable std::mutex mutex_;
  std::map<std::string, std::set<HttpPlace*>> served_;  // by their peer
  std::size_t served_count_ = 0;
  std::atomic<std::size_t> open_ = 0;
  std::atomic<std::uint64_t> body_bytes_ = 0;
};

// One connection: open during the lifetime of its place, and served after serve() succeeded.
//
// Another thread may evict a connection that is served and waits for its client: it shuts the socket down,
// so that all further reads and writes fail. All functions are called on one thread at a time.
class HttpPlace {
 public:
  using Clock = std::chrono::steady_clock;

  // `socket` is open as long as the place exists.
  HttpPlace(std::shared_ptr<HttpPlaces> places, const Caller& caller, int socket);
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
  void wait(Clock::time_point now) { set_since(now.time_since_epoch().count()); }

  // It does not: a request is handled, or the socket is not used yet. Returns false if it was evicted.
  bool work() { return set_since(working); }

  // Changes the memory that its body uses to `bytes`. Returns false, and changes nothing, if `bytes` is over
  // `small` and all bodies would use more than `most`, unless bodies that are being read are evicted for this
  // one: those of a peer that uses more than a third of `most`, and more than the one of this connection
  // will.
  bool hold_body(std::uint64_t bytes, std::uint64_t small, std::uint64_t most);

 private:
  friend class HttpPlaces;
  static constexpr Clock::rep working = Clock::duration::max().count();
  static constexpr Clock::rep evicted = Clock::duration::min().count();
  bool set_since(Clock::rep since);
  void set_body(std::uint64_t bytes);

  const std::shared_ptr<HttpPlaces> places_;
  const std::string peer_;
  const bool is_local_;  // a Unix socket
  const int socket_;
  bool is_served_ = false;
  std::atomic<Clock::rep> since_ = working;  // when it began to wait
  std::atomic<std::uint64_t> body_bytes_ = 0;
};

}  // namespace spoor::daemon
