#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/system/result.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "daemon/access.h"
#include "daemon/committer.h"
#include "daemon/etcd_membership.h"
#include "daemon/http_message.h"
#include "daemon/log_limit.h"
#include "daemon/mark_request.h"
#include "daemon/metrics.h"
#include "daemon/peer_watch.h"
#include "daemon/problem.h"
#include "daemon/reports.h"
#include "daemon/s3_events.h"
#include "daemon/saver.h"
#include "tracker/drive_paths.h"
#include "tracker/namespace_rules.h"
#include "tracker/tracker.h"

namespace spoor::daemon {

struct MarkCounters {
  std::uint64_t accepted = 0;  // marks made, known ones included
  std::uint64_t ignored = 0;   // paths that the namespace rules take no notice of, events that mark nothing
  std::uint64_t added = 0;     // marks that said something new
  std::uint64_t rejected = 0;  // requests refused

  std::uint64_t unknown_events = 0;  // of those ignored, S3 events that nobody here knows
  std::uint64_t invalid_keys = 0;    // S3 events whose key is no path: marked as a tree

  // Of those accepted, by Access::identity_of(); beyond identities_max all others are "other".
  static constexpr std::size_t identities_max = 256;
  struct OfIdentity {
    std::uint64_t accepted = 0;
    base::WallTime last_at{};
  };
  std::map<std::string, OfIdentity> identities = {};
};

// The path where it is that of a route, else "other": a label for figures.
std::string_view route_of(std::string_view path);

// The HTTP API, version 1 (docs/http-api.md): one function a route, no word of sockets.
//
// Thread-safe where it says so: there may be several threads that serve. They read marks and make them side
// by side, large ones on `large_bodies`, which must have one thread; all else is done on the thread of
// `context`, which is one of them. All references must outlive it.
class Api {
 public:
  struct Options {
    tracker::NodeIdentity node;
    std::string version;
    std::uint64_t run = 0;  // drawn at this start, see peer/cycle_frame.h
    tracker::DrivePaths drive_paths = {};
  };

  Api(boost::asio::io_context& context, Options options, tracker::Persistence& persistence,
      const tracker::NamespaceRules& rules, Saver& saver, Committer& committer, const PeerWatch& peers,
      const EtcdMembership* etcd, Reports& reports, Metrics& metrics, boost::asio::thread_pool& answers,
      boost::asio::thread_pool& large_bodies, std::shared_ptr<const Access> access, const base::Clock& clock);

  // What needs no body to be answered: there is no such route, or not in this way, or not for this caller;
  // also what OPTIONS asks. Nothing for a request that handle() is to answer. Thread-safe.
  std::optional<HttpResponse> admit(const HttpRequest& request) const;

  // Counts a request to mark that did not come to handle().
  void note_refused(const HttpRequest& request);

  // Who may do what, from now on. Thread-safe.
  void set_access(std::shared_ptr<const Access> access);

  // Answers an admitted request. Thread-safe.
  boost::asio::awaitable<HttpResponse> handle(const HttpRequest& request);

  // Why the node is not ready; empty where it is.
  std::vector<std::string> troubles() const;

 private:
  boost::asio::awaitable<HttpResponse> handle_here(const HttpRequest& request);
  boost::asio::awaitable<HttpResponse> acknowledge(const HttpRequest& request, tracker::MarkOutcome outcome,
                                                   std::uint64_t ignored);
  std::shared_ptr<const Access> current_access() const;
  void log_refusal(const Access& access, const HttpRequest& request, const Problem& problem) const;
  bool is_confirmed(tracker::JournalPosition position) const;
  boost::asio::awaitable<std::optional<Problem>> confirm(tracker::JournalPosition position);
  template <class T>
  boost::asio::awaitable<T> on_main_thread(boost::asio::awaitable<T> task);
  // What was marked of a request, and how many of its paths or events were ignored.
  struct Marked {
    tracker::MarkOutcome outcome;
    std::uint64_t ignored = 0;
  };
  using MarkedOrProblem = boost::system::result<Marked, Problem>;
  MarkedOrProblem read_marks(const HttpRequest& request);
  MarkedOrProblem read_events(const HttpRequest& request);
  template <class Read>
  boost::asio::awaitable<HttpResponse> mark_by(const HttpRequest& request, Read read);
  bool is_large(const HttpRequest& request) const;
  std::unique_ptr<MarkReader> take_reader();
  void give_back(std::unique_ptr<MarkReader> reader);
  HttpResponse reject(const HttpRequest& request, const Problem& problem);
  void note_unknown_events(const EventMarks& events);
  void note_invalid_keys(const EventMarks& events);
  HttpResponse dirty(const HttpRequest& request) const;
  HttpResponse status() const;
  boost::asio::awaitable<HttpResponse> metrics();
  template <class Render>
  auto render_status(Render render) const;
  boost::asio::awaitable<HttpResponse> peer_cycle(const HttpRequest& request);
  boost::asio::awaitable<HttpResponse> save_snapshot();
  std::optional<HttpResponse> refuse_more_saves() const;
  boost::asio::awaitable<HttpResponse> drives();
  HttpResponse last_drives() const;
  boost::asio::awaitable<HttpResponse> accept_drive(const HttpRequest& request);
  HttpResponse alive() const;
  HttpResponse ready() const;

  boost::asio::io_context& context_;
  const Options options_;
  tracker::Persistence& persistence_;
  tracker::Tracker& tracker_;
  const tracker::NamespaceRules& rules_;
  Saver& saver_;
  Committer& committer_;
  const PeerWatch& peers_;
  const EtcdMembership* const etcd_;  // null where it is not configured
  Reports& reports_;
  Metrics& metrics_;
  boost::asio::thread_pool& answers_;  // merges the marks for peers, while marking goes on here
  // Reads and marks what would hold up the other requests of its thread. One thread: one such body at a time,
  // for the memory that it takes.
  boost::asio::thread_pool& large_bodies_;
  const base::Clock& clock_;
  const base::SteadyTime started_at_;
  unsigned saves_waiting_ = 0;

  mutable std::mutex mutex_;  // of all below
  std::shared_ptr<const Access> access_;
  std::vector<std::unique_ptr<MarkReader>> idle_readers_;  // as many as were used at once
  MarkCounters counters_;
  mutable LogLimit refusals_;
  LogLimit invalid_keys_;
};

}  // namespace spoor::daemon
