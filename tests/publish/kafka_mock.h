// Kafka, as the mock cluster of librdkafka plays it in the process of the test: no broker of Kafka is in
// Debian.
#pragma once

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <memory>
#include <string>

#include "tests/publish/event_server.h"

namespace spoor::publish {

// The mock speaks the protocol, transactions included, but its consumers also see messages of transactions
// that were not committed: so a batch can be there twice. The messages are in memory, and survive its
// failures.
class KafkaMock final : public EventServer {
 public:
  KafkaMock();

  nlohmann::json sink() const override;
  std::vector<Event> events() override;
  void fail(support::Random& random) override;
  void restore() override;
  Repeats repeats() const override { return Repeats::within_a_batch; }
  std::string servers() const { return rd_kafka_mock_cluster_bootstraps(cluster_.get()); }
  // The next requests with messages.
  void refuse_as_too_large(std::size_t requests);

  // Registering the transactional id takes a second.
  Moments moments() const override {
    return {.first = std::chrono::milliseconds(900), .last = std::chrono::milliseconds(1300)};
  }

 private:
  struct Destroy {
    void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
    void operator()(rd_kafka_mock_cluster_t* cluster) const { rd_kafka_mock_cluster_destroy(cluster); }
  };

  std::unique_ptr<rd_kafka_t, Destroy> client_;  // the mock's own
  std::unique_ptr<rd_kafka_mock_cluster_t, Destroy> cluster_;
};

}  // namespace spoor::publish
