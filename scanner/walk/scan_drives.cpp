#include "scanner/walk/scan_drives.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "base/directory_overlap.h"
#include "tracker/storage/drive_registry.h"

namespace spoor::scanner {
namespace {

// A drive that overlaps with another one is not walked: else the files of both would be counted twice. Of two
// that are the same directory, the one that is known to be a drive is walked.
void refuse_overlapping(std::vector<Drive>& drives) {
  std::vector<std::size_t> order(drives.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto is_known = [&](std::size_t at) {
    return drives[at].refused.empty() && !drives[at].identity.empty();
  };
  std::ranges::sort(order, {}, [&](std::size_t at) { return std::pair(!is_known(at), at); });
  std::vector<std::filesystem::path> paths;
  paths.reserve(order.size());
  for (const std::size_t at : order) paths.push_back(drives[at].path);
  for (const base::DirectoryOverlap& overlap : base::find_overlaps(paths)) {
    Drive& drive = drives[order[overlap.directory]];
    if (!drive.refused.empty()) continue;
    drive.refused = base::overlap_text(overlap, paths);
    drive.overlaps = true;
  }
}

// Removes all that is stored of a drive, and resets the change feed. Returns how many directories that were.
base::Result<std::uint64_t> erase_drive(WalkContext& context, std::int64_t drive) {
  ScanTransaction& transaction = context.transaction;
  context.touched.add_all();
  context.places.erase(drive);
  transaction.changes().reset();
  if (auto erased = transaction.links().erase_drive(drive); !erased) return erased.error();
  if (auto erased = transaction.forget_owners_of(drive); !erased) return erased.error();
  const std::int64_t parent = DirectoryStore::parent_of_root(drive);
  const auto root = transaction.directories().find(parent, "");
  if (!root) return root.error();
  if (!*root) return std::uint64_t{0};
  if (auto put = transaction.directories().put_names(parent, {{"", std::nullopt}}); !put) return put.error();
  return transaction.directories().erase(**root, context.environment.stop);
}

base::Result<StoredDrive> add(ScanTransaction& transaction, const Drive& drive) {
  transaction.changes().reset();
  return transaction.add_drive(drive.path.native());
}

// What is stored of a drive that overlaps with another one counts files of that one again.
base::Result<> empty_overlapping(WalkContext& context, std::int64_t id) {
  const auto root = context.transaction.directories().find(DirectoryStore::parent_of_root(id), "");
  if (!root) return root.error();
  const bool was_never_read = !*root || !(*root)->is_read;
  return was_never_read ? base::Result<>() : empty_drive(context, id);
}

// Anything on the drive may have changed: its root counts as unread, so that all of it is walked, in this
// scan or, if the drive fails, once it can be.
base::Result<> walk_all(WalkContext& context, const Drive& drive, std::int64_t id, std::string_view reason) {
  const std::int64_t parent = DirectoryStore::parent_of_root(id);
  auto root = context.transaction.directories().find(parent, "");
  if (!root) return root.error();
  if (!*root) return {};
  (*root)->set_state(DirectoryState::unread);
  context.places.erase(id);
  if (auto put = context.transaction.directories().put(**root); !put) return put;
  context.drive_gaps.push_back({drive.path.native(), std::string(reason)});
  return {};
}

base::Result<> apply_gap(WalkContext& context, const Drive& drive, std::int64_t id) {
  if (drive.gap.empty() && drive.gap_reason.empty()) return {};
  if (context.is_resumed) return {};  // it was applied before
  const auto known = context.transaction.setting(gap_key(id));
  if (!known) return known.error();
  if (!drive.gap.empty() && *known == drive.gap) return {};
  if (auto walked = walk_all(context, drive, id, drive.gap_reason); !walked) return walked;
  // Where it is not known what is marked, the watch may still be the one that the last scan knew.
  return drive.gap.empty() ? base::Result<>() : context.transaction.set_setting(gap_key(id), drive.gap);
}

// The stamp is not expected any more: that all is to be walked is stored with the root.
base::Result<> walk_rolled_back(WalkContext& context, const Drive& drive, std::int64_t id,
                                std::string_view reason) {
  if (auto removed = context.transaction.remove_setting(stamp_key(id)); !removed) return removed;
  return walk_all(context, drive, id, reason);
}

// A drive that was rolled back has older content, without a mark, and nothing else tells.
base::Result<> apply_stamp(WalkContext& context, const Drive& drive, std::int64_t id) {
  const auto expected = context.transaction.setting(stamp_key(id));
  if (!expected) return expected.error();
  if (!*expected) return {};
  const auto root = context.environment.reader.look_at_drive(drive.path);
  if (!root) return walk_rolled_back(context, drive, id, root.error().message);
  const auto content = context.environment.reader.drive_stamp(*root);
  if (!content) return walk_rolled_back(context, drive, id, content.error().message);
  const auto found = tracker::parse_drive_stamp(content->value_or(""));
  if (found && (found->stamp == **expected || found->before == **expected)) return {};
  return walk_rolled_back(
      context, drive, id,
      "it does not have the stamp of the last scan: it was rolled back, or is an older copy");
}

base::Result<> update_identity(WalkContext& context, Drive& drive, std::int64_t id) {
  const auto before = context.transaction.setting(identity_key(id));
  if (!before) return before.error();
  // The last scan may know an identity that the daemon does not.
  if (drive.identity.empty()) drive.identity = before->value_or("");
  if (drive.identity.empty() || *before == drive.identity) return {};
  if (*before) {
    if (auto emptied = empty_drive(context, id); !emptied) return emptied;
    if (auto removed = context.transaction.remove_setting(stamp_key(id)); !removed) return removed;
  }
  return context.transaction.set_setting(identity_key(id), drive.identity);
}

base::Result<> update(WalkContext& context, Drive& drive, std::int64_t id) {
  if (drive.overlaps) return empty_overlapping(context, id);
  if (!drive.refused.empty()) return {};
  if (auto updated = update_identity(context, drive, id); !updated) return updated;
  if (auto applied = apply_stamp(context, drive, id); !applied) return applied;
  return apply_gap(context, drive, id);
}

// Its directories are not counted as deleted: they may still exist, on a drive that is not listed any more.
base::Result<> remove(WalkContext& context, const StoredDrive& drive) {
  if (auto erased = erase_drive(context, drive.id); !erased) return erased.error();
  return context.transaction.forget_drive(drive);
}

}  // namespace

base::Result<> check_drives(std::vector<Drive>& drives) {
  std::set<std::filesystem::path> seen;
  for (Drive& drive : drives) {
    std::filesystem::path path = drive.path.lexically_normal();
    if (!path.has_filename() && path.has_parent_path()) path = path.parent_path();
    const char* wrong = !path.is_absolute()         ? "is no absolute path"
                        : !seen.insert(path).second ? "is given twice"
                                                    : nullptr;
    if (wrong != nullptr) {
      return base::Error(
          std::make_error_code(std::errc::invalid_argument),
          fmt::format("the drive {} {}; correct the list of drives", drive.path.native(), wrong));
    }
    drive.path = std::move(path);
  }
  refuse_overlapping(drives);
  return {};
}

base::Result<std::vector<KnownDrive>> match_drives(WalkContext& context) {
  auto stored = context.transaction.drives();
  if (!stored) return stored.error();
  std::map<std::string, StoredDrive> before;
  for (StoredDrive& drive : *stored) before[drive.path] = drive;
  std::vector<KnownDrive> matched;
  for (Drive drive : context.options.drives) {
    auto entry = before.extract(drive.path.native());
    auto its = entry.empty() ? add(context.transaction, drive) : base::Result<StoredDrive>(entry.mapped());
    if (!its) return its.error();
    if (auto updated = update(context, drive, its->id); !updated) return updated.error();
    matched.push_back({std::move(drive), its->id});
  }
  for (const auto& [path, drive] : before) {
    if (auto removed = remove(context, drive); !removed) return removed.error();
  }
  return matched;
}

base::Result<> empty_drive(WalkContext& context, std::int64_t drive) {
  const auto erased = erase_drive(context, drive);
  if (!erased) return erased.error();
  context.figures.dirs_deleted += *erased;
  return {};
}

}  // namespace spoor::scanner
