// An etcd behind a transport without a network: the part of its JSON interface that Spoor uses. Leases expire
// only by expire().
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/base64.h"
#include "peer/http/transport.h"

namespace spoor::fakes {

// Not thread-safe.
class FakeEtcd final : public peer::Transport {
 public:
  using json = nlohmann::json;

  struct Value {
    std::string value;
    std::int64_t lease = 0;
    std::int64_t mod_revision = 0;
  };

  std::string cluster_id = "18446744073709551615";
  std::map<std::string, Value> keys;
  std::set<std::int64_t> leases;
  std::map<std::int64_t, std::int64_t> ttls;  // of all leases ever granted, in seconds
  std::set<std::string> down;                 // hosts that do not respond
  std::function<void(const std::string& target)> before = [](auto&) {};  // called before each response
  std::function<void(peer::HttpResponse&)> after = [](auto&) {};         // may change the response
  std::vector<std::string> asked;                                        // "host /target"
  std::vector<std::string> authorizations;                               // of each request in `asked`
  bool has_auth = false;                                                 // authentication is enabled
  std::map<std::string, std::string> passwords;                          // by user
  std::set<std::string> tokens;                                          // that are valid
  json next_token = nullptr;    // if not null, the token of the next responses
  std::size_t page_max = 1000;  // entries, whatever limit the request has

  void put(const std::string& key, const std::string& value, std::int64_t lease = 0) {
    ++revision_;
    Value& at = keys[key];
    at.value = value;
    at.lease = lease;
    at.mod_revision = revision_;
  }

  bool erase(const std::string& key) {
    ++revision_;
    return keys.erase(key) > 0;
  }

  // The lease expires: it is removed with its keys.
  void expire(std::int64_t lease) {
    leases.erase(lease);
    ++revision_;
    std::erase_if(keys, [&](const auto& entry) { return entry.second.lease == lease; });
  }

  void exchange(std::span<const peer::HttpRequest> requests, const OnResponse& on_response) override {
    for (std::size_t at = 0; at < requests.size(); ++at) on_response(at, answer(requests[at]));
  }

 private:
  static std::int64_t number(const json& object, const char* name) {
    return object.contains(name) ? std::stoll(object[name].get<std::string>()) : 0;
  }
  static std::string bytes(const json& object, const char* name) {
    return object.contains(name) ? base::from_base64(object[name].get<std::string>()).value() : "";
  }
  static peer::HttpResponse not_found() {
    return {
        404, "application/json",
        R"({"error":"etcdserver: requested lease not found","message":"etcdserver: requested lease not found","code":5})"};
  }

  base::Result<peer::HttpResponse> answer(const peer::HttpRequest& request) {
    asked.push_back(request.endpoint.host + ' ' + request.target);
    authorizations.push_back(request.authorization);
    if (down.contains(request.endpoint.host)) return base::system_error(ECONNREFUSED, request.endpoint.host);
    before(request.target);
    auto response = admit(request).value_or(peer::HttpResponse());
    if (response.status == 0) response = carry_out(request.target, json::parse(request.body));
    after(response);
    return response;
  }

  static peer::HttpResponse refusal(unsigned status, const std::string& message, int code) {
    return {status, "application/json",
            json{{"error", message}, {"message", message}, {"code", code}}.dump()};
  }

  // The response to a request that authentication concerns, in the words and with the codes of etcd.
  std::optional<peer::HttpResponse> admit(const peer::HttpRequest& request) {
    if (request.target == "/v3/auth/authenticate") return authenticate(json::parse(request.body));
    // etcd does not check who keeps a lease alive.
    if (!has_auth || request.target == "/v3/lease/keepalive") return std::nullopt;
    if (request.authorization.empty()) return refusal(400, "etcdserver: user name is empty", 3);
    if (!tokens.contains(request.authorization)) return refusal(401, "etcdserver: invalid auth token", 16);
    return std::nullopt;
  }

  peer::HttpResponse authenticate(const json& body) {
    if (!has_auth) return refusal(412, "etcdserver: authentication is not enabled", 9);
    const auto user = passwords.find(body.at("name").get<std::string>());
    if (user == passwords.end() || user->second != body.at("password").get<std::string>()) {
      return refusal(400, "etcdserver: authentication failed, invalid user ID or password", 3);
    }
    const std::string token = "token." + std::to_string(++last_token_);
    tokens.insert(token);
    return {200, "application/json", json{{"token", next_token.is_null() ? json(token) : next_token}}.dump()};
  }

  peer::HttpResponse carry_out(const std::string& target, const json& body) {
    json result;
    if (target == "/v3/lease/grant") {
      leases.insert(++last_lease_);
      ttls[last_lease_] = number(body, "TTL");
      result = {{"ID", std::to_string(last_lease_)}, {"TTL", body.at("TTL")}};
    } else if (target == "/v3/lease/keepalive") {
      result["result"]["ID"] = body.at("ID");
      if (leases.contains(number(body, "ID"))) result["result"]["TTL"] = "30";
    } else if (target == "/v3/lease/revoke") {
      if (!leases.contains(number(body, "ID"))) return not_found();
      expire(number(body, "ID"));
    } else if (target == "/v3/kv/range") {
      result = range(body);
    } else if (target == "/v3/kv/txn") {
      for (const json& each : body.at("success")) {
        const json& asked_put = each.at("request_put");
        const std::int64_t lease = number(asked_put, "lease");
        if (lease != 0 && !leases.contains(lease)) return not_found();
        put(bytes(asked_put, "key"), bytes(asked_put, "value"), lease);
      }
      result["succeeded"] = true;
    } else {
      return {404, "text/plain", "Not Found"};
    }
    result["header"]["cluster_id"] = cluster_id;
    result["header"]["revision"] = std::to_string(revision_);
    return {200, "application/json", result.dump()};
  }

  json range(const json& asked_range) {
    // Further pages have the revision of the first.
    if (number(asked_range, "revision") == 0) paged_ = keys;
    std::vector<std::pair<std::string, Value>> found(paged_.lower_bound(bytes(asked_range, "key")),
                                                     paged_.lower_bound(bytes(asked_range, "range_end")));
    json answer;
    if (!found.empty()) answer["count"] = std::to_string(found.size());
    if (asked_range.value("sort_target", "") == "MOD") {
      std::ranges::sort(found, {}, [](const auto& each) { return each.second.mod_revision; });
      if (asked_range.value("sort_order", "") == "DESCEND") std::ranges::reverse(found);
    }
    const auto limit = static_cast<std::size_t>(number(asked_range, "limit"));
    const std::size_t most = limit == 0 ? page_max : std::min(limit, page_max);
    if (found.size() > most) answer["more"] = true;
    found.resize(std::min(found.size(), most));
    for (const auto& [key, value] : found) {
      answer["kvs"].push_back({{"key", base::to_base64(key)},
                               {"value", base::to_base64(value.value)},
                               {"mod_revision", std::to_string(value.mod_revision)}});
      if (value.lease != 0) answer["kvs"].back()["lease"] = std::to_string(value.lease);
    }
    return answer;
  }

  std::map<std::string, Value> paged_;
  std::int64_t revision_ = 1;
  int last_token_ = 0;
  std::int64_t last_lease_ = (std::int64_t{1} << 60U);
};

}  // namespace spoor::fakes
