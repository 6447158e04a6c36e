#include "peer/membership/etcd_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/base64.h"
#include "base/number.h"
#include "base/printable.h"

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

// The functions on answers throw this if an answer is not one of etcd; read_from() makes it an error.
struct Malformed {
  std::string why;
};

base::Error no_answer_of_etcd(std::string_view why) {
  return {std::make_error_code(std::errc::protocol_error), std::string(why)};
}

// The result of read(answer).
template <class Read>
auto read_from(const base::Result<json>& answer, Read read) -> base::Result<decltype(read(*answer))> {
  if (!answer) return answer.error();
  try {
    return read(*answer);
  } catch (const Malformed& malformed) {
    return no_answer_of_etcd(malformed.why);
  }
}

const json* find(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// 64-bit numbers are strings, and left out where they are 0.
std::int64_t number_member(const json& object, const char* name) {
  const json* const found = find(object, name);
  if (found == nullptr) return 0;
  if (found->is_string()) {
    const auto number = base::parse_number<std::int64_t>(found->get_ref<const std::string&>());
    if (number && *number >= 0) return *number;
  } else if (found->is_number_unsigned() && std::in_range<std::int64_t>(found->get<std::uint64_t>())) {
    return static_cast<std::int64_t>(found->get<std::uint64_t>());
  }
  throw Malformed{fmt::format("'{}' is no number", name)};
}

std::string bytes_member(const json& object, const char* name) {
  const json* const found = find(object, name);
  if (found == nullptr) return {};
  if (found->is_string()) {
    if (auto bytes = base::from_base64(found->get_ref<const std::string&>())) return *std::move(bytes);
  }
  throw Malformed{fmt::format("'{}' is not in base64", name)};
}

// A member that is left out where it is false.
bool flag_member(const json& object, const char* name) {
  const json* const found = find(object, name);
  if (found == nullptr) return false;
  if (!found->is_boolean()) throw Malformed{fmt::format("'{}' is neither true nor false", name)};
  return found->get<bool>();
}

// An unsigned number of 64 bits as text, of which nothing but itself matters; empty where there is none.
std::string id_member(const json& object, const char* name) {
  constexpr std::size_t digits_max = 20;
  const json* const found = find(object, name);
  if (found == nullptr || !found->is_string()) return {};
  auto id = found->get<std::string>();
  if (id.size() > digits_max || id.find_first_not_of("0123456789") != std::string::npos) {
    throw Malformed{fmt::format("'{}' is no number", name)};
  }
  return id;
}

const json& object_member(const json& object, const char* name, const char* missing) {
  const json* const found = find(object, name);
  if (found == nullptr || !found->is_object()) throw Malformed{missing};
  return *found;
}

const json& header_of(const json& answer) {
  return object_member(answer, "header", "an answer has no header");
}

std::vector<EtcdEntry> parse_entries(const json& answer) {
  std::vector<EtcdEntry> entries;
  const json* const kvs = find(answer, "kvs");
  if (kvs == nullptr) return entries;
  if (!kvs->is_array()) throw Malformed{"'kvs' is no list"};
  for (const json& kv : *kvs) {
    if (!kv.is_object()) throw Malformed{"an entry is no object"};
    entries.push_back({bytes_member(kv, "key"),
                       bytes_member(kv, "value"),
                       {number_member(kv, "lease")},
                       number_member(kv, "mod_revision")});
  }
  return entries;
}

// Adds only what was asked for, and nothing twice: keys come in order.
void append_page(const std::vector<EtcdEntry>& page, const EtcdRange& range, std::vector<EtcdEntry>& all) {
  for (const EtcdEntry& entry : page) {
    const bool is_next = all.empty() ? entry.key >= range.first : entry.key > all.back().key;
    if (!is_next || entry.key >= range.end) throw Malformed{"etcd lists keys it was not asked for"};
    all.push_back(entry);
  }
}

json range_json(const EtcdRange& range) {
  return {{"key", base::to_base64(range.first)}, {"range_end", base::to_base64(range.end)}};
}

json put_json(const EtcdPut& put) {
  json request{{"key", base::to_base64(put.key)}, {"value", base::to_base64(put.value)}};
  if (put.lease.id != 0) request["lease"] = std::to_string(put.lease.id);
  return {{"request_put", std::move(request)}};
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
  return read_from(call("/v3/lease/grant", {{"TTL", std::to_string(ttl.count())}}), [](const json& answer) {
    const EtcdLease lease{number_member(answer, "ID")};
    if (lease.id == 0) throw Malformed{"etcd granted a lease without an id"};
    return lease;
  });
}

base::Result<bool> EtcdClient::keep_alive(EtcdLease lease) {
  return read_from(call("/v3/lease/keepalive", {{"ID", std::to_string(lease.id)}}), [](const json& answer) {
    return number_member(object_member(answer, "result", "a lease's answer has no result"), "TTL") > 0;
  });
}

base::Result<> EtcdClient::revoke(EtcdLease lease) {
  const auto answer = call("/v3/lease/revoke", {{"ID", std::to_string(lease.id)}});
  if (!answer && !is_not_found(answer.error())) return answer.error();
  return {};
}

base::Result<> EtcdClient::put(std::span<const EtcdPut> puts) {
  json success = json::array();
  for (const EtcdPut& put : puts) success.push_back(put_json(put));
  const auto done = read_from(call("/v3/kv/txn", {{"success", std::move(success)}}),
                              [](const json& answer) { return flag_member(answer, "succeeded"); });
  if (!done) return done.error();
  if (!*done) return no_answer_of_etcd("etcd did not carry out a transaction without a condition");
  return {};
}

base::Result<std::vector<EtcdEntry>> EtcdClient::list(const EtcdRange& range) {
  std::vector<EtcdEntry> all;
  json request = range_json(range);
  request["limit"] = std::to_string(page_entries);
  const auto add_page = [&](const json& answer) {
    const auto page = parse_entries(answer);
    const bool more = flag_member(answer, "more");
    const std::int64_t revision = number_member(header_of(answer), "revision");
    append_page(page, range, all);
    if (!request.contains("revision"))
      request["revision"] = std::to_string(revision);  // all as of one moment
    if (more && (page.empty() || all.size() >= entries_max)) {
      throw Malformed{
          fmt::format("etcd has more than {} keys from '{}' on", all.size(), base::printable(range.first))};
    }
    return more;
  };
  for (;;) {
    const auto more = read_from(call("/v3/kv/range", request), add_page);
    if (!more) return more.error();
    if (!*more) return all;
    request["key"] = base::to_base64(all.back().key + '\0');
  }
}

base::Result<EtcdRangeState> EtcdClient::state(const EtcdRange& range) {
  json request = range_json(range);
  request["limit"] = "1";
  request["sort_target"] = "MOD";
  request["sort_order"] = "DESCEND";
  return read_from(call("/v3/kv/range", request), [](const json& answer) {
    const std::int64_t count = number_member(answer, "count");
    const json& header = header_of(answer);
    const auto newest = parse_entries(answer);
    return EtcdRangeState{id_member(header, "cluster_id"), count,
                          newest.empty() ? 0 : newest.front().mod_revision};
  });
}

}  // namespace spoor::peer
