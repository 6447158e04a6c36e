// The routes without sockets, on one thread that does only what the test lets it do.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "daemon/api/api.h"
#include "daemon/process/task.h"
#include "tests/daemon/stepped_node.h"

namespace spoor::daemon {

class ApiTest : public SteppedNode {
 protected:
  struct Asked {
    HttpRequest request;
    std::optional<HttpResponse> answer;
  };

  ~ApiTest() override {
    for (boost::asio::thread_pool* const pool : {&disk_, &reading_, &large_bodies_}) pool->join();
  }

  // The journal takes what `disk_` lets it take.
  void start(tracker::NamespaceRules rules = {}) {
    rules_ = std::move(rules);
    group_commit_.emplace(context_, disk_, *persistence_, snapshot_scheduler_, clock_, timers_);
    introduction_.emplace(context_, disk_, *persistence_, node_.node, std::chrono::hours(24 * 365), clock_,
                          timers_);
    introduction_->open_alone();
    peers_.emplace(context_, reading_, PeerWatch::Options{.cluster = "default"}, *introduction_, clock_,
                   timers_);
    retirement_.emplace(
        reading_,
        Retirement::Options{
            .node = node_, .rules_digest = rules_.digest(), .own_unread = [] { return peer::UnreadFrom(); }},
        *persistence_, *introduction_, *peers_, nullptr);
    intake_.emplace(context_, large_bodies_, *persistence_, rules_, tracker::DrivePaths(), *group_commit_,
                    *introduction_, clock_);
    routes_.emplace(NodeRoutes::Parts{{node_, "0", *persistence_, snapshot_scheduler_, *group_commit_,
                                       *peers_, nullptr, scans_, watched_},
                                      1,
                                      rules_.digest(),
                                      *introduction_,
                                      *retirement_,
                                      *intake_,
                                      metrics_,
                                      reading_},
                    clock_);
    gather_.emplace(
        context_,
        ScanGather::Options{.node = node_,
                            .instance = persistence_->tracker().state().instance,
                            .self = base::parse_endpoint("http://n1:7420").value(),
                            .dns = nullptr,
                            .members_digest = members_digest_,
                            .make_transport = make_transport_},
        [this](const HttpRequest& request) { return routes_->cycle(request); }, *peers_, nullptr, clock_);
    api_.emplace(context_, node_.node, Api::Services{*intake_, *routes_, reports_, scan_waits_, *gather_},
                 access_, clock_);
  }

  Asked& ask(const std::string& method, const std::string& path, std::string body = {},
             const std::string& type = "text/plain", const Caller& caller = {},
             std::map<std::string, std::string> query = {}) {
    Asked& asked = asked_.emplace_back();
    asked.request.query = std::move(query);
    asked.request.caller = caller;
    asked.request.method = method;
    asked.request.path = path;
    asked.request.content_type = type;
    asked.request.body = std::move(body);
    boost::asio::co_spawn(context_, api_->handle(asked.request),
                          [&asked](const std::exception_ptr& failure, auto answer) {
                            rethrow(failure);
                            asked.answer = std::move(answer);
                          });
    settle();
    return asked;
  }
  Asked& mark(const std::string& paths) { return ask("POST", "/v1/marks", paths); }

  // What the thread can do without waiting for another one.
  void settle() override { poll(); }

  void save() {
    begin(snapshot_scheduler_.save());
    context_.restart();
    context_.run();
  }

  void wait_for(Asked& asked) {
    context_.restart();
    while (!asked.answer) ASSERT_GT(context_.run_one(), 0U) << "it waits for nothing";
  }

  boost::asio::thread_pool& disk_ = pool_;
  boost::asio::thread_pool reading_{1};
  boost::asio::thread_pool large_bodies_{1};
  tracker::NamespaceRules rules_;
  std::optional<GroupCommit> group_commit_;
  std::optional<Introduction> introduction_;
  std::optional<PeerWatch> peers_;
  std::optional<Retirement> retirement_;
  ScanWaits scan_waits_{"/nowhere/scan.db", reading_, clock_, timers_};
  Reports reports_{"/nowhere/scan.db", reading_, clock_, scan_waits_};
  ScanWatch scans_{context_, reading_, "/nowhere/scan.db", std::chrono::hours(1)};
  WatchedDrives watched_{
      timers_, clock_, drives_, {}, [this](const auto& drive, const auto& name, auto done) {
        snapshot_scheduler_.touch(drive, name, std::move(done));
      }};
  const HttpServer server_{context_, {}};
  Metrics metrics_{server_, scans_, clock_};
  std::shared_ptr<const Access> access_ = std::make_shared<const Access>(Access::load({}).value());
  const tracker::NodeIdentity node_{"default", "n1"};
  std::optional<MarkIntake> intake_;
  std::optional<NodeRoutes> routes_;
  std::uint64_t members_digest_ = 7;
  peer::MakeTransport make_transport_ = peer::make_http_transport;
  std::optional<ScanGather> gather_;
  std::optional<Api> api_;
  std::deque<Asked> asked_;
};

}  // namespace spoor::daemon
