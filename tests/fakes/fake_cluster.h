// A cluster of real trackers behind a transport without a network. Tests take nodes down, make them respond
// with garbage, and reset them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "peer/gather/cycle_exchange.h"
#include "peer/gather/cycle_frame.h"
#include "peer/gather/handover.h"
#include "peer/http/transport.h"
#include "tests/fakes/manual_clock.h"
#include "tracker/cycles/member_marks.h"
#include "tracker/cycles/tracker.h"

namespace spoor::fakes {

// Not thread-safe.
class FakeCluster final : public peer::Transport {
 public:
  struct Node {
    tracker::NodeIdentity identity;
    std::unique_ptr<tracker::Tracker> tracker;
    std::uint64_t run = 0;
    std::uint64_t rules_digest = 0;
    bool is_down = false;
    std::string garbage;  // if not empty, the response instead
    unsigned garbage_status = 200;
    std::uint64_t body_bytes_max = ~std::uint64_t{0};  // a longer response of the node is refused
    std::vector<std::string> certificate_names = {};   // the names in its certificate
    bool is_own_authority = true;                      // an authority of the operator signed it
    std::vector<tracker::CycleRequest> asked;          // the requests received so far
    std::optional<tracker::Joined> met = {};           // introduced itself by the last of them
    bool is_closed = false;
    base::Result<peer::UnreadFrom> unread = peer::UnreadFrom();  // its response to a node that retires
    std::vector<peer::AdoptQuery> offered = {};                  // the marks that it was to adopt
    unsigned adopt_status = 200;                                 // 0: no response
    // Called before each response: what happens on the node between two rounds.
    std::function<void()> before_answer = [] {};
  };

  explicit FakeCluster(ManualClock& clock) : clock_(clock) {}

  // Adds a node with this host name, which is also its node name unless `name` is given.
  Node& add(const std::string& host, std::string name = {}, std::string cluster = "c") {
    Node& node = nodes_[host];
    node.identity = {std::move(cluster), name.empty() ? host : std::move(name)};
    start_anew(node);
    return node;
  }

  // Another host name for the same node.
  void alias(const std::string& host, const std::string& other) { aliases_[other] = host; }
  void remove_alias(const std::string& other) { aliases_.erase(other); }

  // The node loses all of its state.
  void start_anew(Node& node) const {
    node.tracker = std::make_unique<tracker::Tracker>(
        tracker_options(), clock_, tracker::Tracker::born(tracker::InstanceId::random(), clock_));
  }

  tracker::PeerId id(const std::string& host) {
    const Node& node = (*this)[host];
    return {node.identity.node, node.tracker->status().instance};
  }

  // The node has met the member, and recorded it.
  void record(const std::string& host, const tracker::PeerId& member, std::uint64_t run = 0) {
    const tracker::Mark joined = tracker::joined_mark({member, run});
    (*this)[host].tracker->mark({&joined, 1});
  }

  static tracker::Tracker::Options tracker_options() {
    return {.levels = tracker::LevelSchedule(1000, 0.01)};
  }

  Node& operator[](const std::string& host) {
    return nodes_.at(aliases_.contains(host) ? aliases_.at(host) : host);
  }
  void remove(const std::string& host) { nodes_.erase(host); }

  static base::Endpoint endpoint(const std::string& host) { return {host, base::spoor_port, {}}; }

  static std::vector<base::Endpoint> endpoints(const std::vector<std::string>& hosts) {
    std::vector<base::Endpoint> all;
    for (const std::string& host : hosts) all.push_back(endpoint(host));
    return all;
  }

  void exchange(std::span<const peer::HttpRequest> requests, const OnResponse& on_response) override {
    // Backwards: nothing may depend on the order of the responses.
    for (std::size_t at = requests.size(); at-- > 0;) on_response(at, answer(requests[at]));
  }

 private:
  base::Result<peer::HttpResponse> answer(const peer::HttpRequest& request) {
    const std::string& host = request.endpoint.host;
    if (!nodes_.contains(host) && !aliases_.contains(host)) return base::system_error(ECONNREFUSED, host);
    Node& node = (*this)[host];
    node.before_answer();
    if (node.is_down) return base::system_error(ECONNREFUSED, request.endpoint.host);
    if (!node.garbage.empty())
      return peer::HttpResponse{node.garbage_status, "text/plain", node.garbage, node.certificate_names,
                                node.is_own_authority};
    if (request.target.starts_with("/v1/peer/adopt")) return adopt(node, request);
    const auto query = peer::parse_cycle_query(request.body);
    if (!query) return peer::HttpResponse{400, "text/plain", query.error().message};
    node.asked.push_back(query->request);
    node.met = query->member;
    if (query->cluster != node.identity.cluster)
      return peer::HttpResponse{409, "application/problem+json", R"({"detail":"wrong cluster"})"};
    if (request.target == "/v1/peer/unread") {
      if (!node.unread) return node.unread.error();
      return peer::HttpResponse{200, "application/json", peer::unread_json(*node.unread)};
    }
    if (!node.tracker->is_in_reach(query->request.current))
      return peer::HttpResponse{409, "application/problem+json", R"({"detail":"out of reach"})"};
    auto body = peer::encode_cycle_frame(
        {node.identity, node.run, node.rules_digest, node.tracker->cycle(query->request), node.is_closed});
    if (body.size() > node.body_bytes_max)
      return base::Error(std::make_error_code(std::errc::message_size), "too large");
    return peer::HttpResponse{200, std::string(peer::cycle_frame_content_type), std::move(body),
                              node.certificate_names, node.is_own_authority};
  }

  static base::Result<peer::HttpResponse> adopt(Node& node, const peer::HttpRequest& request) {
    const std::size_t run = request.target.find("run=") + 4;
    const std::size_t from = request.target.find("&from=");
    auto query = peer::parse_adopt_query(std::string_view(request.target).substr(run, from - run),
                                         std::string_view(request.target).substr(from + 6), request.body);
    if (!query) return query.error();
    node.offered.push_back(*std::move(query));
    // Too large, but not the mark on everything.
    const bool is_small = node.offered.back().frame.answer.marks.tree_marks().covers("");
    const unsigned status = node.adopt_status == 413 && is_small ? 200 : node.adopt_status;
    if (status == 0) return base::system_error(ECONNRESET, request.endpoint.host);
    if (status != 200)
      return peer::HttpResponse{status, "application/problem+json", R"({"detail":"it does not adopt"})"};
    return peer::HttpResponse{200, "application/json", R"({"node":")" + node.identity.node + R"("})"};
  }

  ManualClock& clock_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, std::string> aliases_;
};

}  // namespace spoor::fakes
