#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "scanner/walk/directory_reader.h"
#include "tracker/paths/namespace_rules.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {

// A directory in which others are read: it is open, or opened when it is needed, below one that is open. Then
// another directory at its place is no proof that what was below is gone: it may be moved back without a mark
// of its own. Thread-safe.
class ParentDirectory {
 public:
  using Open = std::shared_ptr<const DirectoryHandle>;

  explicit ParentDirectory(Open open) : above_(std::move(open)) {}

  // `below` is its path relative to `above`; `facts` has the identity that it must have.
  ParentDirectory(Open above, std::string below, const DirectoryFacts& facts)
      : above_(std::move(above)), below_(std::move(below)), facts_(facts) {}

  bool is_open() const { return below_.empty(); }

  // The open directory from which it is reached, and the path from there to what has this name in it.
  const Open& above() const { return above_; }
  std::string way_to(std::string_view name) const { return tracker::join_path(below_, name); }

  // Opens it, unless it is open; `path` is its logical path. Errc::way_lost if another directory, or none, is
  // there.
  base::Result<Open> open(const DirectoryReader& reader, std::string_view path);

 private:
  const Open above_;
  const std::string below_;
  const DirectoryFacts facts_ = {};
  std::mutex mutex_;
  std::weak_ptr<const DirectoryHandle> opened_;
};

// A directory that was opened, and listed if no other mount begins there.
struct DirectoryRead {
  DirectoryHandle handle;       // closed where nothing is to be opened below it
  bool is_known = false;        // it was neither opened nor listed: its entries are those that are stored
  bool is_mount_point = false;  // another mount begins here: not listed
  Listing listing;
};

// What is stored of a directory of which only what is marked is read.
struct StoredDirectory {
  DirectoryFacts facts;     // identity and times
  bool times_tell = false;  // with the same times, its entries are the stored ones
};

// Reads directories of one drive before they are needed, on threads of its own: the deepest first, which a
// walk in depth needs first; of these the last, so that the walk, which begins with the first and itself
// reads what no thread has read yet, hardly ever waits.
//
// For one walking thread, which takes the result of each submitted ticket, or drops it.
class ReadAhead {
 public:
  // A directory to be read. The last fields are of ReadAhead alone.
  struct Task {
    std::shared_ptr<ParentDirectory> parent;
    std::string path = {};  // the logical one
    std::optional<StoredDirectory> stored = {};

    std::string_view name() const { return std::string_view(path).substr(path.rfind('/') + 1); }

    enum class State { queued, running, done };
    std::size_t depth = 0;
    bool is_submitted = false;
    bool is_dropped = false;
    State state = State::queued;
    std::optional<base::Result<DirectoryRead>> result = {};
  };
  using Ticket = std::shared_ptr<Task>;

  struct Options {
    std::uint64_t mount = 0;  // of the drive
    std::size_t threads = 0;  // 0: take() reads
    ListingParts parts = {};
    std::stop_token stop = {};
    // Listings that were not taken yet have no more than that, and one for each thread: else nothing is read
    // ahead.
    std::size_t listed_bytes_max = 32U << 20U;
    // Whether take() reads others while it waits.
    bool taker_reads = true;
  };

  // `reader` and `rules` must outlive it.
  ReadAhead(const DirectoryReader& reader, const tracker::NamespaceRules& rules, Options options);
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();

  // Lets threads read them from now on. `depth` is how deep they lie.
  void submit(std::size_t depth, std::vector<Ticket> tickets);

  // Whether take() would not wait: the directory was read, or no thread will read it before.
  bool is_ready(const Task& task) const;

  // Returns what was read. Reads on this thread if no thread has begun; else waits for that thread, and with
  // taker_reads reads others meanwhile. Once for each ticket.
  base::Result<DirectoryRead> take(Task& task);

  // Instead, where the result is not needed any more.
  void drop(Task& task);

 private:
  using Parent = ParentDirectory::Open;

  void work();
  void read_next(std::unique_lock<std::mutex>& lock, Parent& last_parent);
  base::Result<DirectoryRead> read(const Task& task, Parent& last_parent) const;
  base::Result<DirectoryHandle> open(const Task& task, Parent& last_parent) const;
  std::optional<DirectoryRead> known(const Task& task) const;
  bool may_read_ahead() const { return !queued_.empty() && listed_bytes_ <= options_.listed_bytes_max; }
  void withdraw(const Task& task);

  const DirectoryReader& reader_;
  const tracker::NamespaceRules& rules_;
  const Options options_;

  Parent last_parent_;  // of the walking thread

  mutable std::mutex mutex_;
  std::condition_variable work_to_do_;
  std::condition_variable done_;
  const Task* awaited_ = nullptr;                     // by the walking thread, on done_
  std::map<std::size_t, std::deque<Ticket>> queued_;  // by depth; none is empty
  std::size_t listed_bytes_ = 0;
  std::size_t idle_ = 0;
  bool is_over_ = false;
  std::vector<std::jthread> threads_;  // last: they use all above
};

}  // namespace spoor::scanner
