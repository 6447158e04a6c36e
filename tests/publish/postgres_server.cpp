#include "tests/publish/postgres_server.h"

#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <utility>

#include "tests/watch/eventually.h"

namespace spoor::publish {
namespace {

namespace fs = std::filesystem;

const std::string programs = "/usr/lib/postgresql/15/bin/";

// The parent death signal does not survive the change of the user: it is set after it.
std::vector<std::string> as_postgres(std::vector<std::string> command) {
  std::vector<std::string> words;
  if (::geteuid() == 0)
    words = {"setpriv",  "--reuid",        "postgres",    "--regid",
             "postgres", "--clear-groups", "--pdeathsig", "KILL"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

void run(const std::vector<std::string>& command) {
  const auto result = support::run_command(command);
  if (result.code != 0) throw std::runtime_error(command.back() + ": " + result.err);
}

}  // namespace

PostgresServer::PostgresServer(const std::string& encoding) {
  fs::permissions(directory_.path(), fs::perms(0755));
  fs::create_directory(directory_ / "own");
  if (::geteuid() == 0) run({"chown", "postgres:postgres", (directory_ / "own").native()});
  run(as_postgres({programs + "initdb", "--pgdata", (directory_ / "own" / "data").native(), "--username",
                   "postgres", "--auth", "trust", "--encoding", encoding, "--locale", "C", "--no-sync",
                   "--wal-segsize", "1"}));
  start();
}

// Without fsync, as processes are killed, and not the machine: recovery would sync every file of the
// database. A process of the killed server may still have its memory for a moment: then the new one ends at
// once.
void PostgresServer::start() {
  if (!watch::eventually([&] { return try_start(); }))
    throw std::runtime_error("PostgreSQL does not start: " + daemon_->log());
}

bool PostgresServer::try_start() {
  daemon_ = std::make_unique<support::Daemon>(
      as_postgres({programs + "postgres", "-D", (directory_ / "own" / "data").native(), "-k",
                   (directory_ / "own").native(), "-c", "listen_addresses=", "-c", "fsync=off"}));
  daemon_->wait_for("ready to accept");
  return daemon_->log().find("ready to accept") != std::string::npos;
}

nlohmann::json PostgresServer::sink() const {
  return {{"url", "postgresql:///postgres?host=" + (directory_ / "own").native()}, {"user", "postgres"}};
}

std::unique_ptr<PGconn, PostgresServer::Finish> PostgresServer::connect() const {
  const std::string url = sink()["url"].get<std::string>() + "&user=postgres";
  return std::unique_ptr<PGconn, Finish>(PQconnectdb(url.c_str()));
}

std::vector<std::vector<std::string>> PostgresServer::query(const std::string& statement) const {
  const auto connection = connect();
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection.get(), statement.c_str()),
                                                             PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
    throw std::runtime_error(PQerrorMessage(connection.get()));
  std::vector<std::vector<std::string>> rows(static_cast<std::size_t>(PQntuples(result.get())));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (int column = 0; column < PQnfields(result.get()); ++column)
      rows[row].emplace_back(PQgetvalue(result.get(), static_cast<int>(row), column));
  }
  return rows;
}

std::vector<Event> PostgresServer::events() {
  std::vector<Event> events;
  const auto rows = query(
      "SELECT id, change, coalesce(kind, ''), scan, encode(coalesce(path_bytes, convert_to(path, 'UTF8')), "
      "'hex') FROM spoor.changes ORDER BY position");
  for (const auto& row : rows) {
    Event event{
        .kind = kind_of(row[1]), .is_file = row[2] == "file", .scan = std::stoull(row[3]), .id = row[0]};
    for (std::size_t at = 0; at < row[4].size(); at += 2)
      event.path += static_cast<char>(std::stoi(row[4].substr(at, 2), nullptr, 16));
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace spoor::publish
