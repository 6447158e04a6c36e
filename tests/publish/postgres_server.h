// A real PostgreSQL on this machine.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <string>

#include "tests/publish/event_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_directory.h"

namespace spoor::publish {

// As the user postgres, on a Unix socket in its directory, without TCP. Its data stay across restarts.
class PostgresServer final : public EventServer {
 public:
  // Returns when it serves. The encoding is that of its databases.
  explicit PostgresServer(const std::string& encoding = "UTF8");

  nlohmann::json sink() const override;
  std::vector<Event> events() override;
  void fail(support::Random& /*random*/) override { kill(); }
  void restore() override { start(); }
  Repeats repeats() const override { return Repeats::none; }

  void kill() { daemon_.reset(); }
  void freeze() { daemon_->freeze(); }
  void thaw() { daemon_->signal(SIGCONT); }

  struct Finish {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  std::unique_ptr<PGconn, Finish> connect() const;

  // The rows of a query, as text; throws on a failure.
  std::vector<std::vector<std::string>> query(const std::string& statement) const;

 private:
  void start();
  bool try_start();

  support::TempDirectory directory_;
  std::unique_ptr<support::Daemon> daemon_;
};

}  // namespace spoor::publish
