#include "scanner/feed/consumers.h"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/core.h>

#include <utility>

#include "scanner/errors.h"
#include "scanner/store/checksum_vfs.h"
#include "scanner/store/database_files.h"
#include "scanner/store/sqlite_guard.h"

namespace spoor::scanner {
namespace {

constexpr int busy_timeout_ms = 10'000;
constexpr std::uint32_t application_id = 0x53504F43;  // "SPOC"

base::Error bad_name(std::string_view why) {
  return {std::make_error_code(std::errc::invalid_argument),
          fmt::format("a consumer's name has 1 to {} printable characters; this one {}",
                      Consumers::name_bytes_max, why)};
}

base::Result<> check_name(const std::string& name) {
  if (name.empty()) return bad_name("is empty");
  if (name.size() > Consumers::name_bytes_max) return bad_name("is longer");
  for (const char each : name) {
    if (each < ' ' || each > '~') return bad_name("contains others");
  }
  return {};
}

void prepare(SQLite::Database& database) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  database.exec(
      "CREATE TABLE IF NOT EXISTS consumers(name TEXT PRIMARY KEY, feed_id TEXT NOT NULL, scan INTEGER NOT "
      "NULL, "
      "committed_at_ns INTEGER NOT NULL) WITHOUT ROWID");
  database.exec(fmt::format("PRAGMA application_id = {}", application_id));
  transaction.commit();
}

}  // namespace

Consumers::Consumers(std::unique_ptr<SQLite::Database> database) : database_(std::move(database)) {}
Consumers::Consumers(Consumers&&) noexcept = default;
Consumers& Consumers::operator=(Consumers&&) noexcept = default;
Consumers::~Consumers() = default;

base::Result<Consumers> Consumers::open(const std::filesystem::path& data_dir) {
  const std::filesystem::path file = data_dir / "consumers.db";
  if (!noted_damage(file)) {
    auto opened = open_file(file);
    if (opened || opened.error().code != Errc::database_damaged) return opened;
  }
  // A consumer without a position reads everything, and continues from there.
  if (auto moved = set_aside(file); !moved) return moved.error();
  return open_file(file);
}

base::Result<Consumers> Consumers::open_file(const std::filesystem::path& file) {
  const auto foreign_error = [&] {
    return base::Error(Errc::database_unusable,
                       fmt::format("{} is not a consumer database of Spoor; move it aside", file.native()));
  };
  if (kind_of(file, application_id) == FileKind::foreign) return foreign_error();
  return guarded("open the consumer positions", file.native(), [&]() -> base::Result<Consumers> {
    auto database = std::make_unique<SQLite::Database>(
        file.native(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, busy_timeout_ms, checksum_vfs());
    reserve_checksums(*database);
    const std::uint32_t found = database->execAndGet("PRAGMA application_id").getUInt();
    const bool is_empty = database->execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
    if (found != application_id && !is_empty) return foreign_error();
    if (is_empty) prepare(*database);
    return Consumers(std::move(database));
  });
}

base::Result<std::optional<std::uint64_t>> Consumers::position(const std::string& name,
                                                               const std::string& feed_id) {
  return guarded("look up a consumer", database_->getFilename(), [&]() -> std::optional<std::uint64_t> {
    SQLite::Statement query(*database_, "SELECT scan FROM consumers WHERE name = ? AND feed_id = ?");
    query.bind(1, name);
    query.bind(2, feed_id);
    if (!query.executeStep()) return std::nullopt;
    return static_cast<std::uint64_t>(query.getColumn(0).getInt64());
  });
}

base::Result<> Consumers::commit(const Consumer& consumer) {
  if (auto fine = check_name(consumer.name); !fine) return fine;
  return guarded("write a consumer position", database_->getFilename(), [&]() -> base::Result<> {
    SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement put(*database_, "REPLACE INTO consumers VALUES(?, ?, ?, ?)");
    put.bind(1, consumer.name);
    put.bind(2, consumer.feed_id);
    put.bind(3, static_cast<std::int64_t>(consumer.scan));
    put.bind(4, consumer.committed_at.time_since_epoch().count());
    put.exec();
    const auto count = database_->execAndGet("SELECT count(*) FROM consumers").getInt64();
    if (static_cast<std::size_t>(count) > count_max) {
      return base::Error(std::make_error_code(std::errc::invalid_argument),
                         fmt::format("there are {} consumers already; forget unused ones", count_max));
    }
    transaction.commit();
    return {};
  });
}

base::Result<bool> Consumers::forget(const std::string& name) {
  return guarded("forget a consumer", database_->getFilename(), [&] {
    SQLite::Statement erase(*database_, "DELETE FROM consumers WHERE name = ?");
    erase.bind(1, name);
    return erase.exec() > 0;
  });
}

base::Result<std::vector<Consumer>> Consumers::list() {
  return guarded("list the consumers", database_->getFilename(), [&] {
    SQLite::Statement query(*database_,
                            "SELECT name, feed_id, scan, committed_at_ns FROM consumers ORDER BY name");
    std::vector<Consumer> all;
    while (query.executeStep()) {
      all.push_back({query.getColumn(0).getString(), query.getColumn(1).getString(),
                     static_cast<std::uint64_t>(query.getColumn(2).getInt64()),
                     base::WallTime(std::chrono::nanoseconds(query.getColumn(3).getInt64()))});
    }
    return all;
  });
}

base::Result<std::optional<std::uint64_t>> Consumers::oldest_unread(const std::string& feed_id) {
  return guarded("list the consumers", database_->getFilename(), [&]() -> std::optional<std::uint64_t> {
    SQLite::Statement query(*database_, "SELECT min(scan) FROM consumers WHERE feed_id = ?");
    query.bind(1, feed_id);
    if (!query.executeStep() || query.getColumn(0).isNull()) return std::nullopt;
    return static_cast<std::uint64_t>(query.getColumn(0).getInt64()) + 1;
  });
}

}  // namespace spoor::scanner
