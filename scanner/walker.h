#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "scanner/change_log.h"
#include "scanner/directory_reader.h"
#include "scanner/directory_store.h"
#include "scanner/file_feed.h"
#include "scanner/link_store.h"
#include "scanner/pace.h"
#include "scanner/read_ahead.h"
#include "scanner/scan_plan.h"
#include "scanner/scan_record.h"
#include "scanner/stored_children.h"
#include "scanner/subdirectories.h"
#include "scanner/walk_log.h"
#include "tracker/mark_cursor.h"
#include "tracker/namespace_rules.h"

namespace spoor::scanner {

// Something that was left for next time.
struct ScanError {
  std::string path;     // the real one, drive included
  std::string message;  // what happened to it
};

// The first ones are kept, all are counted.
struct ScanErrors {
  std::size_t kept_max = 1000;
  std::uint64_t count = 0;
  std::vector<ScanError> kept;

  void add(std::string path, std::string message);
};

struct Progress {
  WalkFigures figures = {};      // so far, all drives
  std::uint64_t dirs_done = 0;   // read or skipped, about
  std::uint64_t dirs_known = 0;  // before the scan
  std::string path = {};         // the real one of the directory just read
};

// What a walk works with. All that is referred to must outlive it.
struct WalkContext {
  const DirectoryReader& reader;
  const ScanPlan& plan;
  const tracker::NamespaceRules& rules;
  DirectoryStore& store;
  ChangeLog& changes;
  LinkStore& links;
  Pace& pace;
  std::stop_token stop = {};
  std::uint64_t scan_id = 0;
  std::uint64_t progress_every = 64;  // directories read
  std::function<void(const Progress&)> progress = {};
  std::size_t readers = 0;        // threads that read ahead, for each drive
  bool has_other_drives = false;  // which are walked by the same thread
  // Directories that are open, or may soon be, are about as many, and one in 64 of a deeper tree.
  std::size_t open_directories_max = 1024;
  FileFeed* files = nullptr;  // null: the feed names no files

  FileNames file_names() const { return files == nullptr ? FileNames::unwanted : FileNames::wanted; }

  // Of all drives walked with this context.
  WalkFigures figures = {};
  std::uint64_t dirs_known = 0;     // before the scan
  std::uint64_t dirs_replayed = 0;  // of those walked: a log knew them
  ScanErrors errors = {};
};

// Whether the directory found is not the stored one, though it has its inode number.
bool is_another(const DirectoryRow& stored, const DirectoryHandle& found);

// Whether nothing proves that the directory found, which has the inode number of the stored one, is that one.
bool may_be_another(const DirectoryRow& stored, const DirectoryHandle& found);

// Walks one drive below its root, and brings the rows of its directories up to date.
//
// A directory for which the plan knows no reason keeps its row, and is not touched. One that is read
// gets new totals, and its subdirectories are asked the same; those gone from its listing are removed
// with all below. What can't be read keeps its totals and all below it, and is left for next time.
//
// Where a directory has the entries it had, its sums change by what its marked subdirectories change: its
// other ones are not looked up.
//
// One thread decides and writes, in depth and by name; which of a directory's subdirectories are to be read
// it decides some ahead, and others read them meanwhile (read_ahead.h). Rows of new directories are written
// children first, all those of a parent together, so that they are appended in key order; rows that would
// stay the same are not written. No recursion; the descriptors it has open are bounded, however deep a tree.
//
// Not thread-safe.
class Walker {
 public:
  // `drive` is for messages; `parent_of_root` is where the root's row stands. `log` knows what was read by a
  // walk of the same marks that did not end, and is told what this one reads; null for none.
  Walker(WalkContext& context, const std::filesystem::path& drive, std::int64_t parent_of_root, WalkLog* log);

  // Takes the root as read: its handle, its listing, the row it had (nothing for a new one) and the
  // reason why it was read. Fails where the database does. Once, and first.
  base::Result<> begin(DirectoryHandle root, Listing listing, std::optional<DirectoryRow> stored,
                       Reason reason);

  bool is_over() const { return open_.empty(); }

  // Whether step() would wait for a directory that another thread is reading.
  bool would_wait() const;

  // Deals with the next directory, or, where it would wait and may not, asks for it. Fails where the database
  // does, or with Errc::interrupted.
  base::Result<> step(bool may_wait);

 private:
  // A subdirectory that is to be read.
  struct Child {
    std::string name;
    std::uint64_t inode = 0;
    std::optional<DirectoryRow> stored;
    tracker::MarkCursor marks;
    Reason reason = Reason::clean;
    ReadAhead::Ticket ticket = {};
    std::optional<base::Error> unreachable = {};  // why nobody could be asked to read it
  };

  // A directory that has been read, some of its subdirectories not yet.
  struct Frame {
    Frame(DirectoryRead read, DirectoryRow its_row, Reason why, const tracker::MarkCursor& its_marks,
          StoredChildren children)
        : handle(std::move(read.shared)),
          inode(read.handle.inode),
          subdirectories(std::move(read.listing.subdirectories)),
          marked(std::move(read.marked)),
          row(std::move(its_row)),
          reason(why),
          marks(its_marks),
          stored(std::move(children)) {
      found.subtree.mtime_ns = std::numeric_limits<std::int64_t>::min();
      const bool is_open = read.handle.descriptor >= 0;
      if (is_open) handle = std::make_shared<const DirectoryHandle>(std::move(read.handle));
    }

    bool all_decided() const { return decided == subdirectories.size(); }

    // Passes those by that are not marked and are as they were.
    void skip_to_marked();
    // Whether that subdirectory is marked, where somebody looked, with its ticket if it has one.
    std::optional<MarkedSubdirectory> take_marked(std::size_t number);

    ReadAhead::Parent handle;  // null: closed; reopen() opens it where it is needed again
    std::uint64_t inode = 0;   // what the directory itself says, which on some file systems no listing does
    Subdirectories subdirectories;
    std::size_t decided = 0;                                     // of them
    std::optional<std::vector<MarkedSubdirectory>> marked = {};  // nothing: nobody looked
    std::size_t marked_decided = 0;                              // of them
    DirectoryRow row;
    std::optional<DirectoryRow> before = {};  // as it is stored
    // Its subdirectories are those that are stored, and nothing is known to be left below them; its sums are
    // those of before, less the subdirectories that are due.
    bool has_same_entries = false;
    // The sums of the subdirectories that were due. Apart, as sums that are too large could not be taken out
    // of again.
    DirectoryRow found = {};
    std::uint64_t skipped = 0;            // of those stored below it, not below a due one
    bool has_lost_newest = false;         // a due one had the newest mtime of all
    std::optional<Files> new_files = {};  // to be kept once the directory, which is new, has an id
    Reason reason;
    tracker::MarkCursor marks;
    StoredChildren stored;
    std::size_t path_bytes = 0;
    std::deque<Child> due = {};  // by name
    std::size_t asked = 0;       // of those due, the first: they have a ticket, or are unreachable
    std::vector<DirectoryRow> written = {};  // children whose rows are to be put
  };

  base::Result<> decide_ahead(Frame& frame);
  base::Result<> decide_next(Frame& frame);
  static void take_out(Frame& frame, const DirectoryRow& stored);
  base::Result<> ask_for_due(Frame& frame);
  void ask_for(Child& child);
  base::Result<ReadAhead::Parent> reopen();
  base::Result<> visit(Frame& parent);
  base::Result<DirectoryRead> read(Child& child);
  base::Result<> take(Frame& parent, Child child, DirectoryRead read);
  base::Result<> push(DirectoryRead read, std::optional<DirectoryRow> stored, const DirectoryRow& fresh,
                      Reason reason, const tracker::MarkCursor& marks);
  base::Result<> finish();
  base::Result<> finish_same_entries(Frame& frame);
  bool is_replaying() const { return log_ != nullptr && log_->is_replaying(); }
  std::size_t due_max() const;

  // The stored row of that name; rows that sort before it are of directories that are gone.
  base::Result<std::optional<DirectoryRow>> take_stored(Frame& parent, std::string_view name);
  base::Result<> erase(Frame& parent, const DirectoryRow& row);
  base::Result<> erase_rest(Frame& parent);
  base::Result<> forget(Frame& parent, Child& child);

  base::Result<> leave_unread(Frame& parent, Child child, const base::Error& error);
  base::Result<> keep_mount_point(Frame& parent, Child child);
  base::Result<> add(Frame& parent, DirectoryRow row);
  base::Result<> put_written(Frame& frame);

  base::Result<std::optional<Files>> take_files(DirectoryRow& row, Listing& listing);
  base::Result<> keep_new_files(Frame& frame);
  base::Result<> take_listing(DirectoryRow& row, const Listing& listing, bool is_new);
  base::Result<> note(std::string_view path, Change change);
  void tell_progress();
  std::string real_path() const;

  WalkContext& context_;
  const std::filesystem::path drive_;
  const std::int64_t parent_of_root_;
  WalkLog* const log_;
  std::optional<ReadAhead> read_ahead_;
  std::string path_;  // of the directory dealt with
  std::deque<Frame> open_;
  std::size_t due_ = 0;              // in all frames
  std::size_t new_files_bytes_ = 0;  // likewise
};

}  // namespace spoor::scanner
