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

namespace SQLite {
class Database;
}

namespace spoor::scanner {

struct Consumer {
  std::string name;
  std::string feed_id;     // of the database that its scan is one of
  std::uint64_t scan = 0;  // whose changes it was the last to read
  base::WallTime committed_at{};
};

// A file of its own: a scan keeps the scan database to itself for as long as it takes. Every failure is
// Errc::database_failed or Errc::database_unusable.
//
// Not thread-safe; several processes may have it open.
class Consumers {
 public:
  static constexpr std::size_t name_bytes_max = 255;
  static constexpr std::size_t count_max = 1000;

  // Makes the file where there is none, and anew where it is damaged: then nobody has a position.
  static base::Result<Consumers> open(const std::filesystem::path& data_dir);

  Consumers(const Consumers&) = delete;
  Consumers& operator=(const Consumers&) = delete;
  Consumers(Consumers&&) noexcept;
  Consumers& operator=(Consumers&&) noexcept;
  ~Consumers();

  // Nothing where it never committed, or read another database than that of `feed_id`.
  base::Result<std::optional<std::uint64_t>> position(const std::string& name, const std::string& feed_id);

  // Durable when it returns. Fails with std::errc::invalid_argument for a name that can't be one, and where
  // there are too many.
  base::Result<> commit(const Consumer& consumer);

  // Whether there was one.
  base::Result<bool> forget(const std::string& name);

  // By name.
  base::Result<std::vector<Consumer>> list();

  // The first scan whose changes some consumer has still to read.
  base::Result<std::optional<std::uint64_t>> oldest_unread(const std::string& feed_id);

 private:
  static base::Result<Consumers> open_file(const std::filesystem::path& file);

  explicit Consumers(std::unique_ptr<SQLite::Database> database);

  std::unique_ptr<SQLite::Database> database_;
};

}  // namespace spoor::scanner
