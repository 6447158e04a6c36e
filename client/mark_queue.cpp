#include "client/mark_queue.h"

#include <algorithm>
#include <utility>

namespace spoor::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds first_pause{10};
constexpr milliseconds pause_max{1'000};

std::size_t index(MarkKind kind) { return static_cast<std::size_t>(kind); }

}  // namespace

MarkQueue::MarkQueue(QueueOptions options, Send send, OnRefused on_refused)
    : options_(options),
      send_(std::move(send)),
      on_refused_(std::move(on_refused)),
      is_spool_empty_(options.spool == nullptr || options.spool->is_empty()) {}

Outcome MarkQueue::add(MarkKind kind, std::string_view path, Deadline deadline) {
  const std::uint64_t bytes = path.size() + 1;
  Lock lock(mutex_);
  while (held_bytes_ + bytes > options_.held_bytes_max) {
    Outcome outcome = progress(lock, deadline);
    if (outcome == Outcome::done) continue;
    outcome = spool_all(outcome);
    if (outcome == Outcome::spool_failed) return outcome;
    if (outcome != Outcome::spooled) return Outcome::full;
  }
  const auto end =
      batches_.rend() - (is_sending_ && !batches_.empty() ? 1 : 0);  // not that which is being sent
  const auto newest =
      std::find_if(batches_.rbegin(), end, [&](const MarkBatch& batch) { return batch.kind == kind; });
  const bool has_room = newest != end && newest->paths.size() + bytes <= options_.batch_bytes_max;
  MarkBatch& batch = has_room ? *newest : batches_.emplace_back(MarkBatch{.kind = kind});
  batch.paths.append(path);
  batch.paths.push_back('\0');
  ++batch.count;
  held_bytes_ += bytes;
  ++added_[index(kind)];
  if (is_sending_ || held_bytes_ < options_.batch_bytes_max) return Outcome::done;
  const auto now = steady_clock::now();
  if (now < deadline && now >= retry_at_) send_oldest(lock, deadline);  // if it fails, flush() reports it
  return Outcome::done;
}

Outcome MarkQueue::flush(Deadline deadline) {
  Lock lock(mutex_);
  const Counts added = added_;
  Outcome outcome = Outcome::done;
  while (outcome == Outcome::done && !is_settled(added)) outcome = progress(lock, deadline);
  while (outcome == Outcome::done && !is_spool_empty_) outcome = deliver_spool(lock, deadline);
  if (outcome == Outcome::timed_out || outcome == Outcome::denied) outcome = spool_all(outcome);
  if (outcome != Outcome::done || !has_untold_refusals_) return outcome;
  has_untold_refusals_ = false;
  return Outcome::refused;
}

QueueFigures MarkQueue::figures() const {
  const Lock lock(mutex_);
  QueueFigures figures = figures_;
  for (std::size_t kind = 0; kind < mark_kinds; ++kind) figures.held += added_[kind] - settled_[kind];
  return figures;
}

std::string MarkQueue::problem() const {
  const Lock lock(mutex_);
  return problem_;
}

bool MarkQueue::is_settled(const Counts& added) const {
  return std::ranges::equal(added, settled_, [](auto wanted, auto settled) { return settled >= wanted; });
}

// Sends the oldest batch, or waits for what another thread sends or for the time of the next attempt. done:
// there may be progress. The lock is released meanwhile.
Outcome MarkQueue::progress(Lock& lock, Deadline deadline) {
  if (steady_clock::now() >= deadline) return Outcome::timed_out;
  if (is_sending_) {
    changed_.wait_until(lock, deadline);
  } else if (steady_clock::now() < retry_at_) {
    changed_.wait_until(lock, std::min(deadline, retry_at_));
  } else if (!batches_.empty()) {
    const Outcome outcome = send_oldest(lock, deadline);
    if (outcome == Outcome::denied) return outcome;
  }
  return Outcome::done;
}

// Without the lock. An exception leaves all that is not settled where it is.
template <class Call>
void MarkQueue::while_sending(Lock& lock, const Call& call, const std::function<void()>& settle) {
  const auto end = [&] {
    lock.lock();
    is_sending_ = false;
    settle();
    changed_.notify_all();
  };
  is_sending_ = true;
  lock.unlock();
  try {
    call();
  } catch (...) {
    end();
    throw;
  }
  end();
}

Outcome MarkQueue::send_oldest(Lock& lock, Deadline deadline) {
  MarkBatch& batch = batches_.front();  // stays: others only add behind it
  const std::uint64_t bytes = batch.paths.size();
  const std::uint64_t count = batch.count;
  Outcome outcome = Outcome::done;
  while_sending(
      lock, [&] { outcome = send(batch, deadline); },
      [&] {
        held_bytes_ -= bytes - batch.paths.size();
        settled_[index(batch.kind)] += count - batch.count;
        if (batch.paths.empty()) batches_.pop_front();
      });
  return outcome;
}

// Sends the batch once, and again without the paths that are refused. Removes from it what is settled: all of
// it if done.
Outcome MarkQueue::send(MarkBatch& batch, Deadline deadline) {
  while (!batch.paths.empty()) {
    const peer::MarkReply reply = send_(batch, deadline);
    if (reply.refused) {
      peer::remove_path(batch.paths, *reply.refused);
      --batch.count;
      on_refused_(reply.problem);
    }
    const Lock lock(mutex_);
    if (!reply.is_acknowledged) problem_ = reply.problem;
    if (reply.refused) {
      ++figures_.refused;
      has_untold_refusals_ = true;
      continue;
    }
    if (!reply.is_acknowledged) {
      pause_ = std::clamp(2 * pause_, first_pause, pause_max);
      retry_at_ = steady_clock::now() + pause_;
      return reply.may_retry ? Outcome::timed_out : Outcome::denied;
    }
    pause_ = milliseconds::zero();
    figures_.acknowledged += reply.marked + reply.ignored;
    figures_.ignored += reply.ignored;
    figures_.cycle = reply.cycle;
    batch = {.kind = batch.kind};
  }
  return Outcome::done;
}

// Moves all that is held into the spool, with the lock: what is added waits for the disk. `reason` if there
// is no spool, or another thread is sending.
Outcome MarkQueue::spool_all(Outcome reason) {
  if (options_.spool == nullptr || is_sending_) return reason;
  if (batches_.empty()) return is_spool_empty_ ? reason : Outcome::spooled;
  if (const auto stored = options_.spool->append(batches_); !stored) {
    problem_ = stored.error().message;
    return Outcome::spool_failed;
  }
  is_spool_empty_ = false;
  for (const MarkBatch& batch : batches_) {
    settled_[index(batch.kind)] += batch.count;
    figures_.spooled += batch.count;
  }
  batches_.clear();
  held_bytes_ = 0;
  changed_.notify_all();
  return Outcome::spooled;
}

// Sends what is in the spool. done: it may be empty now.
Outcome MarkQueue::deliver_spool(Lock& lock, Deadline deadline) {
  if (steady_clock::now() >= deadline) return Outcome::timed_out;
  if (is_sending_ || steady_clock::now() < retry_at_) {
    changed_.wait_until(lock, is_sending_ ? deadline : std::min(deadline, retry_at_));
    return Outcome::done;
  }
  Outcome outcome = Outcome::done;
  base::Result<> delivered;
  const auto send_batch = [&](MarkBatch& batch) {
    outcome = send(batch, deadline);
    return outcome == Outcome::done;
  };
  while_sending(
      lock, [&] { delivered = options_.spool->deliver(send_batch); },
      [&] { is_spool_empty_ = options_.spool->is_empty(); });
  if (!delivered) {
    problem_ = delivered.error().message;
    return Outcome::spool_failed;
  }
  return outcome == Outcome::denied ? outcome : Outcome::done;
}

}  // namespace spoor::client
