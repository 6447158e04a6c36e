#include "scanner/feed/file_feed_reader.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string_view>

#include "scanner/store/change_log.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

// One lookup by primary key for each scan.
constexpr const char* changes_of_directory = R"sql(
SELECT name, scan, change FROM file_changes
WHERE scan IN (SELECT scan FROM feed WHERE scan > ?1 AND scan <= ?2) AND directory = ?3 AND name > ?4
ORDER BY name, scan)sql";

// The combined change of one file on one drive over all these scans.
struct FileChange {
  std::uint64_t scan = 0;
  bool was_there = false;  // before them
  bool is_there = false;   // after them
};

// The changes of a directory on one drive, by name.
class FileChanges {
 public:
  FileChanges(SqliteDatabase& database, std::uint64_t since, std::uint64_t until, std::int64_t directory,
              const std::string& after)
      : rows_(database, changes_of_directory, since, until, directory, after), has_row_(rows_.step()) {
    pop();
  }

  // The current name; null after the last one.
  const std::string* peek() const { return name_ ? &*name_ : nullptr; }
  const FileChange& change() const { return change_; }

  void pop() {
    name_.reset();
    while (has_row_) {
      const std::string_view name = rows_.blob(0);
      if (name_ && name != *name_) return;
      const auto kind = rows_.number<Change>(2);
      if (!name_) change_.was_there = kind != Change::created;
      change_.is_there = kind != Change::deleted;
      change_.scan = rows_.number<std::uint64_t>(1);
      name_ = name;
      has_row_ = rows_.step();
    }
  }

 private:
  SqliteStatement rows_;
  bool has_row_;
  std::optional<std::string> name_;
  FileChange change_;
};

// A directory on one drive: its changes, and all its files if needed.
class OnDrive {
 public:
  OnDrive(const DirectoryOnDrive& directory, FileChanges&& changes, std::optional<StoredFiles> stored)
      : is_new_(directory.is_new), changes_(std::move(changes)), stored_(std::move(stored)) {}

  // Sets `name` to the first name to report, if it sorts before `name`.
  void find_first(std::optional<std::string>& name) {
    const std::string* first = changes_.peek();
    if (is_new_) {
      const std::string* const stored = stored_->peek();
      if (first == nullptr || (stored != nullptr && *stored < *first)) first = stored;
    }
    if (first != nullptr && (!name || *first < *name)) name = *first;
  }

  // Adds the change of this file to the entry, and moves past it.
  void add(const std::string& name, FeedEntry& entry) {
    const bool has_changed = changes_.peek() != nullptr && *changes_.peek() == name;
    bool is_there = has_changed && changes_.change().is_there;
    if (stored_ && (is_new_ || !has_changed)) is_there = stored_->go_to(name) || is_there;
    const bool was_there = !is_new_ && !(has_changed && !changes_.change().was_there);
    entry.is_there = entry.is_there || is_there;
    entry.is_new = entry.is_new && (!is_there || !was_there);
    entry.is_deleted = entry.is_deleted || (has_changed && !is_there);
    if (has_changed) {
      entry.scan = std::max(entry.scan, changes_.change().scan);
      changes_.pop();
    }
    if (is_new_ && stored_->go_to(name)) stored_->pop();
  }

 private:
  const bool is_new_;
  FileChanges changes_;
  std::optional<StoredFiles> stored_;
};

}  // namespace

FileFeedReader::FileFeedReader(SqliteDatabase& database, std::uint64_t since, std::uint64_t until)
    : database_(database), since_(since), until_(until), store_(database) {}

bool FileFeedReader::read(const FeedEntry& directory, const std::vector<DirectoryOnDrive>& on_drives,
                          const std::string& after, const std::function<bool(const FeedEntry&)>& on_entry) {
  std::deque<OnDrive> drives;
  bool is_new = false;
  for (const DirectoryOnDrive& each : on_drives) {
    is_new = is_new || each.is_new;
    std::optional<StoredFiles> stored;
    // For a single drive the changes are sufficient.
    if (each.is_new || on_drives.size() > 1) {
      stored.emplace(store_, each.id);
      stored->seek_behind(after);
    }
    drives.emplace_back(each, FileChanges(database_, since_, until_, each.id, after), std::move(stored));
  }
  for (;;) {
    std::optional<std::string> name;
    for (OnDrive& drive : drives) drive.find_first(name);
    if (!name) return true;
    FeedEntry entry{.path = tracker::join_path(directory.path, *name), .is_file = true};
    if (is_new) entry.scan = directory.scan;
    entry.is_new = true;
    for (OnDrive& drive : drives) drive.add(*name, entry);
    entry.is_new = entry.is_there && entry.is_new;
    const bool is_reported = entry.is_there || entry.is_deleted;
    if (is_reported && !on_entry(entry)) return false;
  }
}

}  // namespace spoor::scanner
