#include "scanner/walk/read_ahead.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "scanner/errors.h"

namespace spoor::scanner {

namespace {

std::size_t listed_bytes(const base::Result<DirectoryRead>& result) {
  if (!result) return 0;
  const std::optional<Files>& files = result->listing.files;
  const std::size_t linked = result->listing.linked.capacity() * sizeof(LinkedFile);
  return result->listing.subdirectories.memory_bytes() + linked + (files ? files->memory_bytes() : 0);
}

bool is_identity(const DirectoryFacts& found, const DirectoryFacts& stored) {
  return is_proof(stored.birth) && found.inode == stored.inode && found.birth == stored.birth;
}

}  // namespace

base::Result<ParentDirectory::Open> ParentDirectory::open(const DirectoryReader& reader,
                                                          std::string_view path) {
  if (is_open()) return above_;
  const std::scoped_lock lock(mutex_);
  if (Open open = opened_.lock()) return open;
  auto handle = reader.open(*above_, below_, path);
  const bool is_elsewhere =
      !handle && (is_gone(handle.error().code) || handle.error().code == std::errc::cross_device_link);
  if (!handle && !is_elsewhere) return handle.error();
  const bool is_the_same =
      handle && handle->mount == facts_.mount && handle->inode == facts_.inode &&
      !(is_proof(facts_.birth) && is_proof(handle->birth) && handle->birth != facts_.birth);
  if (!is_the_same) {
    return base::Error(Errc::way_lost, "a directory above it was moved or replaced while it was walked");
  }
  auto opened = std::make_shared<const DirectoryHandle>(*std::move(handle));
  opened_ = opened;
  return Open(std::move(opened));
}

// If the system gives no more threads, those that run do the work, or take() does.
ReadAhead::ReadAhead(const DirectoryReader& reader, const tracker::NamespaceRules& rules, Options options)
    : reader_(reader), rules_(rules), options_(std::move(options)) {
  try {
    while (threads_.size() < options_.threads) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    return;
  }
}

ReadAhead::~ReadAhead() {
  const std::scoped_lock lock(mutex_);
  is_over_ = true;
  work_to_do_.notify_all();
}

void ReadAhead::submit(std::size_t depth, std::vector<Ticket> tickets) {
  if (threads_.empty() || tickets.empty()) return;
  const std::scoped_lock lock(mutex_);
  std::deque<Ticket>& level = queued_[depth];
  for (Ticket& each : tickets) {
    each->depth = depth;
    each->is_submitted = true;
    level.push_back(std::move(each));
  }
  if (idle_ > 0) work_to_do_.notify_all();
}

bool ReadAhead::is_ready(const Task& task) const {
  const std::scoped_lock lock(mutex_);
  if (task.state == Task::State::queued) {
    return !task.is_submitted || listed_bytes_ > options_.listed_bytes_max;
  }
  return task.state == Task::State::done;
}

base::Result<DirectoryRead> ReadAhead::take(Task& task) {
  {
    std::unique_lock lock(mutex_);
    if (task.state != Task::State::queued) {
      while (task.state != Task::State::done) {
        if (options_.taker_reads && may_read_ahead()) {
          read_next(lock, last_parent_);
        } else {
          awaited_ = &task;
          done_.wait(lock);
          awaited_ = nullptr;
        }
      }
      listed_bytes_ -= listed_bytes(*task.result);
      if (idle_ > 0 && may_read_ahead()) work_to_do_.notify_one();
      return std::move(*task.result);
    }
    withdraw(task);
  }
  return read(task, last_parent_);
}

void ReadAhead::drop(Task& task) {
  const std::scoped_lock lock(mutex_);
  if (task.state == Task::State::queued) withdraw(task);
  if (task.state == Task::State::done) listed_bytes_ -= listed_bytes(*task.result);
  task.is_dropped = true;
}

// No thread will read it.
void ReadAhead::withdraw(const Task& task) {
  const auto level = queued_.find(task.depth);
  if (level == queued_.end()) return;
  const auto found = std::ranges::find(level->second, &task, &Ticket::get);
  if (found != level->second.end()) level->second.erase(found);
  if (level->second.empty()) queued_.erase(level);
}

void ReadAhead::work() {
  Parent last_parent;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!may_read_ahead()) last_parent.reset();
    ++idle_;
    work_to_do_.wait(lock, [this] { return is_over_ || may_read_ahead(); });
    --idle_;
    if (is_over_) return;
    read_next(lock, last_parent);
  }
}

// Without the lock while it reads.
void ReadAhead::read_next(std::unique_lock<std::mutex>& lock, Parent& last_parent) {
  const auto deepest = std::prev(queued_.end());
  const Ticket ticket = std::move(deepest->second.back());
  deepest->second.pop_back();
  if (deepest->second.empty()) queued_.erase(deepest);
  ticket->state = Task::State::running;
  lock.unlock();
  auto result = read(*ticket, last_parent);
  ticket->parent = {};
  lock.lock();
  if (!ticket->is_dropped) listed_bytes_ += listed_bytes(result);
  ticket->result.emplace(std::move(result));
  ticket->state = Task::State::done;
  if (ticket.get() == awaited_) done_.notify_one();
}

base::Result<DirectoryRead> ReadAhead::read(const Task& task, Parent& last_parent) const {
  if (auto found = known(task)) return *std::move(found);
  auto handle = open(task, last_parent);
  DirectoryRead found;
  found.is_mount_point = !handle && handle.error().code == std::errc::cross_device_link;
  if (found.is_mount_point) return found;
  if (!handle) return handle.error();
  found.handle = std::move(*handle);
  found.is_mount_point = found.handle.mount != options_.mount;
  if (found.is_mount_point) {
    found.handle.close();
    return found;
  }
  auto listing = reader_.read(found.handle, task.path, rules_, options_.parts, options_.stop);
  if (!listing) return listing.error();
  found.listing = std::move(*listing);
  if (found.listing.subdirectories.empty()) found.handle.close();
  return found;
}

base::Result<DirectoryHandle> ReadAhead::open(const Task& task, Parent& last_parent) const {
  ParentDirectory& parent = *task.parent;
  if (!parent.is_open() && task.stored && is_proof(task.stored->facts.birth)) {
    // The stored directory is proven by itself: those above it need not be opened.
    auto handle = reader_.open(*parent.above(), parent.way_to(task.name()), task.path);
    const bool is_stored =
        handle && handle->mount == options_.mount && is_identity(*handle, task.stored->facts);
    if (is_stored) return handle;
  }
  auto opened = parent.open(reader_, tracker::parent_path(task.path));
  if (!opened) return opened.error();
  last_parent = *std::move(opened);  // for the next one, which often lies beside it
  return reader_.open(*last_parent, task.name(), task.path);
}

// Most directories on the way to what changed are neither opened nor listed.
std::optional<DirectoryRead> ReadAhead::known(const Task& task) const {
  if (!task.stored || !task.stored->times_tell) return std::nullopt;
  const std::string way = task.parent->way_to(task.name());
  const auto facts = reader_.look_at(*task.parent->above(), way, task.path);
  const DirectoryFacts& stored = task.stored->facts;
  const bool is_the_same = facts && facts->mount == options_.mount && is_identity(*facts, stored) &&
                           facts->mtime_ns == stored.mtime_ns && facts->ctime_ns == stored.ctime_ns;
  if (!is_the_same) return std::nullopt;
  DirectoryRead found;
  found.handle.take_facts(*facts);
  found.is_known = true;
  return found;
}

}  // namespace spoor::scanner
