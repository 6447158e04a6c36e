#pragma once

#include <nats/nats.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/endpoint.h"
#include "publish/sink.h"

namespace spoor::publish {

// Publishes to a JetStream stream of NATS: each event is a message whose Nats-Msg-Id is the event's id, so
// that the stream drops repetitions within its duplicate window. Each message has a reply subject of its own
// for its acknowledgement (https://docs.nats.io/reference/reference-protocols/nats_api_reference). Those of a
// batch are awaited once the next one is sent, so that the server always has something to do.
class NatsSink final : public Sink {
 public:
  struct Options {
    std::vector<std::string> servers;  // HOST[:PORT]
    std::string subject = "spoor.changes";
    std::string user = {};
    std::string password = {};
    std::string token = {};
    bool is_tls = false;
    std::optional<base::TlsClientFiles> tls = {};
    std::chrono::milliseconds timeout{10'000};  // of connecting, of a write, and between two acknowledgements
    std::chrono::milliseconds batch_timeout{60'000};  // of all acknowledgements that a call waits for
  };

  explicit NatsSink(Options options) : options_(std::move(options)) {}
  NatsSink(const NatsSink&) = delete;
  NatsSink& operator=(const NatsSink&) = delete;
  ~NatsSink() override = default;

  base::Result<std::size_t> publish(const Source& source, std::span<const Event> events) override;
  bool defers() const override { return true; }
  base::Result<> settle() override;

 private:
  struct Destroy {
    void operator()(natsConnection* connection) const { natsConnection_Destroy(connection); }
    void operator()(natsSubscription* subscription) const { natsSubscription_Destroy(subscription); }
    void operator()(natsMsg* message) const { natsMsg_Destroy(message); }
  };

  base::Result<> connect();
  base::Result<> open_inbox();
  base::Result<> send(const Source& source, const Event& event);
  // The number of the next message over this connection.
  std::uint64_t end() const { return first_open_ + is_open_.size(); }
  // Reads acknowledgements until the messages before `end` have theirs.
  base::Result<> await(std::uint64_t end);
  // `number`: of the message to which it belongs, if that is known.
  base::Result<> read_acknowledgement(natsMsg* message, std::optional<std::uint64_t> number);
  // Whether this event is larger than a server takes, which must not stop the others; logs that.
  bool gives_up(std::uint64_t number);
  void close(std::uint64_t number);
  void disconnect();
  // It exists until the next call, at least.
  void destroy_later(natsMsg* message);
  void destroy_all();
  std::string server() const;
  base::Error failure(const char* what, natsStatus status) const;
  base::Error no_stream() const;

  const Options options_;
  // To the acknowledgements. Destroyed after the connection, whose thread may be about to deliver one.
  std::unique_ptr<natsSubscription, Destroy> subscription_;
  std::unique_ptr<natsConnection, Destroy> connection_;  // null: not connected
  std::string inbox_ = {};
  std::uint64_t first_open_ = 0;                // the number of the first message that is not acknowledged
  std::deque<bool> is_open_;                    // not acknowledged, from that one on
  std::map<std::uint64_t, std::string> large_;  // of these, the paths of events that may be given up
  std::string acknowledgement_start_ = {};      // of those that end with the number: the text before it
  std::vector<std::unique_ptr<natsMsg, Destroy>> to_destroy_;
  std::size_t to_destroy_bytes_ = 0;  // of their bodies
};

}  // namespace spoor::publish
