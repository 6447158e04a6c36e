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
#include <variant>
#include <vector>

#include "base/error.h"
#include "scanner/walk/directory_reader.h"
#include "tracker/paths/namespace_rules.h"

namespace spoor::scanner {

struct ReadAheadTask;

// A directory that is opened when it is needed, below one that is open. Another directory at its place is no
// proof that what was below is gone: it may be moved back without a mark of its own. Thread-safe.
class ClosedDirectory {
 public:
  using Open = std::shared_ptr<const DirectoryHandle>;

  // `below` is its path relative to `above`; `facts` has the identity that it must have.
  ClosedDirectory(Open above, std::string below, const DirectoryFacts& facts)
      : above_(std::move(above)), below_(std::move(below)), facts_(facts) {}

  // Opens it, unless it is open. Errc::way_lost if another directory, or none, is there.
  base::Result<Open> open(const DirectoryReader& reader);

  // An open directory on the way to its subdirectory of this name, and the path from there on.
  std::pair<Open, std::string> way_to(const std::string& name) const;

 private:
  const Open above_;
  const std::string below_;
  const DirectoryFacts facts_;
  mutable std::mutex mutex_;
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
  using Task = ReadAheadTask;
  using Ticket = std::shared_ptr<Task>;
  using Parent = std::shared_ptr<const DirectoryHandle>;
  using AnyParent = std::variant<Parent, std::shared_ptr<ClosedDirectory>>;

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

  // `path` is the logical path of the directory to be read.
  static Ticket ticket(AnyParent parent, std::string path,
                       const std::optional<StoredDirectory>& stored = std::nullopt);

  static const std::string& path(const Task& task);

  // An open directory on the way to a subdirectory, and the path from there on.
  static std::pair<Parent, std::string> way(const AnyParent& parent, const std::string& name);

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
  bool add_thread();
  void work();
  void read_next(std::unique_lock<std::mutex>& lock, Parent& last_parent);
  base::Result<DirectoryRead> read(const Task& task, Parent& last_parent) const;
  base::Result<DirectoryHandle> open(const Task& task, Parent& last_parent) const;
  std::optional<DirectoryRead> known(const Task& task) const;
  bool may_read_ahead() const { return !queued_.empty() && listed_bytes_ <= options_.listed_bytes_max; }
  Ticket next();
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
