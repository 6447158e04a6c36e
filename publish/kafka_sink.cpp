#include "publish/kafka_sink.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/printable.h"

namespace spoor::publish {
namespace {

constexpr std::size_t text_bytes = 512;
constexpr std::size_t set_bytes_max = 1'000'000;  // of the messages that the library sends together

struct DestroyConfiguration {
  void operator()(rd_kafka_conf_t* configuration) const { rd_kafka_conf_destroy(configuration); }
};
using Configuration = std::unique_ptr<rd_kafka_conf_t, DestroyConfiguration>;

struct DestroyError {
  void operator()(rd_kafka_error_t* error) const { rd_kafka_error_destroy(error); }
};

}  // namespace

// What was sent of one batch, and the reports on it.
struct KafkaSink::Delivery {
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

// Without waiting for what is on its way: it is in a transaction that is not committed.
void KafkaSink::Destroy::operator()(rd_kafka_t* producer) const {
  rd_kafka_purge(producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  rd_kafka_destroy(producer);
}

base::Error KafkaSink::failure(const char* what, const std::string& why) const {
  return {std::make_error_code(std::errc::io_error),
          fmt::format("Kafka at {}: {}: {}", options_.servers.front(), what, base::printable(why))};
}

base::Result<> KafkaSink::check(const char* what, rd_kafka_error_t* error) const {
  const std::unique_ptr<rd_kafka_error_t, DestroyError> owned(error);
  if (error == nullptr) return {};
  return failure(what, rd_kafka_error_string(error));
}

base::Result<std::size_t> KafkaSink::publish(const Source& source, std::span<const Event> events) {
  for (;;) {
    if (!producer_) {
      if (auto connected = connect(); !connected) return connected.error();
    }
    Delivery delivery;
    const auto published = publish_batch(source, events, delivery);
    if (published) {
      // It was the limit that ended the transaction.
      if (delivery.sent < events.size()) transaction_bytes_ += transaction_bytes_ / 8 + 1;
      if (transaction_bytes_ >= set_bytes_max) transaction_bytes_ = std::numeric_limits<std::size_t>::max();
      return delivery.sent;
    }
    producer_.reset();
    if (!delivery.is_too_large) return published.error();
    if (delivery.sent > 1) {
      transaction_bytes_ = std::min(delivery.bytes, set_bytes_max) / 2;
    } else if (delivery.bytes > small_event_bytes) {
      spdlog::warn("Kafka at {} refused the event of '{}' as too large ({} bytes): it is given up",
                   options_.servers.front(), base::printable(events.front().path), delivery.bytes);
      return 1;
    } else {
      return failure("its limit is too small for any event", delivery.error);
    }
  }
}

base::Result<> KafkaSink::connect() {
  Configuration configuration(rd_kafka_conf_new());
  std::array<char, text_bytes> why{};
  std::string error;
  const auto set = [&](const char* name, const std::string& value) {
    const auto result = rd_kafka_conf_set(configuration.get(), name, value.c_str(), why.data(), why.size());
    if (result != RD_KAFKA_CONF_OK && error.empty()) error = why.data();
  };
  set("bootstrap.servers", fmt::format("{}", fmt::join(options_.servers, ",")));
  set("client.id", "spoor-publish");
  set("transactional.id", options_.transactional_id);
  set("enable.idempotence", "true");
  set("linger.ms", "5");
  set("log_level", "0");  // errors are returned
  const std::string tls = options_.tls ? "SSL" : "PLAINTEXT";
  set("security.protocol", options_.user.empty() ? tls : "SASL_" + tls);
  if (!options_.user.empty()) {
    set("sasl.mechanisms", "PLAIN");
    set("sasl.username", options_.user);
    set("sasl.password", options_.password);
  }
  set("ssl.endpoint.identification.algorithm", "https");  // the name in the certificate
  if (options_.tls && !options_.tls->ca.empty()) set("ssl.ca.location", options_.tls->ca.native());
  if (options_.tls && !options_.tls->certificate.empty()) {
    set("ssl.certificate.location", options_.tls->certificate.native());
    set("ssl.key.location", options_.tls->key.native());
  }
  rd_kafka_conf_set_dr_msg_cb(configuration.get(), Delivery::report);
  if (!error.empty()) return failure("wrong options", error);
  producer_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, configuration.get(), why.data(), why.size()));
  if (!producer_) return failure("cannot connect", why.data());
  static_cast<void>(configuration.release());  // the producer's now
  auto begun = check("cannot connect",
                     rd_kafka_init_transactions(producer_.get(), static_cast<int>(options_.timeout.count())));
  if (!begun) producer_.reset();
  return begun;
}

base::Result<> KafkaSink::publish_batch(const Source& source, std::span<const Event> events,
                                        Delivery& delivery) {
  const int timeout = static_cast<int>(options_.timeout.count());
  if (auto begun = check("cannot begin a transaction", rd_kafka_begin_transaction(producer_.get())); !begun)
    return begun;
  base::Result<> outcome;
  for (const Event& event : events) {
    const std::string body = to_json(source, event);
    if (delivery.sent > 0 && delivery.bytes + body.size() > transaction_bytes_) break;
    outcome = produce(source.node, body, delivery);
    if (!outcome) break;
  }
  const auto flushed = rd_kafka_flush(producer_.get(), timeout);
  if (outcome && !delivery.error.empty()) outcome = failure("an event was not stored", delivery.error);
  if (outcome && flushed != RD_KAFKA_RESP_ERR_NO_ERROR)
    outcome = failure("no acknowledgement", rd_kafka_err2str(flushed));
  if (outcome && delivery.delivered != delivery.sent)
    outcome = failure("an event was not stored", "no report on its delivery");
  if (outcome)
    return check("cannot commit the transaction", rd_kafka_commit_transaction(producer_.get(), timeout));
  // Their reports refer to `delivery`.
  rd_kafka_purge(producer_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  rd_kafka_flush(producer_.get(), timeout);
  return outcome;
}

base::Result<> KafkaSink::produce(const std::string& key, const std::string& body, Delivery& delivery) {
  constexpr std::string_view type = "application/cloudevents+json; charset=utf-8";
  std::array<rd_kafka_vu_t, 6> fields{};
  fields[0].vtype = RD_KAFKA_VTYPE_TOPIC;
  fields[0].u.cstr = options_.topic.c_str();
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
  if (auto done = check("cannot publish", rd_kafka_produceva(producer_.get(), fields.data(), fields.size()));
      !done)
    return done;
  ++delivery.sent;
  delivery.bytes += body.size();
  rd_kafka_poll(producer_.get(), 0);
  return {};
}

}  // namespace spoor::publish
