#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/committer.h"
#include "daemon/etcd_membership.h"
#include "daemon/http_message.h"
#include "daemon/peer_watch.h"
#include "daemon/reports.h"
#include "daemon/saver.h"
#include "tracker/namespace_rules.h"
#include "tracker/tracker.h"

namespace spoor::daemon {

struct MarkCounters {
  std::uint64_t accepted = 0;  // marks made, known ones included
  std::uint64_t ignored = 0;   // paths that the namespace rules take no notice of
  std::uint64_t added = 0;     // marks that said something new
  std::uint64_t rejected = 0;  // requests refused
};

// The HTTP API, version 1 (docs/http-api.md): one function a route, no word of sockets.
//
// Lives on the thread of the server that calls it. All references must outlive it.
class Api {
 public:
  struct Options {
    tracker::NodeIdentity node;
    std::string version;
    std::uint64_t run = 0;  // drawn at this start, see peer/cycle_frame.h
  };

  Api(Options options, tracker::Persistence& persistence, const tracker::NamespaceRules& rules, Saver& saver,
      Committer& committer, const PeerWatch& peers, const EtcdMembership* etcd, Reports& reports,
      boost::asio::thread_pool& answers, const base::Clock& clock);

  boost::asio::awaitable<HttpResponse> handle(const HttpRequest& request);

 private:
  boost::asio::awaitable<HttpResponse> mark(const HttpRequest& request);
  HttpResponse dirty(const HttpRequest& request) const;
  HttpResponse status() const;
  boost::asio::awaitable<HttpResponse> peer_cycle(const HttpRequest& request);
  boost::asio::awaitable<HttpResponse> save_snapshot();
  std::optional<HttpResponse> refuse_more_saves() const;
  HttpResponse drives() const;
  boost::asio::awaitable<HttpResponse> accept_drive(const HttpRequest& request);
  HttpResponse alive() const;
  HttpResponse ready() const;

  const Options options_;
  tracker::Persistence& persistence_;
  tracker::Tracker& tracker_;
  const tracker::NamespaceRules& rules_;
  Saver& saver_;
  Committer& committer_;
  const PeerWatch& peers_;
  const EtcdMembership* const etcd_;  // null where it is not configured
  Reports& reports_;
  boost::asio::thread_pool& answers_;  // merges the marks for peers, while marking goes on here
  const base::Clock& clock_;
  const base::SteadyTime started_at_;
  MarkCounters counters_;
  unsigned saves_waiting_ = 0;
};

}  // namespace spoor::daemon
