// consumers.db: up to which scan each named consumer has read the change feed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/database/sqlite.h"

namespace spoor::scanner {

// How far a consumer has read what follows its scan: for consumers that read a range in parts.
struct ConsumerProgress {
  std::uint64_t until = 0;             // the last scan of the range
  std::optional<std::string> after{};  // FeedRange::after
  std::string after_file{};            // FeedRange::after_file
  bool files = false;                  // FeedRange::files, of what it has read last
  std::string start_over_id{};         // not empty: it reads everything; random, another one each time

  friend bool operator==(const ConsumerProgress&, const ConsumerProgress&) = default;
};

struct Consumer {
  std::string name;
  std::string feed_id;     // of the database to which `scan` belongs
  std::uint64_t scan = 0;  // the last one whose changes it has read
  base::WallTime committed_at{};
  std::optional<ConsumerProgress> progress = {};

  friend bool operator==(const Consumer&, const Consumer&) = default;
};

// A separate file, because a scan locks the scan database for writing until its end. Failures are
// Errc::database_failed, database_unusable or database_damaged, unless noted otherwise.
//
// Not thread-safe; several processes may have it open.
class Consumers {
 public:
  static constexpr std::size_t name_bytes_max = 255;
  static constexpr std::size_t count_max = 1000;

  // Creates the file if there is none. Replaces a damaged one: then no consumer has a position.
  static base::Result<Consumers> open(const std::filesystem::path& data_dir);

  // Nothing if it never committed, or committed for another database than `feed_id`.
  base::Result<std::optional<std::uint64_t>> position(const std::string& name, const std::string& feed_id);

  // The consumer with its progress; nothing if it never committed. list() leaves the progress out.
  base::Result<std::optional<Consumer>> find(const std::string& name);

  // Durable when it returns; ends the progress if there is none in `consumer`. Fails with
  // std::errc::invalid_argument for an invalid name, and for more than `count_max` consumers.
  base::Result<> commit(const Consumer& consumer);

  // commit() for one that has a position. Fails with Errc::consumer_forgotten if it has none: a forget()
  // while its changes were read is not undone.
  base::Result<> move(const Consumer& consumer);

  // Removes the consumer and its progress. Returns whether it existed.
  base::Result<bool> forget(const std::string& name);

  // By name.
  base::Result<std::vector<Consumer>> list();

  // The oldest scan whose changes a consumer has still to read; nothing without consumers of this database.
  base::Result<std::optional<std::uint64_t>> oldest_unread(const std::string& feed_id);

 private:
  static base::Result<Consumers> open_file(const std::filesystem::path& file);

  explicit Consumers(std::unique_ptr<SqliteDatabase> database);
  base::Result<> write(const Consumer& consumer, bool has_to_exist);
  base::Result<> write_surely(const Consumer& consumer, bool has_to_exist);

  std::unique_ptr<SqliteDatabase> database_;
};

}  // namespace spoor::scanner
