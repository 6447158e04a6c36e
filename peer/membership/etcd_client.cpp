#include "peer/membership/etcd_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/base64.h"
#include "base/number.h"
#include "base/printable.h"
#include "tracker/paths/path.h"

namespace spoor::peer {
namespace {

using nlohmann::json;

constexpr std::size_t page_entries = 512;
constexpr std::size_t reason_bytes_max = 200;
constexpr std::size_t token_bytes_max = 8192;
// https://grpc.io/docs/guides/status-codes/
constexpr int grpc_invalid_argument = 3;
constexpr int grpc_not_found = 5;
constexpr int grpc_failed_precondition = 9;
constexpr int grpc_unauthenticated = 16;

base::Error no_answer_of_etcd(std::string_view why) {
  return {std::make_error_code(std::errc::protocol_error), std::string(why)};
}

const json* find(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// 64-bit numbers are strings, and left out where they are 0.
base::Result<std::int64_t> number_member(const json& object, const char* name) {
  const json* const found = find(object, name);
  if (found == nullptr) return std::int64_t{0};
  if (found->is_string()) {
    const auto number = base::parse_number<std::int64_t>(found->get_ref<const std::string&>());
    if (number && *number >= 0) return *number;
  } else if (found->is_number_unsigned() && std::in_range<std::int64_t>(found->get<std::uint64_t>())) {
    return static_cast<std::int64_t>(found->get<std::uint64_t>());
  }
  return no_answer_of_etcd(fmt::format("'{}' is no number", name));
}

base::Result<std::string> bytes_member(const json& object, const char* name) {
  const json* const found = find(object, name);
  if (found == nullptr) return std::string();
  if (found->is_string()) {
    if (auto bytes = base::from_base64(found->get_ref<const std::string&>())) return *std::move(bytes);
  }
  return no_answer_of_etcd(fmt::format("'{}' is not in base64", name));
}

// A member that is left out where it is false.
base::Result<bool> flag_member(const json& object, const char* name) {
  const json* const found = find(object, name);
  if (found == nullptr) return false;
  if (found->is_boolean()) return found->get<bool>();
  return no_answer_of_etcd(fmt::format("'{}' is neither true nor false", name));
}

base::Result<EtcdEntry> parse_entry(const json& kv) {
  if (!kv.is_object()) return no_answer_of_etcd("an entry is no object");
  auto key = bytes_member(kv, "key");
  if (!key) return key.error();
  auto value = bytes_member(kv, "value");
  if (!value) return value.error();
  const auto lease = number_member(kv, "lease");
  if (!lease) return lease.error();
  const auto revision = number_member(kv, "mod_revision");
  if (!revision) return revision.error();
  return EtcdEntry{*std::move(key), *std::move(value), {*lease}, *revision};
}

base::Result<std::vector<EtcdEntry>> parse_entries(const json& answer) {
  std::vector<EtcdEntry> entries;
  const json* const kvs = find(answer, "kvs");
  if (kvs == nullptr) return entries;
  if (!kvs->is_array()) return no_answer_of_etcd("'kvs' is no list");
  for (const json& kv : *kvs) {
    auto entry = parse_entry(kv);
    if (!entry) return entry.error();
    entries.push_back(*std::move(entry));
  }
  return entries;
}

base::Result<const json*> header_of(const json& answer) {
  const json* const header = find(answer, "header");
  if (header == nullptr || !header->is_object()) return no_answer_of_etcd("an answer has no header");
  return header;
}

// An unsigned number of 64 bits as text, of which nothing but itself matters; empty where there is none.
base::Result<std::string> id_member(const json& object, const char* name) {
  constexpr std::size_t digits_max = 20;
  const json* const found = find(object, name);
  if (found == nullptr || !found->is_string()) return std::string();
  auto id = found->get<std::string>();
  if (id.size() > digits_max || id.find_first_not_of("0123456789") != std::string::npos) {
    return no_answer_of_etcd(fmt::format("'{}' is no number", name));
  }
  return id;
}

struct Page {
  EtcdListing listing;
  bool more = false;
};

base::Result<Page> parse_page(const json& answer) {
  auto entries = parse_entries(answer);
  if (!entries) return entries.error();
  const auto more = flag_member(answer, "more");
  if (!more) return more.error();
  const auto header = header_of(answer);
  if (!header) return header.error();
  const auto revision = number_member(**header, "revision");
  if (!revision) return revision.error();
  auto cluster_id = id_member(**header, "cluster_id");
  if (!cluster_id) return cluster_id.error();
  return Page{{*std::move(entries), *std::move(cluster_id), *revision}, *more};
}

// Only what was asked for, and nothing twice: keys come in order.
base::Result<> append_page(const Page& page, const EtcdRange& range, std::vector<EtcdEntry>& all) {
  for (const EtcdEntry& entry : page.listing.entries) {
    const bool is_next = all.empty() ? entry.key >= range.first : entry.key > all.back().key;
    if (!is_next || entry.key >= range.end) return no_answer_of_etcd("etcd lists keys it was not asked for");
    all.push_back(entry);
  }
  return {};
}

json range_json(const EtcdRange& range) {
  return {{"key", base::to_base64(range.first)}, {"range_end", base::to_base64(range.end)}};
}

json put_json(const EtcdPut& put) {
  json request{{"key", base::to_base64(put.key)}, {"value", base::to_base64(put.value)}};
  if (put.lease.id != 0) request["lease"] = std::to_string(put.lease.id);
  return {{"request_put", std::move(request)}};
}

// A key that is not there counts as written at revision 0.
json condition_json(const EtcdCondition& condition) {
  return {{"key", base::to_base64(condition.key)},
          {"target", "MOD"},
          {"result", "EQUAL"},
          {"mod_revision", std::to_string(condition.mod_revision)}};
}

// What stands under the key that a transaction asked for as its only other branch.
base::Result<std::vector<EtcdEntry>> entries_of_only_response(const json& answer) {
  const json* const responses = find(answer, "responses");
  if (responses == nullptr || !responses->is_array() || responses->size() != 1 ||
      !responses->front().is_object()) {
    return no_answer_of_etcd("a transaction gave no response");
  }
  const json* const range = find(responses->front(), "response_range");
  if (range == nullptr || !range->is_object()) return no_answer_of_etcd("a transaction gave no range");
  return parse_entries(*range);
}

// The members of an error: those of the response, or for a stream, whose status is 200, those of its "error".
json error_of(const HttpResponse& response) {
  auto body = json::parse(response.body, nullptr, false);
  if (!body.is_object()) return json::object();
  const json* const error = find(body, "error");
  if (error != nullptr && error->is_object()) return *error;
  return response.is_success() ? json::object() : body;
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find_first_of("\r\n")); }

// The reason for an error: etcd refuses some requests as plain text, and proxies do.
std::string reason_of(const HttpResponse& response) {
  const json error = error_of(response);
  std::string reason;
  for (const char* const name : {"message", "error"}) {
    const json* const found = find(error, name);
    if (reason.empty() && found != nullptr && found->is_string()) reason = found->get<std::string>();
  }
  if (reason.empty() && error.empty()) {
    reason = fmt::format("HTTP status {}: {}", response.status, first_line(response.body));
  }
  if (reason.empty()) reason = fmt::format("HTTP status {}, without a reason", response.status);
  return base::printable(reason, reason_bytes_max);
}

// Of a request that failed; 0: none.
int grpc_code(const HttpResponse& response) {
  const json error = error_of(response);
  for (const char* const name : {"code", "grpc_code"}) {
    const json* const code = find(error, name);
    if (code != nullptr && code->is_number_integer()) return code->get<int>();
  }
  return 0;
}

// Also "user name is empty" and "revision of auth store is old", which are invalid arguments.
bool is_token_refused(const HttpResponse& response) {
  const int code = grpc_code(response);
  return code == grpc_unauthenticated || code == grpc_invalid_argument;
}

bool is_header_text(std::string_view text) {
  return !text.empty() && text.size() <= token_bytes_max &&
         std::ranges::all_of(text, [](char each) { return each > ' ' && each < '\x7f'; });
}

base::Result<json> read_answer(const HttpResponse& response) {
  if (response.body.size() > EtcdClient::answer_bytes_max)
    return no_answer_of_etcd("the answer is too large");
  auto body = json::parse(response.body, nullptr, false);
  if (response.is_success() && body.is_object() && !body.contains("error")) return body;
  if (response.is_success() && error_of(response).empty()) {
    return no_answer_of_etcd("the answer is not one of etcd");
  }
  const auto kind = grpc_code(response) == grpc_not_found ? std::errc::no_such_file_or_directory
                                                          : std::errc::protocol_error;
  return base::Error(std::make_error_code(kind), reason_of(response));
}

bool is_not_found(const base::Error& error) { return error.code == std::errc::no_such_file_or_directory; }

}  // namespace

EtcdClient::EtcdClient(Transport& transport, const base::Clock& clock, std::vector<base::Endpoint> endpoints,
                       Options options)
    : transport_(&transport), clock_(clock), endpoints_(std::move(endpoints)), options_(std::move(options)) {}

void EtcdClient::set_transport(Transport& transport, std::string password) {
  transport_ = &transport;
  options_.password = std::move(password);
  token_.reset();
}

base::Result<json> EtcdClient::call(const char* target, const json& body) {
  const std::string text = body.dump();
  const auto until = clock_.steady_now() + options_.operation_max;
  std::string failures;
  bool has_responded = false;
  for (std::size_t tried = 0; tried < endpoints_.size(); ++tried) {
    if (options_.stop.stop_requested()) {
      return base::Error(std::make_error_code(std::errc::operation_canceled),
                         "the request to etcd is cancelled: stopping");
    }
    if (tried > 0 && clock_.steady_now() >= until) break;
    const base::Endpoint& endpoint = endpoints_[next_];
    auto answer = request(endpoint, target, text);
    if (answer || is_not_found(answer.error())) return answer;
    has_responded = has_responded || answer.error().code == std::errc::protocol_error;
    failures += fmt::format("{}{}", failures.empty() ? "" : "; ", answer.error().message);
    next_ = (next_ + 1) % endpoints_.size();
  }
  return base::Error(
      std::make_error_code(std::errc::host_unreachable),
      fmt::format("{}: {}", has_responded ? "the request to etcd failed" : "etcd does not respond",
                  failures));
}

base::Result<json> EtcdClient::request(const base::Endpoint& endpoint, const char* target,
                                       const std::string& body) {
  for (bool is_retry = false;; is_retry = true) {
    if (!options_.user.empty() && !token_) {
      if (auto done = authenticate(endpoint); !done) return done.error();
    }
    const auto response =
        exchange(*transport_, {endpoint, "POST", target, "application/json", body, token_.value_or("")});
    if (!response) return response.error();
    if (token_ && !is_retry && is_token_refused(*response)) {
      token_.reset();
      continue;
    }
    auto answer = read_answer(*response);
    if (answer || is_not_found(answer.error())) return answer;
    return base::wrap(endpoint.to_string(), answer.error());
  }
}

// Tokens expire, and a simple one is lost when its server restarts (etcd: "Role-based access control").
base::Result<> EtcdClient::authenticate(const base::Endpoint& endpoint) {
  const json body{{"name", options_.user}, {"password", options_.password}};
  const auto response =
      exchange(*transport_, {endpoint, "POST", "/v3/auth/authenticate", "application/json", body.dump()});
  if (!response) return response.error();
  if (grpc_code(*response) == grpc_failed_precondition) {  // "authentication is not enabled"
    token_.emplace();
    return {};
  }
  const auto answer = read_answer(*response);
  if (!answer) {
    return base::wrap(fmt::format("{}: user '{}'", endpoint.to_string(), base::printable(options_.user)),
                      answer.error());
  }
  const json* const token = find(*answer, "token");
  if (token == nullptr || !token->is_string() || !is_header_text(token->get_ref<const std::string&>())) {
    return no_answer_of_etcd(endpoint.to_string() + ": etcd returned no token");
  }
  token_ = token->get<std::string>();
  return {};
}

base::Result<EtcdLease> EtcdClient::grant(std::chrono::seconds ttl) {
  const auto answer = call("/v3/lease/grant", {{"TTL", std::to_string(ttl.count())}});
  if (!answer) return answer.error();
  const auto id = number_member(*answer, "ID");
  if (!id) return id.error();
  if (*id == 0) return no_answer_of_etcd("etcd granted a lease without an id");
  return EtcdLease{*id};
}

base::Result<bool> EtcdClient::keep_alive(EtcdLease lease) {
  const auto answer = call("/v3/lease/keepalive", {{"ID", std::to_string(lease.id)}});
  if (!answer) return answer.error();
  const json* const result = find(*answer, "result");
  if (result == nullptr || !result->is_object()) return no_answer_of_etcd("a lease's answer has no result");
  const auto ttl = number_member(*result, "TTL");
  if (!ttl) return ttl.error();
  return *ttl > 0;
}

base::Result<> EtcdClient::revoke(EtcdLease lease) {
  const auto answer = call("/v3/lease/revoke", {{"ID", std::to_string(lease.id)}});
  if (!answer && !is_not_found(answer.error())) return answer.error();
  return {};
}

base::Result<> EtcdClient::put(std::span<const EtcdPut> puts) {
  const auto done = change_if({}, {{puts.begin(), puts.end()}});
  if (!done) return done.error();
  if (!*done) return no_answer_of_etcd("etcd did not put what it was to put");
  return {};
}

base::Result<bool> EtcdClient::change_if(std::span<const EtcdCondition> conditions,
                                         const EtcdChanges& changes) {
  json compare = json::array();
  for (const EtcdCondition& condition : conditions) compare.push_back(condition_json(condition));
  json success = json::array();
  for (const EtcdPut& put : changes.puts) success.push_back(put_json(put));
  for (const std::string& key : changes.erased) {
    success.push_back({{"request_delete_range", {{"key", base::to_base64(key)}}}});
  }
  const auto answer = call("/v3/kv/txn", {{"compare", std::move(compare)}, {"success", std::move(success)}});
  if (!answer) return answer.error();
  return flag_member(*answer, "succeeded");
}

base::Result<bool> EtcdClient::put_if_absent(const EtcdPut& put) {
  const auto answer =
      call("/v3/kv/txn",
           {{"compare", json::array({condition_json({put.key})})},
            {"success", json::array({put_json(put)})},
            {"failure", json::array({json{{"request_range", {{"key", base::to_base64(put.key)}}}}})}});
  if (!answer) return answer.error();
  auto done = flag_member(*answer, "succeeded");
  if (!done || *done) return done;
  const auto entries = entries_of_only_response(*answer);
  if (!entries) return entries.error();
  return entries->size() == 1 && put.lease.id != 0 && entries->front().lease == put.lease;
}

base::Result<EtcdListing> EtcdClient::list(const EtcdRange& range) {
  EtcdListing listing;
  std::vector<EtcdEntry>& all = listing.entries;
  json request = range_json(range);
  request["limit"] = std::to_string(page_entries);
  for (;;) {
    const auto answer = call("/v3/kv/range", request);
    if (!answer) return answer.error();
    const auto page = parse_page(*answer);
    if (!page) return page.error();
    if (const auto added = append_page(*page, range, all); !added) return added.error();
    if (request.find("revision") == request.end()) {
      listing.cluster_id = page->listing.cluster_id;
      listing.revision = page->listing.revision;
    }
    if (!page->more) return listing;
    if (page->listing.entries.empty() || all.size() >= entries_max) {
      return no_answer_of_etcd(
          fmt::format("etcd has more than {} keys from '{}' on", all.size(), base::printable(range.first)));
    }
    request["revision"] = std::to_string(listing.revision);  // all pages as of the same moment
    request["key"] = base::to_base64(all.back().key + '\0');
  }
}

base::Result<EtcdRangeState> EtcdClient::state(const EtcdRange& range) {
  json request = range_json(range);
  request["limit"] = "1";
  request["sort_target"] = "MOD";
  request["sort_order"] = "DESCEND";
  const auto answer = call("/v3/kv/range", request);
  if (!answer) return answer.error();
  const auto count = number_member(*answer, "count");
  if (!count) return count.error();
  const auto header = header_of(*answer);
  if (!header) return header.error();
  const auto newest = parse_entries(*answer);
  if (!newest) return newest.error();
  auto cluster_id = id_member(**header, "cluster_id");
  if (!cluster_id) return cluster_id.error();
  return EtcdRangeState{*std::move(cluster_id), *count, newest->empty() ? 0 : newest->front().mod_revision};
}

}  // namespace spoor::peer
