#include "client/mark_queue.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

namespace spoor::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds first_pause{10};
constexpr milliseconds pause_max{1'000};
constexpr std::uint64_t request_bytes_min = std::uint64_t{4} << 10U;  // but for a daemon that takes less

// Calls it at the end, also at that of an exception.
template <class Call>
class AtEnd {
 public:
  explicit AtEnd(Call call) : call_(std::move(call)) {}
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;
  ~AtEnd() { call_(); }

 private:
  const Call call_;
};

// The first paths of the batch, of at most so many bytes; at least one.
MarkBatch beginning(const MarkBatch& batch, std::uint64_t bytes) {
  if (bytes >= batch.paths.size()) return batch;
  const std::size_t end = bytes == 0 ? std::string::npos : batch.paths.rfind('\0', bytes - 1);
  MarkBatch part{
      .kind = batch.kind,
      .paths = batch.paths.substr(0, (end == std::string::npos ? batch.paths.find('\0') : end) + 1)};
  part.count = static_cast<std::uint64_t>(std::ranges::count(part.paths, '\0'));
  return part;
}

}  // namespace

MarkQueue::MarkQueue(QueueOptions options, Send send, OnRefused on_refused)
    : options_(options),
      send_(std::move(send)),
      on_refused_(std::move(on_refused)),
      request_bytes_(options.batch_bytes_max) {}

Outcome MarkQueue::add(MarkKind kind, std::string_view path, Deadline deadline) {
  const std::uint64_t bytes = path.size() + 1;
  Lock lock(mutex_);
  refused_before_.try_emplace(std::this_thread::get_id(), figures_.refused);
  bool may_try_at_once = false;
  while (held_bytes_ + bytes > options_.held_bytes_max) {
    const Outcome outcome = progress(lock, deadline, may_try_at_once);
    if (outcome == Outcome::done) continue;
    if (options_.spool == nullptr) return outcome == Outcome::timed_out ? Outcome::full : outcome;
    if (spool_all() == Outcome::spool_failed) return Outcome::spool_failed;
  }
  const auto end =
      batches_.rend() - (is_sending_ && !batches_.empty() ? 1 : 0);  // the oldest may be on its way
  const auto newest =
      std::find_if(batches_.rbegin(), end, [&](const Held& batch) { return batch.kind == kind; });
  const bool has_room = newest != end && newest->paths.size() + bytes <= options_.batch_bytes_max;
  if (!has_room) {
    Held batch{{.kind = kind}, last_number_ + 1};
    batch.paths.reserve(bytes);  // none is there without a path
    batches_.push_back(std::move(batch));
    ++last_number_;
  }
  MarkBatch& batch = has_room ? *newest : batches_.back();
  batch.paths.reserve(batch.paths.size() + bytes);  // whatever fails, fails before the path is in it
  batch.paths.append(path);
  batch.paths.push_back('\0');
  ++batch.count;
  held_bytes_ += bytes;
  if (is_sending_ || held_bytes_ < options_.batch_bytes_max) return Outcome::done;
  const auto now = steady_clock::now();
  try {
    if (now < deadline && now >= retry_at_) send_oldest(lock, deadline);
  } catch (const std::bad_alloc&) {
    problem_ = "no memory";  // the mark is held all the same
  }
  return Outcome::done;
}

Outcome MarkQueue::flush(Deadline deadline) {
  Lock lock(mutex_);
  const std::uint64_t refused_before =
      refused_before_.try_emplace(std::this_thread::get_id(), figures_.refused).first->second;
  const std::uint64_t last = last_number_;
  bool may_try_at_once = true;
  Outcome outcome = Outcome::done;
  while (outcome == Outcome::done && !is_settled(last)) outcome = progress(lock, deadline, may_try_at_once);
  if (outcome == Outcome::done && options_.spool != nullptr)
    outcome = deliver_spool(lock, deadline, may_try_at_once);
  if (options_.spool != nullptr && (outcome == Outcome::timed_out || outcome == Outcome::denied)) {
    const Outcome stored = spool_all();
    if (outcome == Outcome::timed_out || stored == Outcome::spool_failed) outcome = stored;
  }
  if (outcome == Outcome::timed_out || outcome == Outcome::denied) return outcome;
  if (auto lost = options_.spool == nullptr ? std::nullopt : options_.spool->set_damaged_aside()) {
    problem_ = *std::move(lost);
    return Outcome::spool_failed;
  }
  if (outcome == Outcome::spool_failed) return outcome;
  // What is in the spool may still be refused.
  if (outcome == Outcome::done) {
    refused_before_.erase(std::this_thread::get_id());
  } else {
    refused_before_[std::this_thread::get_id()] = figures_.refused;
  }
  return figures_.refused == refused_before ? outcome : Outcome::refused;
}

QueueFigures MarkQueue::figures() const {
  const Lock lock(mutex_);
  QueueFigures figures = figures_;
  for (const Held& batch : batches_) figures.held += batch.count;
  return figures;
}

std::string MarkQueue::problem() const {
  const Lock lock(mutex_);
  return problem_.empty() ? "the daemon has not acknowledged all marks in time" : problem_;
}

// Whether this batch, and all before it, are acknowledged or in the spool.
bool MarkQueue::is_settled(std::uint64_t number) const {
  return batches_.empty() || batches_.front().number > number;
}

// Sends the oldest batch, or waits for what another thread sends or for the time of the next attempt. done:
// there may be progress. The lock is released meanwhile.
Outcome MarkQueue::progress(Lock& lock, Deadline deadline, bool& may_try_at_once) {
  const auto now = steady_clock::now();
  if (now >= deadline || batches_.empty()) return Outcome::timed_out;
  if (is_sending_) {
    changed_.wait_until(lock, deadline);
    return Outcome::done;
  }
  if (now < retry_at_ && !may_try_at_once) {
    changed_.wait_until(lock, std::min(deadline, retry_at_));
    return Outcome::done;
  }
  may_try_at_once = false;
  return send_oldest(lock, deadline) == Outcome::denied ? Outcome::denied : Outcome::done;
}

Outcome MarkQueue::send_oldest(Lock& lock, Deadline deadline) {
  const std::uint64_t number = batches_.front().number;
  MarkBatch batch = batches_.front();  // the spool may take the other meanwhile
  const AtEnd settle{[&] {
    if (batches_.empty() || batches_.front().number != number) return;
    Held& oldest = batches_.front();
    held_bytes_ -= oldest.paths.size() - batch.paths.size();
    static_cast<MarkBatch&>(oldest) = std::move(batch);  // without the paths that are refused
    if (oldest.paths.empty()) batches_.pop_front();
  }};
  return send(lock, batch, deadline);
}

// Sends the batch once, and again without the paths that are refused; in smaller parts then, since the daemon
// marks none of the paths that it receives with one that it refuses. So it does after a failure: the time may
// suffice for less. Removes from the batch what needs no more sending: all of it if done.
Outcome MarkQueue::send(Lock& lock, MarkBatch& batch, Deadline deadline) {
  while (!batch.paths.empty()) {
    const MarkBatch part = beginning(batch, request_bytes_);
    peer::MarkReply reply;
    {
      is_sending_ = true;
      lock.unlock();
      const AtEnd sent{[&] {
        lock.lock();
        is_sending_ = false;
        changed_.notify_all();
      }};
      reply = send_(part, deadline);
      if (reply.refused) on_refused_(reply.problem);
    }
    if (reply.is_acknowledged && reply.marked + reply.ignored != part.count) {
      reply = {};
      reply.problem = "the daemon has acknowledged another number of marks than it was sent";
      reply.may_retry = true;
    }
    if (reply.is_acknowledged) {
      pause_ = milliseconds::zero();
      retry_at_ = {};
      problem_.clear();
      figures_.acknowledged += part.count;
      figures_.ignored += reply.ignored;
      figures_.cycle = reply.cycle;
      batch.paths.erase(0, part.paths.size());
      batch.count -= part.count;
      request_bytes_ = std::min(request_bytes_ + request_bytes_ / 8 + 1, options_.batch_bytes_max);
      continue;
    }
    problem_ = std::move(reply.problem);
    if (reply.is_too_large && part.count > 1) {
      request_bytes_ = part.paths.size() / 2;
      continue;
    }
    request_bytes_ = std::max(part.paths.size() / 2, request_bytes_min);
    if (reply.refused) {
      peer::remove_path(batch.paths, *reply.refused);
      --batch.count;
      ++figures_.refused;
      continue;
    }
    pause_ = std::clamp(2 * pause_, first_pause, pause_max);
    retry_at_ = steady_clock::now() + pause_;
    return reply.may_retry ? Outcome::timed_out : Outcome::denied;
  }
  return Outcome::done;
}

// Moves all that is held into the spool.
Outcome MarkQueue::spool_all() {
  while (!batches_.empty()) {
    const MarkBatch& batch = batches_.front();
    if (const auto stored = options_.spool->append(batch); !stored) {
      problem_ = stored.error().message;
      return Outcome::spool_failed;
    }
    figures_.spooled += batch.count;
    held_bytes_ -= batch.paths.size();
    batches_.pop_front();
  }
  changed_.notify_all();
  return Outcome::spooled;
}

// Sends the files that are in the spool now, each once; those that can't be read stay, and do not stop the
// others.
Outcome MarkQueue::deliver_spool(Lock& lock, Deadline deadline, bool& may_try_at_once) {
  std::optional<std::string> failure;
  std::size_t failed = 0;
  while (failed < options_.spool->size()) {
    const auto now = steady_clock::now();
    if (now >= deadline) return Outcome::timed_out;
    if (is_sending_ || (now < retry_at_ && !may_try_at_once)) {
      changed_.wait_until(lock, is_sending_ ? deadline : std::min(deadline, retry_at_));
      continue;
    }
    may_try_at_once = false;
    const std::string name = options_.spool->first_name();
    auto file = options_.spool->first();
    if (file && !*file) continue;                                        // another client has sent it
    if (!file && file.error().code == std::errc::bad_message) continue;  // flush() reports it
    base::Result<> removed = file ? base::Result<>() : file.error();
    if (file) {
      MarkBatch& batch = (*file)->batch;
      const std::uint64_t count = batch.count;
      const Outcome outcome = send(lock, batch, deadline);
      if (outcome != Outcome::done && batch.count < count) options_.spool->shorten(**file);
      if (outcome == Outcome::denied) return outcome;
      if (outcome == Outcome::timed_out) continue;
      removed = options_.spool->remove(name);
    }
    if (removed) continue;
    failure = removed.error().message;
    options_.spool->put_last(name);
    ++failed;
  }
  if (!failure) return Outcome::done;
  problem_ = *failure;
  return Outcome::spool_failed;
}

}  // namespace spoor::client
