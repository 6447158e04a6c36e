// What events are published to.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "config/config.h"
#include "config/secret_file.h"
#include "config/sink_url.h"
#include "peer/http/transport.h"
#include "publish/event.h"

namespace spoor::publish {

// A larger event that a server refuses as too large is given up. A server that refuses a smaller one takes
// none.
inline constexpr std::size_t small_event_bytes = std::size_t{1} << 10U;

// The totals of a directory after a scan.
struct DirectoryTotals {
  std::string path;  // "" is the root
  std::uint64_t files = 0;
  std::uint64_t dirs = 0;
  std::uint64_t bytes = 0;
  std::uint64_t allocated = 0;
  bool complete = true;
};

// Not thread-safe. Every call ends in bounded time.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  // Publishes as many of the events, in this order, as one request takes, and waits until the other end has
  // stored them. Returns how many: at least one. After an error, any of the events may be stored: the caller
  // publishes all of them again.
  virtual base::Result<std::size_t> publish(const Source& source, std::span<const Event> events) = 0;

  // Whether publish() takes all events, and waits for those of the calls before only. After an error, any of
  // those that no call has waited for may be stored.
  virtual bool defers() const { return false; }
  // Waits until the other end has stored all that was published. Called after publish().
  virtual base::Result<> settle() { return {}; }

  // Whether the last failure was that the other end has nothing of this source, and the events do not begin
  // with a reset.
  virtual bool needs_reset() const { return false; }

  // How long the other end has asked to wait since the last call; zero if it has not.
  virtual std::chrono::seconds take_retry_after() { return {}; }

  // Whether totals are stored, too. `are_all`: the other directories of the same depth do not exist.
  virtual bool takes_totals() const { return false; }
  virtual base::Result<> store_totals(const Source& /*source*/, const scanner::ScanRecord& /*scan*/,
                                      std::span<const DirectoryTotals> /*totals*/, bool /*are_all*/) {
    return {};
  }
};

// A sink of the configuration, with what its settings lead to.
struct SinkTarget {
  config::Sink settings = {};
  config::SinkUrl url = {};
  config::ClientSecrets secrets = {};
};

// The sink of this configuration; reads its secrets. `node` and its cluster tell the sinks of several nodes
// apart. The clock must outlive it. Connects only when something is published.
base::Result<std::unique_ptr<Sink>> make_sink(const config::Sink& sink, const config::Config::Node& node,
                                              const base::Clock& clock);

// Posts CloudEvents in their HTTP binding: a batch as one JSON array, or each event by itself, one after the
// other. Any status of 200 to 299 is an acknowledgement. After 413 (too large) a body has half the bytes, and
// then grows again slowly, up to 512 KiB: servers refuse larger ones by default (nginx: 1 MiB). An event that
// is refused like this by itself is given up, unless it is a small one.
std::unique_ptr<Sink> make_http_sink(SinkTarget target, std::unique_ptr<peer::Transport> transport);

// Publishes to a JetStream stream of NATS: each event is a message whose Nats-Msg-Id is the event's id, so
// that the stream drops repetitions within its duplicate window. Each message has a reply subject of its own
// for its acknowledgement (https://docs.nats.io/reference/reference-protocols/nats_api_reference). Those of a
// batch are awaited once the next one is sent, so that the server always has something to do.
// `timeout`: of connecting, of a write, and between two acknowledgements.
std::unique_ptr<Sink> make_nats_sink(SinkTarget target,
                                     std::chrono::milliseconds timeout = std::chrono::seconds(10));

// Publishes to a topic of Kafka. All events of a node have its name as their key, so that they are in one
// partition, in their order. A batch is a transaction: after a restart, the broker refuses what the former
// process still had on its way. A consumer that reads uncommitted messages may see a batch again. After the
// broker has refused a transaction as too large, one has half the bytes, and then they grow again slowly. An
// event that is refused like this by itself is given up, unless it is a small one.
// `transactional_id`: the same for each run of this sink, and no other.
std::unique_ptr<Sink> make_kafka_sink(SinkTarget target, std::string transactional_id);

// Stores events and totals in tables of the schema `spoor` of a PostgreSQL database (docs/publish.md), which
// it creates and migrates. A batch is a transaction, and a repeated event is stored once. The clock must
// outlive the sink.
std::unique_ptr<Sink> make_postgres_sink(SinkTarget target, const base::Clock& clock);

}  // namespace spoor::publish
