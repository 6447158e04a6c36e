// Marks that wait for the daemon's acknowledgement: batches of them, sent again until it arrives.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "client/mark_batch.h"
#include "client/spool.h"
#include "peer/http/send_marks.h"

namespace spoor::client {

using Deadline = std::chrono::steady_clock::time_point;

enum class Outcome {
  done,
  spooled,  // all is acknowledged or in the spool
  timed_out,
  full,
  refused,  // some paths, by the daemon; all others are acknowledged
  denied,   // the request
  spool_failed
};

struct QueueFigures {
  std::uint64_t acknowledged = 0;  // paths
  std::uint64_t ignored = 0;       // of these
  std::uint64_t refused = 0;
  std::uint64_t held = 0;
  std::uint64_t spooled = 0;
  std::uint64_t cycle = 0;  // of the last response
};

struct QueueOptions {
  std::uint64_t batch_bytes_max = std::uint64_t{256} << 10U;
  std::uint64_t held_bytes_max = std::uint64_t{8} << 20U;  // at least two batches
  Spool* spool = nullptr;                                  // must outlive the queue
};

// Thread-safe: one thread sends at a time, on behalf of all that wait. No thread of its own, and no
// destructor that sends.
class MarkQueue {
 public:
  // Sends a batch once, and returns by the deadline. Called by one thread at a time.
  using Send = std::function<peer::MarkReply(const MarkBatch& batch, Deadline deadline)>;
  // Called without a lock for each path that the daemon refuses.
  using OnRefused = std::function<void(const std::string& problem)>;

  MarkQueue(QueueOptions options, Send send, OnRefused on_refused);

  // Holds a mark (done), or does not (full, spool_failed). Sends the oldest batch if one is full. `path` has
  // no NUL and fits into a batch.
  Outcome add(MarkKind kind, std::string_view path, Deadline deadline);

  // Sends what is held and what is in the spool. done: all that was added before is acknowledged.
  Outcome flush(Deadline deadline);

  QueueFigures figures() const;

  // Why the last call did not succeed; of any thread.
  std::string problem() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Counts = std::array<std::uint64_t, mark_kinds>;

  bool is_settled(const Counts& added) const;
  Outcome progress(Lock& lock, Deadline deadline);
  Outcome send_oldest(Lock& lock, Deadline deadline);
  Outcome send(MarkBatch& batch, Deadline deadline);
  Outcome spool_all(Outcome reason);
  Outcome deliver_spool(Lock& lock, Deadline deadline);
  template <class Call>
  void while_sending(Lock& lock, const Call& call, const std::function<void()>& settle);

  const QueueOptions options_;
  const Send send_;
  const OnRefused on_refused_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<MarkBatch> batches_;  // the oldest first; that one is being sent, if any
  std::uint64_t held_bytes_ = 0;   // of batches_ and of the one that is being sent
  Counts added_{};                 // by kind
  Counts settled_{};               // acknowledged, refused or spooled; in the order of adding, by kind
  bool is_sending_ = false;        // a thread uses send_ or the spool
  bool is_spool_empty_ = true;
  bool has_untold_refusals_ = false;
  std::chrono::milliseconds pause_{};
  Deadline retry_at_{};  // after a failure: not before
  QueueFigures figures_;
  std::string problem_;
};

}  // namespace spoor::client
