#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "scanner/feed/publish_record.h"
#include "scanner/store/scan_record.h"
#include "scanner/usage/usage_limits.h"

namespace spoor::daemon {

// What is in node.data_dir, as last read: the scans, from their database, the record of spoor-publish, and
// the space that is left there.
struct ScanFigures {
  bool is_known = false;      // the database has been looked for
  bool has_database = false;  // false before the first scan
  bool ok = true;             // the database could be read
  std::optional<scanner::ScanRecord> last;
  std::vector<scanner::LimitState> limits;           // as it found them
  std::optional<scanner::PublishRecord> publish;     // none: it never ran, or its record cannot be read
  std::optional<std::filesystem::space_info> space;  // none: it is not known

  // Of scans that were committed after the database was read for the first time.
  std::uint64_t scans = 0;
  std::uint64_t audited = 0;
  std::uint64_t missed = 0;
  std::uint64_t errors = 0;
};

// Reads the last scans from the scanner's database, and what is beside it, on request. No caller waits
// long for a slow disk.
//
// Runs on the thread of `context`; reads on `pool`. All references must outlive it.
class ScanWatch {
 public:
  ScanWatch(boost::asio::io_context& context, boost::asio::thread_pool& pool, std::filesystem::path database,
            std::chrono::milliseconds patience = std::chrono::milliseconds(1'000));

  // Waits until the database has been read again, for so long at most: then the figures are the former ones,
  // and the reading continues.
  boost::asio::awaitable<void> refresh();

  const ScanFigures& figures() const { return figures_; }

 private:
  struct Loaded;

  boost::asio::awaitable<void> read();
  void take(const Loaded& loaded);
  void take_limits(const base::Result<std::vector<scanner::LimitState>>& limits);
  void count(const std::vector<scanner::ScanRecord>& scans);

  boost::asio::io_context& context_;
  boost::asio::thread_pool& pool_;
  const std::filesystem::path database_;
  const std::chrono::milliseconds patience_;
  boost::asio::steady_timer finished_;  // cancelled after each reading; expires after `patience_`
  bool reading_ = false;
  std::string limits_error_;  // these two as they were logged last
  std::string publish_error_;
  std::optional<std::uint64_t> counted_;  // the last scan that is in the sums, or precedes them
  ScanFigures figures_;
};

}  // namespace spoor::daemon
