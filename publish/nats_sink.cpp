#include "publish/nats_sink.h"

#include <fmt/core.h>

#include <algorithm>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json_bounds.h"
#include "base/number.h"
#include "base/printable.h"

namespace spoor::publish {
namespace {

constexpr int io_buffer_bytes = 256 << 10;
constexpr std::size_t depth_max = 16;  // of the JSON of an acknowledgement

struct DestroyMessage {
  void operator()(natsMsg* message) const { natsMsg_Destroy(message); }
};
using Message = std::unique_ptr<natsMsg, DestroyMessage>;

struct DestroyOptions {
  void operator()(natsOptions* options) const { natsOptions_Destroy(options); }
};

// The first failure of a series of calls.
class Calls {
 public:
  void operator()(natsStatus status) {
    if (status_ == NATS_OK) status_ = status;
  }
  natsStatus status() const { return status_; }

 private:
  natsStatus status_ = NATS_OK;
};

}  // namespace

base::Error NatsSink::failure(const char* what, natsStatus status) const {
  return {std::make_error_code(std::errc::io_error),
          fmt::format("NATS at {}: {}: {}", options_.servers.front(), what, natsStatus_GetText(status))};
}

base::Error NatsSink::no_stream() const {
  return {std::make_error_code(std::errc::io_error),
          fmt::format("NATS at {}: no stream stores the subject {}: create one, for example by 'nats stream "
                      "add --subjects {}'",
                      options_.servers.front(), options_.subject, options_.subject)};
}

// A connection that failed is not used again: what was on its way must not be confused with what follows.
base::Result<> NatsSink::publish(const Source& source, std::span<const Event> events) {
  if (!connection_) {
    if (auto connected = connect(); !connected) return connected;
  }
  const std::uint64_t first = sent_;
  base::Result<> outcome;
  for (const Event& event : events) {
    outcome = send(source, event, sent_);
    if (!outcome) break;
    ++sent_;
  }
  if (outcome) outcome = await(first, sent_);
  if (!outcome) {
    subscription_.reset();
    connection_.reset();
  }
  return outcome;
}

base::Result<> NatsSink::connect() {
  natsOptions* raw = nullptr;
  Calls call;
  call(natsOptions_Create(&raw));
  const std::unique_ptr<natsOptions, DestroyOptions> options(raw);
  std::vector<std::string> urls;
  urls.reserve(options_.servers.size());
  for (const std::string& server : options_.servers)
    urls.push_back((options_.is_tls ? "tls://" : "nats://") + server);
  std::vector<const char*> servers;
  servers.reserve(urls.size());
  for (const std::string& url : urls) servers.push_back(url.c_str());
  call(natsOptions_SetServers(raw, servers.data(), static_cast<int>(servers.size())));
  call(natsOptions_SetName(raw, "spoor-publish"));
  call(natsOptions_SetIOBufSize(raw, io_buffer_bytes));
  call(natsOptions_SetTimeout(raw, options_.timeout.count()));
  call(natsOptions_SetWriteDeadline(raw, options_.timeout.count()));
  call(natsOptions_SetAllowReconnect(raw, false));
  if (!options_.user.empty())
    call(natsOptions_SetUserInfo(raw, options_.user.c_str(), options_.password.c_str()));
  if (!options_.token.empty()) call(natsOptions_SetToken(raw, options_.token.c_str()));
  if (options_.is_tls) call(natsOptions_SetSecure(raw, true));
  if (options_.tls && !options_.tls->ca.empty())
    call(natsOptions_LoadCATrustedCertificates(raw, options_.tls->ca.c_str()));
  if (options_.tls && !options_.tls->certificate.empty())
    call(
        natsOptions_LoadCertificatesChain(raw, options_.tls->certificate.c_str(), options_.tls->key.c_str()));
  if (call.status() != NATS_OK) return failure("wrong options", call.status());
  natsConnection* connection = nullptr;
  if (const auto status = natsConnection_Connect(&connection, raw); status != NATS_OK)
    return failure("cannot connect", status);
  connection_.reset(connection);
  sent_ = 0;
  auto opened = open_inbox();
  if (!opened) connection_.reset();
  return opened;
}

base::Result<> NatsSink::open_inbox() {
  natsInbox* inbox = nullptr;
  if (const auto status = natsInbox_Create(&inbox); status != NATS_OK)
    return failure("cannot subscribe", status);
  inbox_ = inbox;
  natsInbox_Destroy(inbox);
  natsSubscription* subscription = nullptr;
  const std::string subjects = inbox_ + ".*";
  if (const auto status = natsConnection_SubscribeSync(&subscription, connection_.get(), subjects.c_str());
      status != NATS_OK)
    return failure("cannot subscribe", status);
  subscription_.reset(subscription);
  // One for each message of a batch.
  if (const auto status = natsSubscription_SetPendingLimits(subscription, -1, -1); status != NATS_OK)
    return failure("cannot subscribe", status);
  return {};
}

base::Result<> NatsSink::send(const Source& source, const Event& event, std::uint64_t number) {
  const std::string body = to_json(source, event);
  const std::string reply = fmt::format("{}.{}", inbox_, number);
  natsMsg* raw = nullptr;
  Calls call;
  call(natsMsg_Create(&raw, options_.subject.c_str(), reply.c_str(), body.data(),
                      static_cast<int>(body.size())));
  const Message message(raw);
  if (call.status() == NATS_OK) {
    // A stream may store several subjects, and drops repetitions over all of them.
    call(natsMsgHeader_Set(raw, "Nats-Msg-Id", (options_.subject + '/' + event.id).c_str()));
    call(natsMsgHeader_Set(raw, "content-type", "application/cloudevents+json; charset=utf-8"));
    call(natsConnection_PublishMsg(connection_.get(), raw));
  }
  if (call.status() != NATS_OK) return failure("cannot publish", call.status());
  return {};
}

base::Result<> NatsSink::await(std::uint64_t first, std::uint64_t end) {
  std::vector<bool> is_open(end - first, true);
  const auto limit = std::chrono::steady_clock::now() + options_.batch_timeout;
  for (std::uint64_t left = end - first; left > 0;) {
    if (std::chrono::steady_clock::now() > limit) return failure("too slow", NATS_TIMEOUT);
    natsMsg* raw = nullptr;
    const auto status = natsSubscription_NextMsg(&raw, subscription_.get(), options_.timeout.count());
    const Message message(raw);
    if (status == NATS_NO_RESPONDERS || (status == NATS_OK && natsMsg_IsNoResponders(raw)))
      return no_stream();
    if (status != NATS_OK) return failure("no acknowledgement", status);
    if (auto read = read_acknowledgement(raw); !read) return read;
    const std::string_view reply = natsMsg_GetSubject(raw);
    const auto number =
        base::parse_number<std::uint64_t>(reply.substr(std::min(reply.size(), inbox_.size() + 1)));
    if (!number || *number < first || *number >= end || !is_open[*number - first]) continue;
    is_open[*number - first] = false;
    --left;
  }
  return {};
}

base::Result<> NatsSink::read_acknowledgement(natsMsg* message) const {
  const std::string_view body(natsMsg_GetData(message),
                              static_cast<std::size_t>(natsMsg_GetDataLength(message)));
  const auto json = base::is_nested_deeper(body, depth_max) ? nlohmann::json()
                                                            : nlohmann::json::parse(body, nullptr, false);
  const auto error = json.is_object() ? json.find("error") : json.end();
  if (json.is_object() && error == json.end() && json.contains("seq")) return {};
  const std::string why = json.is_object() && error != json.end() ? error->dump() : std::string(body);
  return base::Error(
      std::make_error_code(std::errc::io_error),
      fmt::format("NATS at {} did not store an event: {}", options_.servers.front(), base::printable(why)));
}

}  // namespace spoor::publish
