#include "scanner/feed/consumers.h"

#include <fmt/core.h>

#include <utility>

#include "base/data_dir.h"
#include "scanner/database/checksum_vfs.h"
#include "scanner/database/database_files.h"
#include "scanner/database/sqlite.h"
#include "scanner/errors.h"

namespace spoor::scanner {
namespace {

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

// A row of `progress` belongs to the consumer of the same name, feed and scan: a Spoor that does not know the
// table moves the consumer, and the row no longer counts.
constexpr const char* tables = R"sql(
CREATE TABLE IF NOT EXISTS consumers(
  name TEXT PRIMARY KEY, feed_id TEXT NOT NULL, scan INTEGER NOT NULL, committed_at_ns INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS progress(
  name TEXT PRIMARY KEY, feed_id TEXT NOT NULL, scan INTEGER NOT NULL, until INTEGER NOT NULL,
  after BLOB, after_file BLOB NOT NULL, files INTEGER NOT NULL, start_over_id TEXT NOT NULL
) WITHOUT ROWID;
)sql";

void prepare(SqliteDatabase& database) {
  SqliteTransaction transaction(database, SqliteTransaction::Kind::writing);
  database.exec(tables);
  database.exec(fmt::format("PRAGMA application_id = {}", application_id));
  transaction.commit();
}

void write_progress(SqliteDatabase& database, const Consumer& consumer) {
  if (!consumer.progress) {
    SqliteStatement(database, "DELETE FROM progress WHERE name = ?", SqliteText{consumer.name}).run();
    return;
  }
  const ConsumerProgress& progress = *consumer.progress;
  SqliteStatement insert(database, "REPLACE INTO progress VALUES(?1, ?2, ?3, ?4, ?8, ?5, ?6, ?7)",
                         SqliteText{consumer.name}, SqliteText{consumer.feed_id}, consumer.scan,
                         progress.until, progress.after_file, progress.files,
                         SqliteText{progress.start_over_id});
  if (progress.after) insert.bind(8, *progress.after);
  insert.run();
}

}  // namespace

Consumers::Consumers(std::unique_ptr<SqliteDatabase> database) : database_(std::move(database)) {}

base::Result<Consumers> Consumers::open(const std::filesystem::path& data_dir) {
  const std::filesystem::path file = data_dir / base::data_dir::consumers;
  const auto noted = noted_damage(file);
  if (!noted) return noted.error();
  if (!*noted) {
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
  if (is_foreign(file, application_id)) return foreign_error();
  return guarded("open the consumer positions", file.native(), [&]() -> base::Result<Consumers> {
    auto database = std::make_unique<SqliteDatabase>(
        file.native(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, checksum_vfs());
    reserve_checksums(*database);
    // Also syncs the removal of the journal, which would else roll back the last commit after a power cut.
    database->exec("PRAGMA synchronous = EXTRA");
    const std::int64_t found = database->number("PRAGMA application_id");
    const bool is_empty = database->number("SELECT count(*) FROM sqlite_master") == 0;
    if (found != application_id && !is_empty) return foreign_error();
    if (is_empty || !database->has_table("progress")) prepare(*database);
    return Consumers(std::move(database));
  });
}

base::Result<std::optional<std::uint64_t>> Consumers::position(const std::string& name,
                                                               const std::string& feed_id) {
  const auto found = find(name);
  if (!found) return found.error();
  if (!*found || (*found)->feed_id != feed_id) return std::optional<std::uint64_t>();
  return std::optional((*found)->scan);
}

base::Result<std::optional<Consumer>> Consumers::find(const std::string& name) {
  return guarded("look up a consumer", *database_, [&]() -> std::optional<Consumer> {
    SqliteStatement query(
        *database_,
        "SELECT c.feed_id, c.scan, committed_at_ns, until, after, after_file, files, start_over_id "
        "FROM consumers AS c "
        "LEFT JOIN progress AS p ON p.name = c.name AND p.feed_id = c.feed_id AND p.scan = "
        "c.scan WHERE c.name = ?",
        SqliteText{name});
    if (!query.step()) return std::nullopt;
    Consumer found{name, std::string(query.blob(0)), query.number<std::uint64_t>(1),
                   base::WallTime(std::chrono::nanoseconds(query.number(2)))};
    if (query.is_null(3)) return found;
    found.progress = {query.number<std::uint64_t>(3), std::nullopt, std::string(query.blob(5)),
                      query.number(6) != 0, std::string(query.blob(7))};
    if (!query.is_null(4)) found.progress->after = std::string(query.blob(4));
    return found;
  });
}

base::Result<> Consumers::commit(const Consumer& consumer) { return write_surely(consumer, false); }

base::Result<> Consumers::move(const Consumer& consumer) { return write_surely(consumer, true); }

// The removal of SQLite's journal commits, and the sync that follows it may fail: then the position has moved
// although the write has failed, and a caller that repeats what it did would skip the changes. A position
// that is in the file counts as written: a power cut may undo it, and they are read again.
base::Result<> Consumers::write_surely(const Consumer& consumer, bool has_to_exist) {
  auto done = write(consumer, has_to_exist);
  if (done || done.error().code != Errc::database_failed) return done;
  // Not open_file(): what it closes beside SQLite drops the locks of other threads on the file.
  const auto found = guarded("look up a consumer", *database_, [&] {
    return Consumers(
               std::make_unique<SqliteDatabase>(database_->file(), SQLITE_OPEN_READWRITE, checksum_vfs()))
        .find(consumer.name);
  });
  return found && *found == consumer ? base::Result<>() : done;
}

base::Result<> Consumers::write(const Consumer& consumer, bool has_to_exist) {
  if (auto fine = check_name(consumer.name); !fine) return fine;
  return guarded("write a consumer position", *database_, [&]() -> base::Result<> {
    SqliteTransaction transaction(*database_, SqliteTransaction::Kind::writing);
    if (has_to_exist && !SqliteStatement(*database_, "SELECT 1 FROM consumers WHERE name = ?")
                             .finds_row(SqliteText{consumer.name})) {
      return base::Error(Errc::consumer_forgotten,
                         fmt::format("the consumer '{}' was forgotten meanwhile", consumer.name));
    }
    SqliteStatement(*database_, "REPLACE INTO consumers VALUES(?, ?, ?, ?)", SqliteText{consumer.name},
                    SqliteText{consumer.feed_id}, consumer.scan,
                    consumer.committed_at.time_since_epoch().count())
        .run();
    write_progress(*database_, consumer);
    const auto count = database_->number("SELECT count(*) FROM consumers");
    if (static_cast<std::size_t>(count) > count_max) {
      return base::Error(std::make_error_code(std::errc::invalid_argument),
                         fmt::format("there are {} consumers already; forget unused ones", count_max));
    }
    transaction.commit();
    return {};
  });
}

base::Result<bool> Consumers::forget(const std::string& name) {
  return guarded("forget a consumer", *database_, [&] {
    SqliteTransaction transaction(*database_, SqliteTransaction::Kind::writing);
    SqliteStatement(*database_, "DELETE FROM progress WHERE name = ?", SqliteText{name}).run();
    const bool was_there =
        SqliteStatement(*database_, "DELETE FROM consumers WHERE name = ?", SqliteText{name}).run() > 0;
    transaction.commit();
    return was_there;
  });
}

base::Result<std::vector<Consumer>> Consumers::list() {
  return guarded("list the consumers", *database_, [&] {
    return SqliteStatement(*database_,
                           "SELECT name, feed_id, scan, committed_at_ns FROM consumers ORDER BY name")
        .read_all([](const SqliteStatement& row) {
          return Consumer{std::string(row.blob(0)), std::string(row.blob(1)), row.number<std::uint64_t>(2),
                          base::WallTime(std::chrono::nanoseconds(row.number(3)))};
        });
  });
}

base::Result<std::optional<std::uint64_t>> Consumers::oldest_unread(const std::string& feed_id) {
  return guarded("list the consumers", *database_, [&]() -> std::optional<std::uint64_t> {
    SqliteStatement query(*database_, "SELECT min(scan) FROM consumers WHERE feed_id = ? GROUP BY feed_id",
                          SqliteText{feed_id});
    if (!query.step()) return std::nullopt;
    return query.number<std::uint64_t>(0) + 1;
  });
}

}  // namespace spoor::scanner
