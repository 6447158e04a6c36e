#include "publish/nats_sink.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/json_bounds.h"
#include "base/number.h"
#include "base/printable.h"

namespace spoor::publish {
namespace {

constexpr int message_too_large = 10054;  // for the stream (JSStreamMessageExceedsMaximumErr)
constexpr int io_buffer_bytes = 256 << 10;
constexpr std::size_t url_bytes = 512;
constexpr std::size_t depth_max = 16;  // of the JSON of an acknowledgement
constexpr std::size_t to_destroy_max = 4096;
constexpr std::size_t to_destroy_bytes_max = std::size_t{1} << 20U;

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

// The one that is connected; else the first.
std::string NatsSink::server() const {
  std::array<char, url_bytes> url{};
  const bool is_connected =
      connection_ && natsConnection_GetConnectedUrl(connection_.get(), url.data(), url.size()) == NATS_OK;
  const std::string_view connected(url.data());
  return is_connected ? std::string(connected.substr(connected.rfind('/') + 1)) : options_.servers.front();
}

base::Error NatsSink::failure(const char* what, natsStatus status) const {
  return {std::make_error_code(std::errc::io_error),
          fmt::format("NATS at {}: {}: {}", server(), what, natsStatus_GetText(status))};
}

base::Error NatsSink::no_stream() const {
  return {std::make_error_code(std::errc::io_error),
          fmt::format("NATS at {}: no stream stores the subject {}: create one, for example by 'nats stream "
                      "add --subjects {}'; if there is one, its servers elect a leader or are down",
                      server(), options_.subject, options_.subject)};
}

// A connection that failed is not used again: what was on its way must not be confused with what follows.
base::Result<std::size_t> NatsSink::publish(const Source& source, std::span<const Event> events) {
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

base::Result<> NatsSink::settle() {
  if (!connection_) return failure("no acknowledgement", NATS_CONNECTION_CLOSED);
  auto outcome = await(end());
  if (!outcome) disconnect();
  return outcome;
}

void NatsSink::disconnect() {
  destroy_all();
  connection_.reset();
  subscription_.reset();
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
  first_open_ = 0;
  is_open_.clear();
  large_.clear();
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

base::Result<> NatsSink::send(const Source& source, const Event& event) {
  const std::string body = to_json(source, event);
  // A subject for each message: replies with one would not tell which message has none, if two streams reply.
  const std::string reply = inbox_ + '.' + std::to_string(end());
  natsMsg* raw = nullptr;
  Calls call;
  call(natsMsg_Create(&raw, options_.subject.c_str(), reply.c_str(), body.data(),
                      static_cast<int>(body.size())));
  destroy_later(raw);
  if (call.status() == NATS_OK) {
    // A stream may store several subjects, and drops repetitions over all of them.
    call(natsMsgHeader_Set(raw, "Nats-Msg-Id", (options_.subject + '/' + event.id).c_str()));
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

bool NatsSink::gives_up(std::uint64_t number) {
  const auto found = large_.find(number);
  if (found == large_.end()) return false;
  spdlog::warn("NATS at {} refused the event of '{}' as too large: it is given up", server(),
               base::printable(found->second));
  return true;
}

base::Result<> NatsSink::await(std::uint64_t end) {
  const auto limit = std::chrono::steady_clock::now() + options_.batch_timeout;
  while (first_open_ < end) {
    if (std::chrono::steady_clock::now() > limit) return failure("too slow", NATS_TIMEOUT);
    natsMsg* message = nullptr;
    const auto status = natsSubscription_NextMsg(&message, subscription_.get(), options_.timeout.count());
    destroy_later(message);
    if (status == NATS_NO_RESPONDERS || (status == NATS_OK && natsMsg_IsNoResponders(message)))
      return no_stream();
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

void NatsSink::close(std::uint64_t number) {
  if (number < first_open_ || number >= end()) return;
  is_open_[number - first_open_] = false;
  large_.erase(number);
  for (; !is_open_.empty() && !is_open_.front(); ++first_open_) is_open_.pop_front();
}

base::Result<> NatsSink::read_acknowledgement(natsMsg* message, std::optional<std::uint64_t> number) {
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
    return base::Error(std::make_error_code(std::errc::io_error),
                       fmt::format("NATS at {} did not store an event: {}", server(), base::printable(why)));
  }
  if (last_number) acknowledgement_start_ = start;
  return {};
}

// The library passes each message to a thread that destroys it, and wakes the thread: many cost as much as
// one.
void NatsSink::destroy_later(natsMsg* message) {
  if (message == nullptr) return;
  if (to_destroy_.size() >= to_destroy_max || to_destroy_bytes_ >= to_destroy_bytes_max) destroy_all();
  to_destroy_.emplace_back(message);
  to_destroy_bytes_ += static_cast<std::size_t>(natsMsg_GetDataLength(message));
}

void NatsSink::destroy_all() {
  to_destroy_.clear();
  to_destroy_bytes_ = 0;
}

}  // namespace spoor::publish
