#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "daemon/timer.h"
#include "peer/credentials.h"
#include "peer/etcd_client.h"
#include "peer/etcd_registration.h"
#include "peer/etcd_watch.h"
#include "peer/http_transport.h"

namespace spoor::daemon {

struct EtcdStatus {
  bool ok = false;
  std::string error;
  bool registered = false;  // among the living, as far as is known
  std::size_t members = 0;  // on the roll, as it was read last
};

// Registers this node in etcd while the daemon lives, and learns who else is a member. While etcd is away,
// what was known last goes on; no mark and no scan waits for it. It looks regularly, and soon after etcd's
// watch tells of a change.
//
// Lives on the thread of `context`; etcd is asked on `pool`. All references must outlive it.
class EtcdMembership {
 public:
  struct Options {
    std::vector<peer::Endpoint> endpoints;
    peer::EtcdPlace place;
    peer::RollMember self;
    std::chrono::seconds ttl{};
    std::chrono::milliseconds forget_after{};
    std::filesystem::path data_dir;  // keeps the note that the node is on the roll
    std::string boot_id;             // of the machine; empty where that is not known
    peer::Credentials credentials;   // for asking members
    peer::MakeTransport make_transport = peer::make_http_transport;
  };
  // When the node was known to be among the living.
  struct Confirmation {
    base::SteadyTime steady;
    base::WallTime wall;
  };
  // Told where the other members are, whenever that changes.
  using OnMembers = std::function<void(std::vector<peer::Endpoint>)>;

  EtcdMembership(boost::asio::io_context& context, boost::asio::thread_pool& pool, base::FileSystem& files,
                 const base::Clock& clock, Timers& timers, Options options, OnMembers on_members);

  // The first attempt, when nothing else runs yet: on the calling thread, for a few seconds at the most.
  void register_here();

  // Keeps the node registered, until stop(); then it is no longer among the living, and stays on the roll.
  void start();
  void stop();

  const EtcdStatus& status() const { return status_; }

  // Why scans of other nodes may not ask this one; empty where they do.
  std::string trouble() const;

 private:
  // What one refresh found: a copy, because the registration itself is used on the pool.
  struct Look {
    std::string failure;
    std::string conflict;
    bool registered = false;
    bool missing = false;
    std::optional<Confirmation> confirmed;
    std::vector<peer::RollEntry> roll;
    std::vector<peer::RollEntry> struck;
  };

  boost::asio::awaitable<void> run();
  boost::asio::awaitable<void> wait();
  void note_change();
  std::chrono::milliseconds moment();
  boost::asio::awaitable<Look> look();
  boost::asio::awaitable<void> leave();
  Look look_now();
  void note_registration();
  bool answers(const peer::RollEntry& entry) const;
  void take(Look look);
  void take_roll(std::vector<peer::RollEntry> now);
  std::chrono::milliseconds pause();

  boost::asio::io_context& context_;
  boost::asio::thread_pool& pool_;
  base::FileSystem& files_;
  const base::Clock& clock_;
  const Options options_;
  const OnMembers on_members_;
  std::unique_ptr<Timer> timer_;
  std::stop_source stop_;
  std::unique_ptr<peer::Transport> transport_;
  peer::EtcdClient client_;
  peer::EtcdRegistration registration_;
  peer::EtcdWatch watch_;
  bool watch_failed_ = false;
  bool changed_ = false;           // since the last look
  base::SteadyTime changed_at_{};  // the last look because of a change
  unsigned changes_ = 0;           // looks because of changes that kept coming
  std::optional<base::WallTime> noted_at_;
  std::minstd_rand jitter_;
  unsigned failures_ = 0;  // in a row
  EtcdStatus status_;
  std::vector<peer::RollEntry> roll_;
  bool is_missing_ = false;
  bool was_acknowledging_ = true;          // at the last look
  std::optional<Confirmation> confirmed_;  // in an earlier run, too
};

}  // namespace spoor::daemon
