#include <fmt/core.h>
#include <nats/nats.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_bounds.h"
#include "base/number.h"
#include "base/printable.h"
#include "publish/sink.h"

namespace spoor::publish {
namespace {

constexpr int message_too_large = 10054;  // for the stream (JSStreamMessageExceedsMaximumErr)
constexpr int io_buffer_bytes = 256 << 10;
constexpr std::size_t url_bytes = 512;
constexpr std::size_t depth_max = 16;  // of the JSON of an acknowledgement
constexpr std::size_t to_destroy_max = 4096;
constexpr std::size_t to_destroy_bytes_max = std::size_t{1} << 20U;
constexpr std::chrono::seconds batch_timeout{60};  // of all acknowledgements that a call waits for

struct DestroyNats {
  void operator()(natsOptions* options) const { natsOptions_Destroy(options); }
  void operator()(natsConnection* connection) const { natsConnection_Destroy(connection); }
  void operator()(natsSubscription* subscription) const { natsSubscription_Destroy(subscription); }
  void operator()(natsMsg* message) const { natsMsg_Destroy(message); }
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

// A connection that failed is not used again: what was on its way must not be confused with what follows.
class NatsSink final : public Sink {
 public:
  NatsSink(SinkTarget target, std::chrono::milliseconds timeout)
      : target_(std::move(target)), timeout_ms_(timeout.count()) {}

  base::Result<std::size_t> publish(const Source& source, std::span<const Event> events) override {
    if (!connection_) {
      if (auto connected = connect(); !connected) return connected.error();
    }
    const std::uint64_t first = end();
    base::Result<> outcome;
    for (const Event& event : events) {
      outcome = send(source, event);
      if (!outcome) break;
    }
    if (outcome) outcome = await(first);
    if (outcome) return events.size();
    disconnect();
    return outcome.error();
  }

  bool defers() const override { return true; }

  base::Result<> settle() override {
    if (!connection_) return failure("no acknowledgement", NATS_CONNECTION_CLOSED);
    auto outcome = await(end());
    if (!outcome) disconnect();
    return outcome;
  }

 private:
  base::Result<> connect() {
    const auto& [settings, url, secrets] = target_;
    natsOptions* raw = nullptr;
    Calls call;
    call(natsOptions_Create(&raw));
    const std::unique_ptr<natsOptions, DestroyNats> options(raw);
    std::vector<std::string> urls;
    urls.reserve(url.servers.size());
    for (const std::string& server : url.servers)
      urls.push_back((url.is_tls ? "tls://" : "nats://") + server);
    std::vector<const char*> servers;
    servers.reserve(urls.size());
    for (const std::string& each : urls) servers.push_back(each.c_str());
    call(natsOptions_SetServers(raw, servers.data(), static_cast<int>(servers.size())));
    call(natsOptions_SetName(raw, "spoor-publish"));
    call(natsOptions_SetIOBufSize(raw, io_buffer_bytes));
    call(natsOptions_SetTimeout(raw, timeout_ms_));
    call(natsOptions_SetWriteDeadline(raw, timeout_ms_));
    call(natsOptions_SetAllowReconnect(raw, false));
    if (!settings.user.empty())
      call(natsOptions_SetUserInfo(raw, settings.user.c_str(), secrets.secret.c_str()));
    else if (!secrets.secret.empty())
      call(natsOptions_SetToken(raw, secrets.secret.c_str()));
    if (url.is_tls) call(natsOptions_SetSecure(raw, true));
    if (secrets.tls && !secrets.tls->ca.empty())
      call(natsOptions_LoadCATrustedCertificates(raw, secrets.tls->ca.c_str()));
    if (secrets.tls && !secrets.tls->certificate.empty())
      call(
          natsOptions_LoadCertificatesChain(raw, secrets.tls->certificate.c_str(), secrets.tls->key.c_str()));
    if (call.status() != NATS_OK) return failure("wrong options", call.status());
    natsConnection* connection = nullptr;
    if (const auto status = natsConnection_Connect(&connection, raw); status != NATS_OK)
      return failure("cannot connect", status);
    connection_.reset(connection);
    first_open_ = 0;
    is_open_.clear();
    large_.clear();
    auto opened = open_inbox();
    if (!opened) connection_.reset();
    return opened;
  }

  base::Result<> open_inbox() {
    natsInbox* inbox = nullptr;
    if (const auto status = natsInbox_Create(&inbox); status != NATS_OK)
      return failure("cannot subscribe", status);
    inbox_ = inbox;
    natsInbox_Destroy(inbox);
    natsSubscription* subscription = nullptr;
    Calls call;
    call(natsConnection_SubscribeSync(&subscription, connection_.get(), (inbox_ + ".*").c_str()));
    subscription_.reset(subscription);
    // One for each message of a batch.
    if (subscription != nullptr) call(natsSubscription_SetPendingLimits(subscription, -1, -1));
    return call.status() == NATS_OK ? base::Result<>() : failure("cannot subscribe", call.status());
  }

  base::Result<> send(const Source& source, const Event& event) {
    const std::string body = to_json(source, event);
    const std::string& subject = target_.settings.topic;
    // A subject for each message: replies with one would not tell which message has none, if two streams
    // reply.
    const std::string reply = inbox_ + '.' + std::to_string(end());
    natsMsg* raw = nullptr;
    Calls call;
    call(natsMsg_Create(&raw, subject.c_str(), reply.c_str(), body.data(), static_cast<int>(body.size())));
    destroy_later(raw);
    if (call.status() == NATS_OK) {
      // A stream may store several subjects, and drops repetitions over all of them.
      call(natsMsgHeader_Set(raw, "Nats-Msg-Id", (subject + '/' + event.id).c_str()));
      call(natsMsgHeader_Set(raw, "content-type", "application/cloudevents+json; charset=utf-8"));
      call(natsConnection_PublishMsg(connection_.get(), raw));
    }
    const std::uint64_t number = end();
    is_open_.push_back(true);
    if (body.size() > small_event_bytes) large_[number] = event.path;
    if (call.status() == NATS_MAX_PAYLOAD && gives_up(number)) {
      close(number);
      return {};
    }
    return call.status() == NATS_OK ? base::Result<>() : failure("cannot publish", call.status());
  }

  // The number of the next message over this connection.
  std::uint64_t end() const { return first_open_ + is_open_.size(); }
  // Reads acknowledgements until the messages before `end` have theirs.
  base::Result<> await(std::uint64_t end) {
    const auto limit = std::chrono::steady_clock::now() + batch_timeout;
    while (first_open_ < end) {
      if (std::chrono::steady_clock::now() > limit) return failure("too slow", NATS_TIMEOUT);
      natsMsg* message = nullptr;
      const auto status = natsSubscription_NextMsg(&message, subscription_.get(), timeout_ms_);
      destroy_later(message);
      if (status == NATS_NO_RESPONDERS || (status == NATS_OK && natsMsg_IsNoResponders(message)))
        return base::Error(
            std::make_error_code(std::errc::io_error),
            fmt::format(
                "NATS at {0}: no stream stores the subject {1}: create one, for example by 'nats stream "
                "add --subjects {1}'; if there is one, its servers elect a leader or are down",
                server(), target_.settings.topic));
      if (status != NATS_OK) return failure("no acknowledgement", status);
      const std::string_view reply = natsMsg_GetSubject(message);
      const auto number =
          base::parse_number<std::uint64_t>(reply.substr(std::min(reply.size(), inbox_.size() + 1)));
      if (auto read = read_acknowledgement(message, number); !read) return read;
      if (number) close(*number);
    }
    destroy_all();
    return {};
  }

  // `number`: of the message to which it belongs, if that is known.
  base::Result<> read_acknowledgement(natsMsg* message, std::optional<std::uint64_t> number) {
    const std::string_view body(natsMsg_GetData(message),
                                static_cast<std::size_t>(natsMsg_GetDataLength(message)));
    // Most are {"stream":"NAME", "seq":N}, and differ by the number only: one of them is parsed.
    const std::string_view start = body.substr(0, body.rfind(':') + 1);
    const auto last_number =
        body.ends_with('}')
            ? base::parse_number<std::uint64_t>(body.substr(start.size(), body.size() - start.size() - 1))
            : std::nullopt;
    if (last_number && *last_number > 0 && !start.empty() && start == acknowledgement_start_) return {};

    const auto json = base::is_nested_deeper(body, depth_max) ? nlohmann::json()
                                                              : nlohmann::json::parse(body, nullptr, false);
    const auto error = json.find("error");
    const auto sequence = json.find("seq");
    const bool is_stored = error == json.end() && sequence != json.end() && sequence->is_number_unsigned() &&
                           sequence->get<std::uint64_t>() > 0;
    const bool is_too_large =
        error != json.end() && error->contains("err_code") && error->at("err_code") == message_too_large;
    if (is_too_large && number && gives_up(*number)) return {};
    if (!is_stored) {
      const std::string why = error != json.end() ? error->dump() : std::string(body);
      return base::Error(
          std::make_error_code(std::errc::io_error),
          fmt::format("NATS at {} did not store an event: {}", server(), base::printable(why)));
    }
    if (last_number) acknowledgement_start_ = start;
    return {};
  }

  // Whether this event is larger than a server takes, which must not stop the others; logs that.
  bool gives_up(std::uint64_t number) {
    const auto found = large_.find(number);
    if (found == large_.end()) return false;
    spdlog::warn("NATS at {} refused the event of '{}' as too large: it is given up", server(),
                 base::printable(found->second));
    return true;
  }

  void close(std::uint64_t number) {
    if (number < first_open_ || number >= end()) return;
    is_open_[number - first_open_] = false;
    large_.erase(number);
    for (; !is_open_.empty() && !is_open_.front(); ++first_open_) is_open_.pop_front();
  }

  // It exists until the next call, at least.
  // The library passes each message to a thread that destroys it, and wakes the thread: many cost as much as
  // one.
  void destroy_later(natsMsg* message) {
    if (message == nullptr) return;
    if (to_destroy_.size() >= to_destroy_max || to_destroy_bytes_ >= to_destroy_bytes_max) destroy_all();
    to_destroy_.emplace_back(message);
    to_destroy_bytes_ += static_cast<std::size_t>(natsMsg_GetDataLength(message));
  }

  // The one that is connected; else the first.
  std::string server() const {
    std::array<char, url_bytes> url{};
    const bool is_connected =
        connection_ && natsConnection_GetConnectedUrl(connection_.get(), url.data(), url.size()) == NATS_OK;
    const std::string_view connected(url.data());
    return is_connected ? std::string(connected.substr(connected.rfind('/') + 1))
                        : target_.url.servers.front();
  }

  void disconnect() {
    destroy_all();
    connection_.reset();
    subscription_.reset();
  }

  void destroy_all() {
    to_destroy_.clear();
    to_destroy_bytes_ = 0;
  }

  base::Error failure(const char* what, natsStatus status) const {
    return {std::make_error_code(std::errc::io_error),
            fmt::format("NATS at {}: {}: {}", server(), what, natsStatus_GetText(status))};
  }

  const SinkTarget target_;
  const std::int64_t timeout_ms_;
  // To the acknowledgements. Destroyed after the connection, whose thread may be about to deliver one.
  std::unique_ptr<natsSubscription, DestroyNats> subscription_;
  std::unique_ptr<natsConnection, DestroyNats> connection_;  // null: not connected
  std::string inbox_;
  std::uint64_t first_open_ = 0;                // the number of the first message that is not acknowledged
  std::deque<bool> is_open_;                    // not acknowledged, from that one on
  std::map<std::uint64_t, std::string> large_;  // of these, the paths of events that may be given up
  std::string acknowledgement_start_;           // of those that end with the number: the text before it
  std::vector<std::unique_ptr<natsMsg, DestroyNats>> to_destroy_;
  std::size_t to_destroy_bytes_ = 0;  // of their bodies
};

}  // namespace

std::unique_ptr<Sink> make_nats_sink(SinkTarget target, std::chrono::milliseconds timeout) {
  return std::make_unique<NatsSink>(std::move(target), timeout);
}

}  // namespace spoor::publish
