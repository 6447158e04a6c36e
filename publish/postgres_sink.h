#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/endpoint.h"
#include "publish/sink.h"

namespace spoor::publish {

// Stores events and totals in tables of the schema `spoor` of a PostgreSQL database (docs/publish.md), which
// it creates and migrates. A batch is a transaction, and a repeated event is stored once.
class PostgresSink final : public Sink {
 public:
  struct Options {
    std::string url;  // postgresql://HOST[:PORT]/DATABASE, as libpq reads it
    std::string user = {};
    std::string password = {};
    std::optional<base::TlsClientFiles> tls = {};
    std::chrono::milliseconds timeout{30'000};  // of connecting, and of each statement
  };

  // The clock must outlive it.
  PostgresSink(Options options, const base::Clock& clock) : options_(std::move(options)), clock_(clock) {}
  PostgresSink(const PostgresSink&) = delete;
  PostgresSink& operator=(const PostgresSink&) = delete;
  ~PostgresSink() override = default;

  base::Result<std::size_t> publish(const Source& source, std::span<const Event> events) override;
  bool needs_reset() const override { return needs_reset_; }
  bool takes_totals() const override { return true; }
  base::Result<> store_totals(const Source& source, const scanner::ScanRecord& scan,
                              std::span<const DirectoryTotals> totals, bool are_all) override;

 private:
  struct Finish {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };

  base::Result<> connect();
  base::Result<> prepare();
  // Runs `work` on a connection; one that failed is not used again.
  base::Result<> run(const std::function<base::Result<>()>& work);
  base::Result<> lock(const Source& source, const Event& first);  // the source, in a transaction
  base::Result<> execute(const char* statements);
  base::Result<std::string> ask(const char* query);  // the first value
  base::Result<> copy(const char* statement, std::string_view rows);
  base::Result<> send(std::string_view rows, base::SteadyTime end);
  // Waits until the connection is readable or, if wanted, writable.
  base::Result<> wait(bool to_write, base::SteadyTime end);
  base::Result<> read_results(base::SteadyTime end, ExecStatusType wanted, std::string* value = nullptr);
  base::SteadyTime end() const { return clock_.steady_now() + options_.timeout; }
  base::Error failure(const std::string& why) const;

  const Options options_;
  const base::Clock& clock_;
  std::unique_ptr<PGconn, Finish> connection_;  // null: not connected
  bool needs_reset_ = false;
};

}  // namespace spoor::publish
