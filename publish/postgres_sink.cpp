#include <fmt/core.h>
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "publish/sink.h"

namespace spoor::publish {
namespace {

constexpr std::size_t message_bytes_max = 500;
constexpr std::size_t key_bytes_max = 2'000;
constexpr std::chrono::seconds timeout{30};  // of connecting, and of each statement
// The name in the certificate is checked, too.
const std::string verify_full = "verify-full";

// What a database of each version lacks of the next one. The lock makes several nodes take turns.
constexpr std::array migrations = {R"sql(
CREATE TABLE spoor.changes(
  position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  published_at timestamptz NOT NULL DEFAULT now(),
  cluster text NOT NULL, node text NOT NULL, feed text NOT NULL, scan bigint NOT NULL,
  change text NOT NULL, kind text, path text, path_bytes bytea
);
CREATE INDEX ON spoor.changes(node, scan);
CREATE TABLE spoor.sources(
  cluster text NOT NULL, node text NOT NULL, reset_at timestamptz NOT NULL,
  PRIMARY KEY(cluster, node)
);
CREATE TABLE spoor.scans(
  id text PRIMARY KEY,
  cluster text NOT NULL, node text NOT NULL, feed text NOT NULL, scan bigint NOT NULL, totals jsonb NOT NULL
);
CREATE TABLE spoor.usage(
  cluster text NOT NULL, node text NOT NULL, path text NOT NULL,
  at timestamptz NOT NULL, feed text NOT NULL, scan bigint NOT NULL,
  files numeric NOT NULL, dirs numeric NOT NULL, bytes numeric NOT NULL, allocated numeric NOT NULL,
  complete boolean NOT NULL,
  PRIMARY KEY(cluster, node, path, at, scan)
);
CREATE TABLE spoor.usage_now(
  cluster text NOT NULL, node text NOT NULL, path text NOT NULL,
  files numeric NOT NULL, dirs numeric NOT NULL, bytes numeric NOT NULL, allocated numeric NOT NULL,
  complete boolean NOT NULL,
  PRIMARY KEY(cluster, node, path)
);
)sql"};

constexpr const char* temporary_tables = R"sql(
CREATE TEMPORARY TABLE incoming(
  place bigint GENERATED ALWAYS AS IDENTITY, id text, cluster text, node text, feed text, scan bigint, change text, kind text, path text, path_bytes bytea,
  totals jsonb
) ON COMMIT DELETE ROWS;
CREATE TEMPORARY TABLE measured(
  cluster text, node text, path text, at timestamptz, feed text, scan bigint,
  files numeric, dirs numeric, bytes numeric, allocated numeric, complete boolean, are_all boolean
) ON COMMIT DELETE ROWS;
)sql";

constexpr const char* server_timeouts =
    "SET idle_in_transaction_session_timeout = '20s'; SET lock_timeout = '20s'; SET statement_timeout = "
    "'30s'";

constexpr const char* copy_incoming =
    "COPY incoming(id, cluster, node, feed, scan, change, kind, path, path_bytes, totals) FROM STDIN";
// The lock makes the positions visible in their order: a reader that continues after the last one misses
// none.
constexpr const char* store_incoming = R"sql(
SELECT pg_advisory_xact_lock(7420742074207421);
INSERT INTO spoor.changes(id, cluster, node, feed, scan, change, kind, path, path_bytes)
  SELECT id, cluster, node, feed, scan, change, kind, path, path_bytes FROM incoming WHERE totals IS NULL ORDER BY place
  ON CONFLICT DO NOTHING;
INSERT INTO spoor.scans SELECT id, cluster, node, feed, scan, totals FROM incoming WHERE totals IS NOT NULL
  ON CONFLICT DO NOTHING;
COMMIT)sql";

// A row for each directory whose totals are others than before; zeros for those that are gone.
constexpr const char* store_measured = R"sql(
INSERT INTO spoor.usage
  SELECT m.cluster, m.node, m.path, m.at, m.feed, m.scan, m.files, m.dirs, m.bytes, m.allocated, m.complete
    FROM measured AS m LEFT JOIN spoor.usage_now AS n USING (cluster, node, path)
    WHERE (m.files, m.dirs, m.bytes, m.allocated, m.complete) IS DISTINCT FROM
          (n.files, n.dirs, n.bytes, n.allocated, n.complete)
  ON CONFLICT DO NOTHING;
WITH gone AS (
  DELETE FROM spoor.usage_now AS n USING (SELECT DISTINCT cluster, node FROM measured WHERE are_all) AS a
    WHERE n.cluster = a.cluster AND n.node = a.node AND n.path NOT IN (SELECT path FROM measured)
    RETURNING n.cluster, n.node, n.path
)
INSERT INTO spoor.usage
  SELECT g.cluster, g.node, g.path, a.at, a.feed, a.scan, 0, 0, 0, 0, true
    FROM gone AS g, (SELECT * FROM measured LIMIT 1) AS a
  ON CONFLICT DO NOTHING;
INSERT INTO spoor.usage_now
  SELECT cluster, node, path, files, dirs, bytes, allocated, complete FROM measured
  ON CONFLICT (cluster, node, path) DO UPDATE SET files = excluded.files, dirs = excluded.dirs,
    bytes = excluded.bytes, allocated = excluded.allocated, complete = excluded.complete;
COMMIT)sql";

// A row in the text format of COPY (https://www.postgresql.org/docs/15/sql-copy.html).
void add_row(std::string& rows, std::initializer_list<std::optional<std::string_view>> columns) {
  for (const auto& column : columns) {
    for (const char each : column.value_or("")) {
      const std::size_t at = std::string_view("\\\n\r\t").find(each);
      if (at != std::string_view::npos) rows += '\\';
      rows += at == std::string_view::npos ? each : "\\nrt"[at];
    }
    rows += column ? "\t" : "\\N\t";
  }
  rows.back() = '\n';
}

// A text of a database has no other bytes than UTF-8: they are escaped, and the path is stored as bytes, too.
std::string text_of(const std::string& path) {
  return base::is_utf8(path) ? path : base::printable(path, 4 * path.size());
}

std::optional<std::string> bytes_of(const std::string& path) {
  if (base::is_utf8(path)) return std::nullopt;
  std::string hex = "\\x";
  for (const char each : path) hex += fmt::format("{:02x}", static_cast<unsigned char>(each));
  return hex;
}

// The path in a row of totals, where it is a part of a key: a row of an index has at most 2,704 bytes, and
// two paths that become one would be refused. A path has no "//", so none can be the same as what is made of
// another one.
std::string key_of(const std::string& path) {
  if (path.size() <= key_bytes_max && base::is_utf8(path)) return path;
  return fmt::format("{}//{}", base::printable(path, key_bytes_max / 2), digest(path));
}

void add_event(std::string& rows, const Source& source, const Event& event) {
  const bool is_scan = event.kind == Event::Kind::scan;
  const bool has_path = !is_scan && event.kind != Event::Kind::reset;
  const auto if_path = [&](std::string_view text) { return has_path ? std::optional(text) : std::nullopt; };
  const std::string totals = '{' + (event.totals.empty() ? "" : event.totals.substr(1)) + '}';
  add_row(rows, {event.id, source.cluster, source.node, source.feed, std::to_string(event.scan),
                 name_of(event.kind), if_path(event.is_file ? "file" : "dir"), if_path(text_of(event.path)),
                 bytes_of(event.path), is_scan ? std::optional<std::string_view>(totals) : std::nullopt});
}

class PostgresSink final : public Sink {
 public:
  PostgresSink(SinkTarget target, const base::Clock& clock) : target_(std::move(target)), clock_(clock) {}

  base::Result<std::size_t> publish(const Source& source, std::span<const Event> events) override {
    std::string rows;
    for (const Event& event : events) add_event(rows, source, event);
    needs_reset_ = false;
    auto stored = run([&]() -> base::Result<> {
      if (auto begun = execute("BEGIN"); !begun) return begun;
      // Before the lock: no timeout of the server ends a COPY whose rest does not arrive.
      if (auto copied = copy(copy_incoming, rows); !copied) return copied;
      if (auto locked = lock(source, events.front()); !locked) return locked;
      return execute(store_incoming);
    });
    if (!stored) return stored.error();
    return events.size();
  }

  bool needs_reset() const override { return needs_reset_; }
  bool takes_totals() const override { return true; }

  base::Result<> store_totals(const Source& source, const scanner::ScanRecord& scan,
                              std::span<const DirectoryTotals> totals, bool are_all) override {
    std::string rows;
    for (const DirectoryTotals& each : totals)
      add_row(rows, {source.cluster, source.node, key_of(each.path), base::iso_time(scan.started_at),
                     source.feed, std::to_string(scan.id), std::to_string(each.files),
                     std::to_string(each.dirs), std::to_string(each.bytes), std::to_string(each.allocated),
                     each.complete ? "t" : "f", are_all ? "t" : "f"});
    return run([&]() -> base::Result<> {
      if (auto begun = execute("BEGIN"); !begun) return begun;
      if (auto copied = copy("COPY measured FROM STDIN", rows); !copied) return copied;
      return execute(store_measured);
    });
  }

 private:
  struct Finish {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };

  base::Result<> connect() {
    const base::SteadyTime limit = end();
    // Of several servers, the one that is no standby.
    std::vector<const char*> names = {"target_session_attrs", "dbname", "application_name",
                                      "client_encoding"};
    std::vector<const char*> values = {"read-write", target_.settings.url.c_str(), "spoor-publish", "UTF8"};
    const auto add = [&](const char* name, const std::string& value) {
      if (value.empty()) return;
      names.push_back(name);
      values.push_back(value.c_str());
    };
    add("user", target_.settings.user);
    add("password", target_.secrets.secret);
    if (const auto& tls = target_.secrets.tls) {
      add("sslmode", verify_full);
      add("sslrootcert", tls->ca.native());
      add("sslcert", tls->certificate.native());
      add("sslkey", tls->key.native());
    }
    names.push_back(nullptr);
    values.push_back(nullptr);
    connection_.reset(PQconnectStartParams(names.data(), values.data(), 1));
    if (!connection_) return failure("out of memory");
    for (PostgresPollingStatusType next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;) {
      if (PQstatus(connection_.get()) == CONNECTION_BAD || next == PGRES_POLLING_FAILED) return failure();
      if (auto ready = wait(next == PGRES_POLLING_WRITING, limit); !ready) return ready;
      next = PQconnectPoll(connection_.get());
    }
    if (PQsetnonblocking(connection_.get(), 1) != 0) return failure();
    PQsetNoticeProcessor(connection_.get(), [](void*, const char*) {}, nullptr);
    return prepare();
  }

  base::Result<> prepare() {
    const auto encoding = ask("SHOW server_encoding");
    if (!encoding) return encoding.error();
    if (*encoding != "UTF8")
      return failure(
          fmt::format("the database has the encoding {}: create one with ENCODING 'UTF8'", *encoding));
    // An acknowledgement means that it is stored.
    const auto safe =
        ask("SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' "
            "THEN 'on' ELSE current_setting('synchronous_commit') END, false)");
    if (!safe) return safe.error();
    // What was given up here must not go on there, with its locks, while the next attempt waits for these.
    if (auto set = execute(server_timeouts); !set) return set;
    // The lock ends with the transaction.
    if (auto begun = execute("BEGIN; SELECT pg_advisory_xact_lock(7420742074207420)"); !begun) return begun;
    const auto exists = ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'spoor'");
    if (!exists) return exists.error();
    if (*exists == "0") {
      const char* const create =
          "CREATE SCHEMA spoor; CREATE TABLE spoor.version(version integer NOT NULL); INSERT INTO "
          "spoor.version VALUES(0)";
      if (auto created = execute(create); !created) return created;
    }
    const auto found = ask("SELECT version FROM spoor.version");
    if (!found) return found.error();
    const auto known = migrations.size();
    std::size_t version = std::strtoul(found->c_str(), nullptr, 10);
    if (version > known)
      return failure(
          fmt::format("the schema spoor has version {}, this program knows {}: upgrade it", version, known));
    for (; version < known; ++version) {
      if (auto migrated = execute(migrations.at(version)); !migrated) return migrated;
      if (auto noted = execute("UPDATE spoor.version SET version = version + 1"); !noted) return noted;
    }
    if (auto done = execute("COMMIT"); !done) return done;
    return execute(temporary_tables);
  }

  // Runs `work` on a connection; one that failed is not used again.
  base::Result<> run(const std::function<base::Result<>()>& work) {
    base::Result<> done;
    if (!connection_) done = connect();
    if (done) done = work();
    if (!done) connection_.reset();
    return done;
  }

  // the source, in a transaction
  // The row of the source is locked: an attempt that was given up, whose last statements may still arrive,
  // ends before a later one stores anything.
  base::Result<> lock(const Source& source, const Event& first) {
    // Names of clusters and nodes need no escape (config/check.cpp).
    if (first.kind == Event::Kind::reset) {
      return execute(
          fmt::format("INSERT INTO spoor.sources VALUES('{}', '{}', now()) ON CONFLICT (cluster, node) "
                      "DO UPDATE SET reset_at = excluded.reset_at",
                      source.cluster, source.node));
    }
    const auto found =
        ask(fmt::format("SELECT node FROM spoor.sources WHERE cluster = '{}' AND node = '{}' FOR UPDATE",
                        source.cluster, source.node));
    if (!found) return found.error();
    if (!found->empty()) return {};
    needs_reset_ = true;
    return failure(fmt::format("it has no changes of the node {}: all of it is published anew", source.node));
  }

  base::Result<> execute(const std::string& statements) {
    const auto value = ask(statements);
    return value ? base::Result<>() : value.error();
  }

  // the first value
  base::Result<std::string> ask(const std::string& query) {
    if (PQsendQuery(connection_.get(), query.c_str()) == 0) return failure();
    std::string value;
    if (auto read = read_results(end(), PGRES_COMMAND_OK, &value); !read) return read.error();
    return value;
  }

  base::Result<> copy(const char* statement, std::string_view rows) {
    const base::SteadyTime limit = end();
    if (PQsendQuery(connection_.get(), statement) == 0) return failure();
    if (auto begun = read_results(limit, PGRES_COPY_IN); !begun) return begun;
    if (auto sent = send(rows, limit); !sent) return sent;
    return read_results(limit, PGRES_COMMAND_OK);
  }

  base::Result<> send(std::string_view rows, base::SteadyTime end) {
    constexpr std::size_t piece_bytes = std::size_t{64} << 10U;
    bool is_ended = false;
    while (!is_ended) {
      const std::string_view piece = rows.substr(0, piece_bytes);
      const int sent = piece.empty()
                           ? PQputCopyEnd(connection_.get(), nullptr)
                           : PQputCopyData(connection_.get(), piece.data(), static_cast<int>(piece.size()));
      if (sent < 0) return failure();
      if (sent > 0) {
        is_ended = piece.empty();
        rows.remove_prefix(piece.size());
      } else if (auto ready = wait(true, end); !ready) {
        return ready;
      }
    }
    return {};
  }

  // Waits until the connection is readable or, if wanted, writable.
  base::Result<> wait(bool to_write, base::SteadyTime end) {
    pollfd poll{PQsocket(connection_.get()), static_cast<short>(to_write ? POLLIN | POLLOUT : POLLIN), 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock_.steady_now());
    const int ready = left.count() <= 0 ? 0 : ::poll(&poll, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return base::system_error(errno, "cannot wait for PostgreSQL");
    if (ready == 0) return failure("no response in time");
    // What arrives while one waits to write makes room at the other end.
    if ((poll.revents & POLLIN) != 0 && PQstatus(connection_.get()) == CONNECTION_OK &&
        PQconsumeInput(connection_.get()) == 0)
      return failure();
    return {};
  }

  base::Result<> read_results(base::SteadyTime end, ExecStatusType wanted, std::string* value = nullptr) {
    for (;;) {
      for (int left = 1; left != 0;) {
        left = PQflush(connection_.get());
        if (left < 0) return failure();
        if (left == 0 && PQisBusy(connection_.get()) == 0) break;
        if (auto ready = wait(left > 0, end); !ready) return ready;
        left = 1;
      }
      const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQgetResult(connection_.get()), PQclear);
      if (!result) return {};
      const ExecStatusType status = PQresultStatus(result.get());
      if (status == wanted && wanted == PGRES_COPY_IN) return {};
      if (status == PGRES_TUPLES_OK && value != nullptr && PQntuples(result.get()) > 0)
        *value = PQgetvalue(result.get(), 0, 0);
      if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        return failure(PQresultErrorMessage(result.get()));
    }
  }

  base::SteadyTime end() const { return clock_.steady_now() + timeout; }

  base::Error failure(const std::string& why) const {
    std::string text = why;
    while (text.ends_with('\n')) text.pop_back();
    return {std::make_error_code(std::errc::io_error),
            fmt::format("PostgreSQL at {}: {}", base::printable(target_.settings.url),
                        base::printable(text, message_bytes_max))};
  }

  base::Error failure() const { return failure(PQerrorMessage(connection_.get())); }  // of the connection

  const SinkTarget target_;
  const base::Clock& clock_;
  std::unique_ptr<PGconn, Finish> connection_;  // null: not connected
  bool needs_reset_ = false;
};

}  // namespace

std::unique_ptr<Sink> make_postgres_sink(SinkTarget target, const base::Clock& clock) {
  return std::make_unique<PostgresSink>(std::move(target), clock);
}

}  // namespace spoor::publish
