#include "scanner/walk/read_ahead.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "scanner/errors.h"
#include "scanner/walk/known_listing.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {

struct ReadAheadTask {
  enum class State { queued, running, done };

  ReadAhead::AnyParent parent = {};
  std::string path = {};
  std::optional<tracker::DriveCursor> marks = {};
  std::shared_ptr<const DirectoryRow> stored = {};
  std::size_t depth = 0;
  bool is_submitted = false;
  State state = State::queued;
  std::optional<base::Result<DirectoryRead>> result = {};

  base::Result<ReadAhead::Parent> open_parent(const DirectoryReader& reader) const {
    if (const auto* const open = std::get_if<ReadAhead::Parent>(&parent)) return *open;
    return std::get<std::shared_ptr<ClosedDirectory>>(parent)->open(reader);
  }

  bool is_below_closed() const { return std::holds_alternative<std::shared_ptr<ClosedDirectory>>(parent); }

  // An open directory on the way to it, and the path from there on.
  std::pair<ReadAhead::Parent, std::string> way() const {
    if (const auto* const open = std::get_if<ReadAhead::Parent>(&parent)) return {*open, name()};
    return std::get<std::shared_ptr<ClosedDirectory>>(parent)->way_to(name());
  }

  std::string name() const {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
  }
};

namespace {

constexpr std::size_t followed_max = 32;       // of one directory
constexpr std::size_t marked_max = 1U << 16U;  // of one directory: with more the walk follows them

std::size_t listed_bytes(const base::Result<DirectoryRead>& result) {
  if (!result) return 0;
  const std::optional<Files>& files = result->listing.files;
  // With what is stored of the first of them, and their tickets.
  constexpr std::size_t followed_bytes = 1024;
  const std::size_t marked = result->marked
                                 ? result->marked->capacity() * sizeof(MarkedSubdirectory) +
                                       std::min(result->marked->size(), followed_max) * followed_bytes
                                 : 0;
  const std::size_t linked = result->listing.linked.capacity() * sizeof(LinkedFile);
  return result->listing.subdirectories.memory_bytes() + linked + marked +
         (files ? files->memory_bytes() : 0);
}

bool is_open(const base::Result<DirectoryRead>& result) {
  return result && (result->handle.descriptor >= 0 || result->shared);
}

}  // namespace

base::Result<ClosedDirectory::Open> ClosedDirectory::open(const DirectoryReader& reader) {
  const std::scoped_lock lock(mutex_);
  if (Open open = opened_.lock()) return open;
  auto handle = reader.open_below(*above_, below_);
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

std::pair<ClosedDirectory::Open, std::string> ClosedDirectory::way_to(const std::string& name) const {
  return {above_, tracker::join_path(below_, name)};
}

ReadAhead::ReadAhead(const DirectoryReader& reader, const tracker::NamespaceRules& rules, Options options)
    : reader_(reader), rules_(rules), options_(std::move(options)) {
  while (threads_.size() < options_.threads && add_thread()) {
  }
}

// If the system gives no more threads, those that run do the work, or take() does.
bool ReadAhead::add_thread() {
  try {
    threads_.emplace_back([this] { work(); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

ReadAhead::~ReadAhead() {
  const std::scoped_lock lock(mutex_);
  is_over_ = true;
  work_to_do_.notify_all();
}

ReadAhead::Ticket ReadAhead::ticket(AnyParent parent, std::string path,
                                    std::optional<tracker::DriveCursor> marks,
                                    std::shared_ptr<const DirectoryRow> stored) {
  return std::make_shared<Task>(Task{
      .parent = std::move(parent), .path = std::move(path), .marks = marks, .stored = std::move(stored)});
}

const DirectoryRow* ReadAhead::stored(const Task& task) { return task.stored.get(); }

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
  bool follows_marks = false;
  {
    std::unique_lock lock(mutex_);
    if (task.state == Task::State::queued) {
      withdraw(task);
      follows_marks = may_follow_marks();
    } else {
      DirectoryStore* const stored = options_.known ? &options_.known->stored : nullptr;
      while (task.state != Task::State::done) {
        if (options_.taker_reads && may_read_ahead()) {
          read_next(lock, stored, last_parent_);
        } else {
          awaited_ = &task;
          done_.wait(lock);
          awaited_ = nullptr;
        }
      }
      listed_bytes_ -= listed_bytes(*task.result);
      if (is_open(*task.result)) --open_;
      if (idle_ > 0 && may_read_ahead()) work_to_do_.notify_one();
      return std::move(*task.result);
    }
  }
  auto result = read(task, follows_marks, options_.known ? &options_.known->stored : nullptr, last_parent_);
  task.parent = {};
  if (result && result->marked) {
    const std::scoped_lock lock(mutex_);
    submit_marked(*result, options_.taker_reads ? 1 : 0);
  }
  return result;
}

void ReadAhead::submit_marked(const DirectoryRead& found, std::size_t from) {
  if (!found.marked) return;
  bool is_any = false;
  for (std::size_t at = from; at < found.marked->size() && (*found.marked)[at].ticket; ++at) {
    const Ticket& ticket = (*found.marked)[at].ticket;
    ticket->is_submitted = true;
    queued_[ticket->depth].push_back(ticket);
    is_any = true;
  }
  if (is_any && idle_ > 0) work_to_do_.notify_all();
}

// No thread will read it.
void ReadAhead::withdraw(const Task& task) {
  const auto level = queued_.find(task.depth);
  if (level == queued_.end()) return;
  const auto found = std::ranges::find(level->second, &task, &Ticket::get);
  if (found != level->second.end()) level->second.erase(found);
  if (level->second.empty()) queued_.erase(level);
}

ReadAhead::Ticket ReadAhead::next() {
  const auto deepest = std::prev(queued_.end());
  Ticket ticket = std::move(deepest->second.back());
  deepest->second.pop_back();
  if (deepest->second.empty()) queued_.erase(deepest);
  ticket->state = Task::State::running;
  return ticket;
}

void ReadAhead::work() {
  std::optional<DirectorySnapshot> snapshot;
  if (options_.known) snapshot = DirectorySnapshot::open(options_.known->database);
  Parent last_parent;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!may_read_ahead()) last_parent.reset();
    ++idle_;
    work_to_do_.wait(lock, [this] { return is_over_ || may_read_ahead(); });
    --idle_;
    if (is_over_) return;
    read_next(lock, snapshot ? &snapshot->directories() : nullptr, last_parent);
  }
}

// Without the lock while it reads.
void ReadAhead::read_next(std::unique_lock<std::mutex>& lock, DirectoryStore* stored, Parent& last_parent) {
  const Ticket ticket = next();
  const bool follows_marks = may_follow_marks();
  lock.unlock();
  auto result = read(*ticket, follows_marks, stored, last_parent);
  ticket->parent = {};
  lock.lock();
  listed_bytes_ += listed_bytes(result);
  if (is_open(result)) ++open_;
  if (result) submit_marked(*result, 0);
  ticket->result.emplace(std::move(result));
  ticket->state = Task::State::done;
  if (ticket.get() == awaited_) done_.notify_one();
}

base::Result<DirectoryRead> ReadAhead::read(const Task& task, bool follows_marks, DirectoryStore* stored,
                                            Parent& last_parent) const {
  if (stored != nullptr) {
    if (auto found = known(task, *stored)) {
      if (task.marks) follow_marks(task, *found, follows_marks, stored);
      return *std::move(found);
    }
  }
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
  if (found.listing.subdirectories.empty()) {
    found.handle.close();
  } else if (task.marks) {
    follow_marks(task, found, follows_marks, stored);
  }
  return found;
}

base::Result<DirectoryHandle> ReadAhead::open(const Task& task, Parent& last_parent) const {
  if (task.is_below_closed() && task.stored && is_proof(task.stored->birth)) {
    // The stored directory is proven by itself: those above it need not be opened.
    const auto [above, below] = task.way();
    auto handle = reader_.open_below(*above, below);
    const bool is_stored = handle && handle->mount == options_.mount && handle->inode == task.stored->inode &&
                           handle->birth == task.stored->birth;
    if (is_stored) return handle;
  }
  auto parent = task.open_parent(reader_);
  if (!parent) return parent.error();
  last_parent = *std::move(parent);  // for the next one, which often lies beside it
  return reader_.open(*last_parent, task.name(), task.path);
}

// Most directories on the way to what changed are neither opened nor listed. Where the database fails, the
// directory is read: the walk will meet that failure.
std::optional<DirectoryRead> ReadAhead::known(const Task& task, DirectoryStore& stored) const {
  const KnownListings& known = *options_.known;
  const bool may_be = task.stored && may_be_known(*task.stored, known.settled_before_ns);
  if (!may_be || known.must_be_read(task.path)) return std::nullopt;
  auto [above, below] = task.way();
  const auto facts = reader_.look_at(*above, below, task.path);
  if (!facts || facts->mount != options_.mount) return std::nullopt;
  auto listing = known_listing(stored, *task.stored, *facts, known.settled_before_ns);
  if (!listing || !*listing) return std::nullopt;
  DirectoryRead found;
  found.handle.take_facts(*facts);
  found.closed = std::make_shared<ClosedDirectory>(std::move(above), std::move(below), *facts);
  found.listing = std::move(**listing);
  return found;
}

void ReadAhead::follow_marks(const Task& task, DirectoryRead& found, bool follows,
                             DirectoryStore* stored) const {
  const Subdirectories& subdirectories = found.listing.subdirectories;
  std::vector<MarkedSubdirectory>& marked = found.marked.emplace();
  for (std::size_t number = 0; number < subdirectories.size(); ++number) {
    tracker::DriveCursor marks = *task.marks;
    marks.descend(subdirectories[number].name);
    if (!marks.may_be_dirty()) continue;
    if (marked.size() == marked_max) {
      found.marked.reset();
      return;
    }
    marked.push_back({number});
    if (!follows || marked.size() > followed_max) continue;
    const std::string_view name = subdirectories[number].name;
    std::shared_ptr<const DirectoryRow> row;
    if (stored != nullptr && task.stored && !marks.covered()) {
      auto known = stored->find(task.stored->id, name);
      if (known && *known) row = std::make_shared<const DirectoryRow>(std::move(**known));
    }
    if (!found.closed && !found.shared) {
      found.shared = std::make_shared<const DirectoryHandle>(std::move(found.handle));
    }
    const auto parent = found.closed ? AnyParent(found.closed) : AnyParent(found.shared);
    Ticket& next = marked.back().ticket;
    next = ticket(parent, tracker::join_path(task.path, name), marks, std::move(row));
    next->depth = task.depth + 1;
  }
}

}  // namespace spoor::scanner
