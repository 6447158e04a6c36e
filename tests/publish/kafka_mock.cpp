#include "tests/publish/kafka_mock.h"

#include <array>
#include <stdexcept>

namespace spoor::publish {
namespace {

constexpr const char* topic = "spoor.changes";
constexpr int partitions = 4;
constexpr int timeout_ms = 60'000;

rd_kafka_t* make_client(rd_kafka_type_t type, const std::string& servers) {
  rd_kafka_conf_t* const configuration = rd_kafka_conf_new();
  std::array<char, 512> why{};
  rd_kafka_conf_set(configuration, "log_level", "0", why.data(), why.size());
  if (type == RD_KAFKA_CONSUMER) {
    rd_kafka_conf_set(configuration, "fetch.wait.max.ms", "10", why.data(), why.size());
    rd_kafka_conf_set(configuration, "group.id", "test", why.data(), why.size());
    rd_kafka_conf_set(configuration, "enable.partition.eof", "true", why.data(), why.size());
    rd_kafka_conf_set(configuration, "isolation.level", "read_uncommitted", why.data(), why.size());
    rd_kafka_conf_set(configuration, "bootstrap.servers", servers.c_str(), why.data(), why.size());
  }
  rd_kafka_t* const client = rd_kafka_new(type, configuration, why.data(), why.size());
  if (client == nullptr) throw std::runtime_error(why.data());
  return client;
}

void assign(rd_kafka_t* consumer) {
  const std::unique_ptr<rd_kafka_topic_partition_list_t, decltype(&rd_kafka_topic_partition_list_destroy)>
      list(rd_kafka_topic_partition_list_new(partitions), rd_kafka_topic_partition_list_destroy);
  for (int each = 0; each < partitions; ++each)
    rd_kafka_topic_partition_list_add(list.get(), topic, each)->offset = RD_KAFKA_OFFSET_BEGINNING;
  if (rd_kafka_assign(consumer, list.get()) != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error("cannot assign partitions");
}

using Message = std::unique_ptr<rd_kafka_message_t, decltype(&rd_kafka_message_destroy)>;

}  // namespace

KafkaMock::KafkaMock()
    : client_(make_client(RD_KAFKA_PRODUCER, "")), cluster_(rd_kafka_mock_cluster_new(client_.get(), 1)) {
  if (!cluster_) throw std::runtime_error("no mock of Kafka");
  rd_kafka_mock_topic_create(cluster_.get(), topic, partitions, 1);
}

nlohmann::json KafkaMock::sink() const { return {{"url", "kafka://" + servers()}, {"topic", topic}}; }

void KafkaMock::fail(support::Random& /*random*/) { rd_kafka_mock_broker_set_down(cluster_.get(), 1); }

void KafkaMock::restore() { rd_kafka_mock_broker_set_up(cluster_.get(), 1); }

void KafkaMock::refuse_as_too_large(std::size_t requests) {
  constexpr std::int16_t produce = 0;  // the request's key in the protocol
  const std::vector<rd_kafka_resp_err_t> errors(requests, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
  rd_kafka_mock_push_request_errors_array(cluster_.get(), produce, errors.size(), errors.data());
}

// All have the same key: those in one partition are in order, and the others have to be empty.
std::vector<Event> KafkaMock::events() {
  const std::unique_ptr<rd_kafka_t, Destroy> consumer(make_client(RD_KAFKA_CONSUMER, servers()));
  assign(consumer.get());
  std::vector<Event> events;
  int partition = -1;
  for (int ended = 0; ended < partitions;) {
    const Message message(rd_kafka_consumer_poll(consumer.get(), timeout_ms), rd_kafka_message_destroy);
    if (!message) throw std::runtime_error("no message from the mock of Kafka");
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) ++ended;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    if (partition >= 0 && message->partition != partition) throw std::runtime_error("two partitions");
    partition = message->partition;
    const auto* const bytes = static_cast<const char*>(message->payload);
    events.push_back(read_event(nlohmann::json::parse(bytes, bytes + message->len)));
  }
  rd_kafka_consumer_close(consumer.get());
  return events;
}

}  // namespace spoor::publish
