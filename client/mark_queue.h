// Marks that wait for the daemon's acknowledgement: batches of them, sent again until it arrives.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "client/spool.h"
#include "peer/http/send_marks.h"

namespace spoor::client {

using Deadline = std::chrono::steady_clock::time_point;

// The numbers are those of client/spoor.h.
enum class Outcome {
  done = 0,
  spooled = 1,  // all is acknowledged or in the spool
  timed_out = -2,
  full = -3,
  refused = -4,  // some paths, by the daemon; all others are acknowledged, or in the spool
  denied = -5,   // the request
  spool_failed = -6
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
  // Larger bodies wait for each other in the daemon.
  std::uint64_t batch_bytes_max = std::uint64_t{256} << 10U;
  std::uint64_t held_bytes_max = std::uint64_t{8} << 20U;  // at least two batches
  Spool* spool = nullptr;                                  // must outlive the queue
};

// Thread-safe: one thread sends at a time, on behalf of all that wait. No thread of its own, and no
// destructor that sends. An exception of a call, of lacking memory, loses no mark that is held.
class MarkQueue {
 public:
  // Sends a batch once, and returns by the deadline. Called by one thread at a time.
  using Send = std::function<peer::MarkReply(const MarkBatch& batch, Deadline deadline)>;
  // Called without a lock for each path that the daemon refuses.
  using OnRefused = std::function<void(const std::string& problem)>;

  MarkQueue(QueueOptions options, Send send, OnRefused on_refused);

  // Holds a mark (done), or does not (full, denied, spool_failed). Sends the oldest batch if one is full.
  // `path` has no NUL and fits into a batch.
  Outcome add(MarkKind kind, std::string_view path, Deadline deadline);

  // Sends what is held and what is in the spool. done: all that was added before is acknowledged. timed_out,
  // denied, spool_failed: what is not acknowledged is still held, or in the spool. refused: since this thread
  // first marked a path after its last flush; other threads are told, too. With a deadline in the past it
  // sends nothing.
  Outcome flush(Deadline deadline);

  QueueFigures figures() const;

  // Why the last call did not succeed; of any thread.
  std::string problem() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  struct Held : MarkBatch {
    std::uint64_t number = 0;  // grows with each batch
  };

  bool is_settled(std::uint64_t number) const;
  Outcome progress(Lock& lock, Deadline deadline, bool& may_try_at_once);
  Outcome send_oldest(Lock& lock, Deadline deadline);
  Outcome deliver_spool(Lock& lock, Deadline deadline, bool& may_try_at_once);
  Outcome send(Lock& lock, MarkBatch& batch, Deadline deadline);
  Outcome spool_all();

  const QueueOptions options_;
  const Send send_;
  const OnRefused on_refused_;

  mutable std::mutex mutex_;  // also of the spool
  std::condition_variable changed_;
  std::deque<Held> batches_;      // the oldest first, which is the one that is sent
  std::uint64_t held_bytes_ = 0;  // of batches_
  std::uint64_t last_number_ = 0;
  bool is_sending_ = false;  // a thread uses send_
  // How many paths were refused before the first mark of a thread that it has not flushed.
  std::unordered_map<std::thread::id, std::uint64_t> refused_before_;
  std::uint64_t request_bytes_;  // less after a failure, more after a success
  std::chrono::milliseconds pause_{};
  Deadline retry_at_{};  // after a failure
  QueueFigures figures_;
  std::string problem_;
};

}  // namespace spoor::client
