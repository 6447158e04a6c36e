#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
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
#include "scanner/store/directory_row.h"
#include "scanner/store/directory_store.h"
#include "scanner/walk/directory_reader.h"
#include "tracker/filter/mark_cursor.h"
#include "tracker/paths/namespace_rules.h"

namespace spoor::scanner {

struct ReadAheadTask;

// One of a directory's subdirectories that is marked, by its number in the listing.
struct MarkedSubdirectory {
  std::size_t number = 0;
  std::shared_ptr<ReadAheadTask> ticket = {};  // null: it is not read ahead
};

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
  DirectoryHandle handle;  // closed where `shared` is open, or nothing is to be opened
  std::shared_ptr<const DirectoryHandle> shared = {};  // open for the reading of marked ones; null for none
  // Instead, if its listing is known and it was never opened (known_listing.h).
  std::shared_ptr<ClosedDirectory> closed = {};
  bool is_mount_point = false;  // another mount begins here: not listed
  Listing listing;
  // All that are marked; nothing if the marks were not followed.
  std::optional<std::vector<MarkedSubdirectory>> marked = {};
};

// What it takes to know listings.
struct KnownListings {
  DirectoryStore& stored;  // for the walking thread
  std::string database;    // where other threads look up what is stored
  std::int64_t settled_before_ns = 0;
  std::function<bool(std::string_view path)> must_be_read;
};

// Reads directories of one drive before they are needed, on threads of its own: the deepest first, which a
// walk in depth needs first; of these the last, so that the walk, which begins with the first and itself
// reads what no thread has read yet, hardly ever waits.
//
// If a ticket has marks, they are followed: the marked subdirectories are part of the result, and the first
// of them are read without a request.
//
// A directory whose listing is known (known_listing.h) is not read.
//
// For one walking thread, which may take the result of a ticket later, or never.
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
    // Marks are followed while no more directories are open that were not taken yet, about.
    std::size_t open_max = 256;
    // What makes listings known; nothing if none is.
    std::optional<KnownListings> known = {};
    // The walk that takes a directory which no thread has begun reads the first marked one below it at once:
    // that one is left to the walk.
    bool taker_reads = true;
  };

  // `reader` and `rules` must outlive it.
  ReadAhead(const DirectoryReader& reader, const tracker::NamespaceRules& rules, Options options);
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();

  // `path` is the logical path of the directory to be read; `marks` have descended to it. `stored` is its row
  // if not all below it is read; else null.
  static Ticket ticket(AnyParent parent, std::string path,
                       std::optional<tracker::DriveCursor> marks = std::nullopt,
                       std::shared_ptr<const DirectoryRow> stored = nullptr);

  // The row that `stored` was, or that was looked up where the marks were followed; null for none.
  static const DirectoryRow* stored(const Task& task);

  // Lets threads read them from now on. `depth` is how deep they lie.
  void submit(std::size_t depth, std::vector<Ticket> tickets);

  // Whether take() would not wait: the directory was read, or no thread will read it before.
  bool is_ready(const Task& task) const;

  // Returns what was read. Reads on this thread if no thread has begun; else waits for that thread, and with
  // taker_reads reads others meanwhile. Once for each ticket.
  base::Result<DirectoryRead> take(Task& task);

 private:
  bool add_thread();
  void work();
  void read_next(std::unique_lock<std::mutex>& lock, DirectoryStore* stored, Parent& last_parent);
  base::Result<DirectoryRead> read(const Task& task, bool follows_marks, DirectoryStore* stored,
                                   Parent& last_parent) const;
  base::Result<DirectoryHandle> open(const Task& task, Parent& last_parent) const;
  std::optional<DirectoryRead> known(const Task& task, DirectoryStore& stored) const;
  void follow_marks(const Task& task, DirectoryRead& found, bool follows, DirectoryStore* stored) const;
  void submit_marked(const DirectoryRead& found, std::size_t from);
  bool may_follow_marks() const { return !threads_.empty() && open_ < options_.open_max; }
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
  std::size_t open_ = 0;
  std::size_t idle_ = 0;
  bool is_over_ = false;
  std::vector<std::jthread> threads_;  // last: they use all above
};

}  // namespace spoor::scanner
