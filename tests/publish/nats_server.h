// A real nats-server with JetStream on this machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/publish/event_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_directory.h"

namespace spoor::publish {

// On own_loopback(). Its port and its data stay the same across restarts.
class NatsServer final : public EventServer {
 public:
  // Returns when it serves. It has no stream. `settings`: further lines of its configuration.
  explicit NatsServer(std::string settings = {});

  // A stream with the default duplicate window for the subject spoor.changes.
  void create_stream(std::int32_t message_bytes_max = -1);

  nlohmann::json sink() const override;
  std::vector<Event> events() override;
  void fail(support::Random& /*random*/) override { kill(); }
  void restore() override { start(); }
  Repeats repeats() const override { return Repeats::none; }  // within the duplicate window

  void kill() { daemon_.reset(); }
  void start();
  void freeze() { daemon_->freeze(); }
  // Whether a client has sent what the server has not read.
  bool has_unread_input() const;

 private:
  void read_port();

  const std::string settings_;
  support::TempDirectory directory_;
  std::int64_t port_ = -1;  // -1: the server chooses it
  std::unique_ptr<support::Daemon> daemon_;
};

}  // namespace spoor::publish
