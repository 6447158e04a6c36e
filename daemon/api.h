#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "daemon/access.h"
#include "daemon/committer.h"
#include "daemon/etcd_membership.h"
#include "daemon/http_message.h"
#include "daemon/mark_request.h"
#include "daemon/metrics.h"
#include "daemon/peer_watch.h"
#include "daemon/problem.h"
#include "daemon/reports.h"
#include "daemon/s3_events.h"
#include "daemon/saver.h"
#include "tracker/namespace_rules.h"
#include "tracker/tracker.h"

namespace spoor::daemon {

struct MarkCounters {
  std::uint64_t accepted = 0;  // marks made, known ones included
  std::uint64_t ignored = 0;   // paths that the namespace rules take no notice of, events that mark nothing
  std::uint64_t added = 0;     // marks that said something new
  std::uint64_t rejected = 0;  // requests refused

  std::uint64_t unknown_events = 0;  // of those ignored, S3 events that nobody here knows
};

// The path where it is that of a route, else "other": a label for figures.
std::string_view route_of(std::string_view path);

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
      Metrics& metrics, boost::asio::thread_pool& answers, const Access& access, const base::Clock& clock);

  // What needs no body to be answered: there is no such route, or not in this way, or not for this caller;
  // also what OPTIONS asks. Nothing for a request that handle() is to answer.
  std::optional<HttpResponse> admit(const HttpRequest& request) const;

  // Answers an admitted request.
  boost::asio::awaitable<HttpResponse> handle(const HttpRequest& request);

  // Why the node is not ready; empty where it is.
  std::vector<std::string> troubles() const;

 private:
  boost::asio::awaitable<HttpResponse> mark(const HttpRequest& request);
  boost::asio::awaitable<HttpResponse> mark_events(const HttpRequest& request);
  boost::asio::awaitable<HttpResponse> acknowledge(tracker::MarkOutcome outcome, std::uint64_t ignored);
  HttpResponse reject(const Problem& problem);
  void note_unknown_events(const EventMarks& events);
  HttpResponse dirty(const HttpRequest& request) const;
  HttpResponse status() const;
  boost::asio::awaitable<HttpResponse> metrics();
  template <class Render>
  auto render_status(Render render) const;
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
  MarkReader mark_reader_;
  Saver& saver_;
  Committer& committer_;
  const PeerWatch& peers_;
  const EtcdMembership* const etcd_;  // null where it is not configured
  Reports& reports_;
  Metrics& metrics_;
  boost::asio::thread_pool& answers_;  // merges the marks for peers, while marking goes on here
  const Access& access_;
  const base::Clock& clock_;
  const base::SteadyTime started_at_;
  MarkCounters counters_;
  unsigned saves_waiting_ = 0;
};

}  // namespace spoor::daemon
