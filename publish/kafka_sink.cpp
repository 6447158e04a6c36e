#include <fmt/ranges.h>
#include <librdkafka/rdkafka.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/printable.h"
#include "publish/sink.h"

namespace spoor::publish {
namespace {

constexpr std::size_t text_bytes = 512;
constexpr std::size_t set_bytes_max = 1'000'000;  // of the messages that the library sends together
constexpr int step_timeout_ms = 20'000;
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

struct DestroyKafka {
  void operator()(rd_kafka_conf_t* configuration) const { rd_kafka_conf_destroy(configuration); }
  void operator()(rd_kafka_error_t* error) const { rd_kafka_error_destroy(error); }
  // Without waiting for what is on its way: it is in a transaction that is not committed.
  void operator()(rd_kafka_t* producer) const {
    rd_kafka_purge(producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_destroy(producer);
  }
};

// What was sent of one batch, and the reports on it.
struct Delivery {
  std::size_t sent = 0;
  std::size_t bytes = 0;
  std::size_t delivered = 0;
  std::string error = {};  // the first one
  bool is_too_large = false;

  static void report(rd_kafka_t* /*producer*/, const rd_kafka_message_t* message, void* /*opaque*/) {
    auto& delivery = *static_cast<Delivery*>(message->_private);
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
      ++delivery.delivered;
    else if (delivery.error.empty())
      delivery.error = rd_kafka_err2str(message->err);
    delivery.is_too_large |= message->err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
  }
};

class KafkaSink final : public Sink {
 public:
  KafkaSink(SinkTarget target, std::string transactional_id)
      : target_(std::move(target)), transactional_id_(std::move(transactional_id)) {}

  base::Result<std::size_t> publish(const Source& source, std::span<const Event> events) override {
    for (;;) {
      if (!producer_) {
        if (auto connected = connect(); !connected) return connected.error();
      }
      Delivery delivery;
      const auto published = publish_batch(source, events, delivery);
      if (published) {
        // It was the limit that ended the transaction.
        if (delivery.sent < events.size()) transaction_bytes_ += transaction_bytes_ / 8 + 1;
        if (transaction_bytes_ >= set_bytes_max) transaction_bytes_ = unlimited;
        return delivery.sent;
      }
      producer_.reset();
      if (!delivery.is_too_large) return published.error();
      if (delivery.sent > 1) {
        transaction_bytes_ = std::min(delivery.bytes, set_bytes_max) / 2;
      } else if (delivery.bytes > small_event_bytes) {
        spdlog::warn("Kafka at {} refused the event of '{}' as too large ({} bytes): it is given up",
                     target_.url.servers.front(), base::printable(events.front().path), delivery.bytes);
        return 1;
      } else {
        return failure("its limit is too small for any event", delivery.error);
      }
    }
  }

 private:
  base::Result<> connect() {
    std::unique_ptr<rd_kafka_conf_t, DestroyKafka> configuration(rd_kafka_conf_new());
    std::array<char, text_bytes> why{};
    for (const auto& [name, value] : settings()) {
      if (rd_kafka_conf_set(configuration.get(), name, value.c_str(), why.data(), why.size()) !=
          RD_KAFKA_CONF_OK)
        return failure("wrong options", why.data());
    }
    rd_kafka_conf_set_dr_msg_cb(configuration.get(), Delivery::report);
    producer_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, configuration.get(), why.data(), why.size()));
    if (!producer_) return failure("cannot connect", why.data());
    static_cast<void>(configuration.release());  // the producer's now
    auto begun = check("cannot connect", rd_kafka_init_transactions(producer_.get(), step_timeout_ms));
    if (!begun) producer_.reset();
    return begun;
  }

  std::vector<std::pair<const char*, std::string>> settings() const {
    const std::string tls = target_.secrets.tls ? "SSL" : "PLAINTEXT";
    const std::string& user = target_.settings.user;
    std::vector<std::pair<const char*, std::string>> settings = {
        {"bootstrap.servers", fmt::format("{}", fmt::join(target_.url.servers, ","))},
        {"client.id", "spoor-publish"},
        {"transactional.id", transactional_id_},
        {"enable.idempotence", "true"},
        {"linger.ms", "5"},
        {"log_level", "0"},  // errors are returned
        {"security.protocol", user.empty() ? tls : "SASL_" + tls},
        {"ssl.endpoint.identification.algorithm", "https"},  // the name in the certificate
    };
    const auto add = [&](const char* name, const std::string& value) { settings.emplace_back(name, value); };
    if (!user.empty()) {
      add("sasl.mechanisms", "PLAIN");
      add("sasl.username", user);
      add("sasl.password", target_.secrets.secret);
    }
    if (target_.secrets.tls && !target_.secrets.tls->ca.empty())
      add("ssl.ca.location", target_.secrets.tls->ca.native());
    if (target_.secrets.tls && !target_.secrets.tls->certificate.empty()) {
      add("ssl.certificate.location", target_.secrets.tls->certificate.native());
      add("ssl.key.location", target_.secrets.tls->key.native());
    }
    return settings;
  }

  base::Result<> publish_batch(const Source& source, std::span<const Event> events, Delivery& delivery) {
    if (auto begun = check("cannot begin a transaction", rd_kafka_begin_transaction(producer_.get())); !begun)
      return begun;
    base::Result<> outcome;
    for (const Event& event : events) {
      const std::string body = to_json(source, event);
      if (delivery.sent > 0 && delivery.bytes + body.size() > transaction_bytes_) break;
      outcome = produce(source.node, body, delivery);
      if (!outcome) break;
    }
    const auto flushed = rd_kafka_flush(producer_.get(), step_timeout_ms);
    if (outcome && !delivery.error.empty()) outcome = failure("an event was not stored", delivery.error);
    if (outcome && flushed != RD_KAFKA_RESP_ERR_NO_ERROR)
      outcome = failure("no acknowledgement", rd_kafka_err2str(flushed));
    if (outcome && delivery.delivered != delivery.sent)
      outcome = failure("an event was not stored", "no report on its delivery");
    if (outcome)
      return check("cannot commit the transaction",
                   rd_kafka_commit_transaction(producer_.get(), step_timeout_ms));
    // Their reports refer to `delivery`.
    rd_kafka_purge(producer_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush(producer_.get(), step_timeout_ms);
    return outcome;
  }

  base::Result<> produce(const std::string& key, const std::string& body, Delivery& delivery) {
    constexpr std::string_view type = "application/cloudevents+json; charset=utf-8";
    std::array<rd_kafka_vu_t, 6> fields{};
    fields[0].vtype = RD_KAFKA_VTYPE_TOPIC;
    fields[0].u.cstr = target_.settings.topic.c_str();
    fields[1].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
    fields[1].u.i = RD_KAFKA_MSG_F_COPY;
    fields[2].vtype = RD_KAFKA_VTYPE_KEY;
    fields[2].u.mem = {const_cast<char*>(key.data()), key.size()};
    fields[3].vtype = RD_KAFKA_VTYPE_VALUE;
    fields[3].u.mem = {const_cast<char*>(body.data()), body.size()};
    fields[4].vtype = RD_KAFKA_VTYPE_HEADER;
    fields[4].u.header = {"content-type", type.data(), static_cast<ssize_t>(type.size())};
    fields[5].vtype = RD_KAFKA_VTYPE_OPAQUE;
    fields[5].u.ptr = &delivery;
    auto done = check("cannot publish", rd_kafka_produceva(producer_.get(), fields.data(), fields.size()));
    if (!done) return done;
    ++delivery.sent;
    delivery.bytes += body.size();
    rd_kafka_poll(producer_.get(), 0);
    return {};
  }

  // Takes ownership of the error; null is success.
  base::Result<> check(const char* what, rd_kafka_error_t* error) const {
    const std::unique_ptr<rd_kafka_error_t, DestroyKafka> owned(error);
    if (error == nullptr) return {};
    return failure(what, rd_kafka_error_string(error));
  }

  base::Error failure(const char* what, const std::string& why) const {
    return {std::make_error_code(std::errc::io_error),
            fmt::format("Kafka at {}: {}: {}", target_.url.servers.front(), what, base::printable(why))};
  }

  const SinkTarget target_;
  const std::string transactional_id_;
  std::unique_ptr<rd_kafka_t, DestroyKafka> producer_;  // null: not connected
  std::size_t transaction_bytes_ = unlimited;           // of the next one with several events
};

}  // namespace

std::unique_ptr<Sink> make_kafka_sink(SinkTarget target, std::string transactional_id) {
  return std::make_unique<KafkaSink>(std::move(target), std::move(transactional_id));
}

}  // namespace spoor::publish
