#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "scanner/directory_reader.h"
#include "scanner/directory_store.h"
#include "scanner/pace.h"
#include "scanner/scan_plan.h"
#include "scanner/scan_record.h"
#include "scanner/stored_children.h"
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
  WalkFigures figures;  // so far, all drives
  std::string path;     // the real one of the directory just read
};

// What a walk works with. All that is referred to must outlive it.
struct WalkContext {
  const DirectoryReader& reader;
  const ScanPlan& plan;
  const tracker::NamespaceRules& rules;
  DirectoryStore& store;
  Pace& pace;
  std::stop_token stop = {};
  std::uint64_t scan_id = 0;
  std::uint64_t progress_every = 1000;  // directories read
  std::function<void(const Progress&)> progress = {};

  // Of all drives walked with this context.
  WalkFigures figures = {};
  ScanErrors errors = {};
};

// Whether the directory found is not the stored one, though it has its inode number.
bool is_another(const DirectoryRow& stored, const DirectoryHandle& found);

// Walks one drive below its root, and brings the rows of its directories up to date.
//
// A directory for which the plan knows no reason keeps its row, and is not touched. One that is read
// gets new totals, and its subdirectories are asked the same; those gone from its listing are removed
// with all below. What can't be read keeps its totals and all below it, and is left for next time.
//
// Rows of new directories are written children first, all those of a parent together, so that they are
// appended in key order. No recursion: depth costs memory and, where several subdirectories of one
// directory are still to be read, a descriptor a level.
//
// Not thread-safe.
class Walker {
 public:
  // `drive` is for messages; `parent_of_root` is where the root's row stands.
  Walker(WalkContext& context, const std::filesystem::path& drive, std::int64_t parent_of_root);

  // Takes the root as read: its handle, its listing, the row it had (nothing for a new one) and the
  // reason why it was read. Fails where the database does, or with Errc::interrupted.
  base::Result<> walk(DirectoryHandle root, Listing listing, std::optional<DirectoryRow> stored,
                      Reason reason);

 private:
  // A directory that has been read, some of its subdirectories not yet.
  struct Frame {
    Frame(DirectoryHandle open, Listing found, DirectoryRow its_row, Reason why,
          const tracker::MarkCursor& its_marks, StoredChildren children)
        : handle(std::move(open)),
          listing(std::move(found)),
          row(std::move(its_row)),
          reason(why),
          marks(its_marks),
          stored(std::move(children)) {}

    bool all_seen() const { return next == listing.subdirectories.size(); }

    DirectoryHandle handle;  // closed with the last subdirectory opened
    Listing listing;
    std::size_t next = 0;  // of the listing's subdirectories
    DirectoryRow row;
    Reason reason;
    tracker::MarkCursor marks;
    StoredChildren stored;
    std::size_t path_bytes = 0;
    std::vector<DirectoryRow> written;  // children whose rows are to be put
  };

  // A subdirectory about to be dealt with.
  struct Child {
    const Subdirectory& entry;
    std::optional<DirectoryRow> stored;
    tracker::MarkCursor marks;
    Reason reason = Reason::clean;
  };

  base::Result<> step();
  base::Result<> visit(Frame& parent);
  base::Result<> enter(Frame& parent, Child child);
  base::Result<> read(Frame& parent, Child child, DirectoryHandle handle);
  base::Result<> push(DirectoryHandle handle, Listing listing, std::optional<DirectoryRow> stored,
                      const DirectoryRow& fresh, Reason reason, const tracker::MarkCursor& marks);
  base::Result<> finish();

  // The stored row of that name; rows that sort before it are of directories that are gone.
  base::Result<std::optional<DirectoryRow>> take_stored(Frame& parent, const std::string& name);
  base::Result<> erase(Frame& parent, const DirectoryRow& row);
  base::Result<> erase_rest(Frame& parent);
  base::Result<> forget(Frame& parent, Child& child);

  base::Result<> leave_unread(Frame& parent, Child child, const base::Error& error);
  base::Result<> keep_mount_point(Frame& parent, Child child);
  base::Result<> add(Frame& parent, DirectoryRow row);
  base::Result<> put_written(Frame& frame);

  void take_listing(DirectoryRow& row, const Listing& listing, bool is_new);
  void tell_progress();
  std::string real_path() const;

  WalkContext& context_;
  const std::filesystem::path drive_;
  const std::int64_t parent_of_root_;
  std::uint64_t device_ = 0;
  std::string path_;  // of the directory dealt with
  std::deque<Frame> open_;
};

}  // namespace spoor::scanner
