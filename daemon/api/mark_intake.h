// The one way of marks from any source (HTTP bodies, S3 events) to the tracker.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/system/result.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/api/mark_batch.h"
#include "daemon/durability/group_commit.h"
#include "daemon/http/http_message.h"
#include "daemon/membership/introduction.h"
#include "daemon/process/log_limit.h"
#include "daemon/status/status_json.h"
#include "tracker/cycles/tracker.h"
#include "tracker/paths/drive_paths.h"
#include "tracker/paths/namespace_rules.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

// Normalises the paths of a request, applies the namespace rules, marks, waits until the marks are as durable
// as configured, and counts them.
//
// Thread-safe. Marks are read and made on the calling thread, those of large requests on `large_bodies`,
// which must have one thread; waiting is done on the thread of `context`. All references must outlive it.
class MarkIntake {
 public:
  // Reads a request and adds its marks to the batch, which is empty. A problem refuses the whole request.
  using Source = std::function<std::optional<Problem>(MarkBatch&)>;

  // What was acknowledged.
  struct Receipt {
    std::uint64_t marked = 0;
    std::uint64_t ignored = 0;
    tracker::CycleId cycle;  // the current one when the last mark was made
  };
  using ReceiptOrProblem = boost::system::result<Receipt, Problem>;

  MarkIntake(boost::asio::io_context& context, boost::asio::thread_pool& large_bodies,
             tracker::Persistence& persistence, const tracker::NamespaceRules& rules,
             tracker::DrivePaths drive_paths, GroupCommit& group_commit, Introduction& introduction,
             const base::Clock& clock);

  // Marks what `source` reads from so many bytes, and returns once that is durable; counted for `identity`.
  // Fails with the source's problem, marking nothing; or with status 503 if the marks, though made, can't be
  // acknowledged.
  boost::asio::awaitable<ReceiptOrProblem> take(Source source, std::size_t bytes, std::string identity);

  // Counts a request that was refused before take().
  void count_rejected();

  MarkCounters counters() const;

 private:
  // What was marked of a request, and how much of it was ignored.
  struct Marked {
    tracker::MarkOutcome outcome;
    std::uint64_t ignored = 0;
  };
  using MarkedOrProblem = boost::system::result<Marked, Problem>;

  MarkedOrProblem mark(const Source& source);
  bool is_large(std::size_t bytes) const;
  bool is_confirmed(tracker::JournalPosition position) const;
  boost::asio::awaitable<std::optional<Problem>> confirm(tracker::JournalPosition position);
  void count_accepted(const Marked& marked, std::string identity);
  void note_unknown_events(const MarkBatch::Counts& counts);
  void note_invalid_keys(const MarkBatch::Counts& counts);
  std::unique_ptr<MarkBatch> take_batch();
  void return_batch(std::unique_ptr<MarkBatch> batch);

  boost::asio::io_context& context_;
  // Reads and marks what would delay the other requests of its thread. One thread: one such body at a time,
  // for the memory that it takes.
  boost::asio::thread_pool& large_bodies_;
  tracker::Persistence& persistence_;
  tracker::Tracker& tracker_;
  const tracker::NamespaceRules& rules_;
  const tracker::DrivePaths drive_paths_;
  GroupCommit& group_commit_;
  Introduction& introduction_;
  const base::Clock& clock_;

  mutable std::mutex mutex_;                              // of all below
  std::vector<std::unique_ptr<MarkBatch>> idle_batches_;  // as many as were used at once
  MarkCounters counters_;
  LogLimit invalid_keys_;
};

}  // namespace spoor::daemon
