#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/endpoint.h"
#include "publish/sink.h"

namespace spoor::publish {

// Publishes to a topic of Kafka. All events of a node have its name as their key, so that they are in one
// partition, in their order. A batch is a transaction: after a restart, the broker refuses what the former
// process still had on its way. A consumer that reads uncommitted messages may see a batch again. After the
// broker has refused a transaction as too large, one has half the bytes, and then they grow again slowly. An
// event that is refused like this by itself is given up, unless it is a small one.
class KafkaSink final : public Sink {
 public:
  struct Options {
    std::vector<std::string> servers;  // HOST[:PORT]
    std::string topic = "spoor.changes";
    std::string transactional_id;  // the same for each run of this sink, and no other
    std::string user = {};         // SASL PLAIN; empty: none
    std::string password = {};
    std::optional<base::TlsClientFiles> tls = {};
    std::chrono::milliseconds timeout{20'000};  // of each step
  };

  explicit KafkaSink(Options options) : options_(std::move(options)) {}
  KafkaSink(const KafkaSink&) = delete;
  KafkaSink& operator=(const KafkaSink&) = delete;
  ~KafkaSink() override = default;

  base::Result<std::size_t> publish(const Source& source, std::span<const Event> events) override;

 private:
  struct Destroy {
    void operator()(rd_kafka_t* producer) const;
  };
  struct Delivery;

  base::Result<> connect();
  base::Result<> publish_batch(const Source& source, std::span<const Event> events, Delivery& delivery);
  base::Result<> produce(const std::string& key, const std::string& body, Delivery& delivery);
  // Takes ownership of the error; null is success.
  base::Result<> check(const char* what, rd_kafka_error_t* error) const;
  base::Error failure(const char* what, const std::string& why) const;

  const Options options_;
  std::unique_ptr<rd_kafka_t, Destroy> producer_;  // null: not connected
  // Of the next transaction with several events.
  std::size_t transaction_bytes_ = std::numeric_limits<std::size_t>::max();
};

}  // namespace spoor::publish
