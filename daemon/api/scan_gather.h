#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/endpoint.h"
#include "daemon/api/caller_queue.h"
#include "daemon/http/http_message.h"
#include "daemon/membership/etcd_membership.h"
#include "daemon/membership/peer_watch.h"
#include "peer/gather/gather_exchange.h"
#include "peer/http/http_transport.h"
#include "tracker/storage/snapshot.h"

namespace spoor::daemon {

// GET /v1/members and POST /v1/gather: the members of the cluster, as its sources
// list them now, and their marks for a scan of this node. This daemon itself answers within the process:
// nothing of its listeners, its limits or its credentials matters.
//
// Lives on the thread of `context`; gathers on a thread of its own, for one scan after the other, and lists
// on another one. After stop(), what is under way fails. All references must outlive it.
class ScanGather {
 public:
  // As NodeRoutes::cycle().
  using AnswerSelf = std::function<boost::asio::awaitable<HttpResponse>(const HttpRequest&)>;

  struct Options {
    tracker::NodeIdentity node;
    tracker::InstanceId instance;
    base::Endpoint self;  // of this node in reports; not connected to
    // Without a default: a scan would silently not read the members of a source that is left out.
    std::shared_ptr<peer::MemberSource> dns;  // none: null
    std::uint64_t members_digest;             // config::members_digest()
    peer::MakeTransport make_transport = peer::make_http_transport;
  };

  ScanGather(boost::asio::io_context& context, Options options, AnswerSelf answer_self,
             const PeerWatch& peers, const EtcdMembership* etcd, const base::Clock& clock);

  boost::asio::awaitable<HttpResponse> list_members(const HttpRequest& request, std::string caller);
  boost::asio::awaitable<HttpResponse> gather(const HttpRequest& request, std::string caller);

  // After a reload.
  void set_members(std::shared_ptr<peer::MemberSource> dns, std::uint64_t digest) {
    dns_ = std::move(dns);
    members_digest_ = digest;
  }

  void stop() { stop_.request_stop(); }

 private:
  class SelfTransport;
  // What is read on the thread of `context`.
  struct Sources {
    std::vector<base::Endpoint> static_endpoints;
    std::shared_ptr<peer::MemberSource> dns;
    std::function<peer::SourceListing()> etcd;  // none: not configured
    peer::Credentials credentials;
    std::vector<PeerState> states;
    std::uint64_t members_digest = 0;

    std::vector<peer::SourceListing> list() const;  // blocks
  };

  Sources sources() const;
  HttpResponse members_response(const Sources& sources) const;
  HttpResponse gather_from(const Sources& sources, const std::string& body);
  void bound_since_last_scan(peer::GatherOptions& options);
  peer::MembershipView members(const peer::GatherQuery& query, const Sources& sources) const;
  boost::asio::awaitable<peer::HttpResponse> answer(std::string body);

  boost::asio::io_context& context_;
  const Options options_;
  const AnswerSelf answer_self_;
  const PeerWatch& peers_;
  const EtcdMembership* const etcd_;
  const base::Clock& clock_;
  std::optional<base::SteadyTime> gathered_at_;  // used by gather_from()
  std::shared_ptr<peer::MemberSource> dns_;
  std::uint64_t members_digest_;
  std::stop_source stop_;
  CallerQueue callers_{8};
  CallerQueue listers_{8};
  boost::asio::thread_pool gathering_{1};
  boost::asio::thread_pool listing_{1};
};

}  // namespace spoor::daemon
