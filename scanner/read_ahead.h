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
#include <thread>
#include <vector>

#include "base/error.h"
#include "scanner/directory_reader.h"
#include "tracker/mark_cursor.h"
#include "tracker/namespace_rules.h"

namespace spoor::scanner {

class ReadAheadTask;

// One of a directory's subdirectories that is marked, by its number in the listing.
struct MarkedSubdirectory {
  std::size_t number = 0;
  std::shared_ptr<ReadAheadTask> ticket = {};  // null: nobody reads it ahead
};

// A directory that was opened, and listed if it lies on the drive's own file system.
struct DirectoryRead {
  DirectoryHandle handle;  // closed where `shared` is open, or nothing is to be opened
  std::shared_ptr<const DirectoryHandle> shared =
      {};                       // open for those who read the marked ones; null for none
  bool is_mount_point = false;  // another file system begins here: not listed
  Listing listing;
  // Those that are marked, all of them, where somebody looked.
  std::optional<std::vector<MarkedSubdirectory>> marked = {};
};

// Reads directories of one drive before they are needed, on threads of its own: those that lie deepest
// first, which a walk in depth needs first; of these the last, so that the walk, which begins with the first
// and reads itself what nobody has read yet, hardly ever waits.
//
// Where a ticket has marks, they are followed: which subdirectories are marked is part of the result, and the
// first of them are read without being asked for.
//
// For one walking thread. Whoever has a ticket may take its result later, or never.
class ReadAhead {
 public:
  using Task = ReadAheadTask;
  using Ticket = std::shared_ptr<Task>;
  using Parent = std::shared_ptr<const DirectoryHandle>;

  struct Options {
    std::uint64_t device = 0;  // of the drive
    std::size_t threads = 0;   // 0: take() reads
    FileNames file_names = FileNames::unwanted;
    std::stop_token stop = {};
    // Listings that nobody took yet are no more than that, and one for each thread: else nothing is read
    // ahead.
    std::size_t listed_bytes_max = 32U << 20U;
    // Marks are followed as long as no more directories are open that nobody took yet, about.
    std::size_t open_max = 256;
    // Whoever takes what nobody has begun comes to the first marked one below it at once: it is left to them.
    bool taker_reads = true;
  };

  // `reader` and `rules` must outlive it.
  ReadAhead(const DirectoryReader& reader, const tracker::NamespaceRules& rules, Options options);
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();

  // `path` is the logical one of the directory to be read, `marks` stands there.
  static Ticket ticket(Parent parent, std::string path,
                       std::optional<tracker::MarkCursor> marks = std::nullopt);

  // May be read from now on. `depth` is how deep they lie.
  void submit(std::size_t depth, std::vector<Ticket> tickets);

  // Whether there is nothing to wait for: it was read, or nobody will before take().
  bool is_ready(const Task& task) const;

  // What reading it gave. Reads it on this thread where nobody has begun; else waits. Once for each ticket.
  base::Result<DirectoryRead> take(Task& task);

 private:
  bool add_thread();
  void work();
  base::Result<DirectoryRead> read(const Task& task, bool follows_marks) const;
  void follow_marks(const Task& task, DirectoryRead& found, bool follows) const;
  void submit_marked(const DirectoryRead& found, std::size_t from);
  bool may_follow_marks() const { return !threads_.empty() && open_ < options_.open_max; }
  bool may_read_ahead() const { return !queued_.empty() && listed_bytes_ <= options_.listed_bytes_max; }
  Ticket next();
  void withdraw(const Task& task);

  const DirectoryReader& reader_;
  const tracker::NamespaceRules& rules_;
  const Options options_;

  mutable std::mutex mutex_;
  std::condition_variable work_to_do_;
  std::condition_variable done_;
  std::map<std::size_t, std::deque<Ticket>> queued_;  // by depth; none is empty
  std::size_t listed_bytes_ = 0;
  std::size_t open_ = 0;
  std::size_t idle_ = 0;
  bool is_over_ = false;
  std::vector<std::jthread> threads_;  // last: they use all above
};

}  // namespace spoor::scanner
