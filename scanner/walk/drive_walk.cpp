#include "scanner/walk/drive_walk.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <system_error>
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

std::optional<DirectoryRow> root_of(const WalkContext& context, std::int64_t drive) {
  return context.transaction.directories().find(DirectoryStore::parent_of_root(drive), "");
}

// Removes all that is stored of a drive, and resets the change feed. Returns how many directories that were.
std::uint64_t erase_drive(WalkContext& context, std::int64_t drive) {
  ScanTransaction& transaction = context.transaction;
  context.touched.add_all();
  context.places.erase(drive);
  transaction.changes().reset();
  transaction.links().erase_drive(drive);
  if (OwnerSums* const owners = transaction.owners()) owners->erase_drive(drive);
  const auto root = root_of(context, drive);
  if (!root) return 0;
  DirectoryStore& directories = transaction.directories();
  directories.put_names(DirectoryStore::parent_of_root(drive), {{"", std::nullopt}});
  return directories.erase(*root, context.environment.stop);
}

void empty_drive(WalkContext& context, std::int64_t drive) {
  context.figures.dirs_deleted += erase_drive(context, drive);
}

// Anything on the drive may have changed: its root counts as unread, so that all of it is walked, in this
// scan or, if the drive fails, once it can be.
void walk_all(WalkContext& context, const KnownDrive& known, const std::string& reason) {
  auto root = root_of(context, known.id);
  if (!root) return;
  root->set_state(DirectoryState::unread);
  context.places.erase(known.id);
  context.transaction.directories().put(*root);
  context.drive_gaps.push_back({known.drive.path.native(), reason});
}

void apply_gap(WalkContext& context, const KnownDrive& known) {
  const Drive& drive = known.drive;
  if (drive.gap.empty() && drive.gap_reason.empty()) return;
  if (context.is_resumed) return;  // it was applied before
  const auto last = context.transaction.setting(gap_key(known.id));
  if (!drive.gap.empty() && last == drive.gap) return;
  walk_all(context, known, drive.gap_reason);
  // Where it is not known what is marked, the watch may still be the one that the last scan knew.
  if (!drive.gap.empty()) context.transaction.set_setting(gap_key(known.id), drive.gap);
}

// Nothing if the drive has the stamp that is expected.
std::optional<std::string> why_rolled_back(const WalkContext& context, const Drive& drive,
                                           const std::string& expected) {
  const auto root = context.environment.reader.look_at_drive(drive.path);
  if (!root) return root.error().message;
  const auto content =
      context.environment.reader.read_file(*root, tracker::drive_stamp_file, tracker::drive_stamp_bytes_max);
  if (!content) return content.error().message;
  const auto found = tracker::parse_drive_stamp(content->value_or(""));
  if (found && (found->stamp == expected || found->before == expected)) return std::nullopt;
  return "it does not have the stamp of the last scan: it was rolled back, or is an older copy";
}

// A drive that was rolled back has older content, without a mark, and nothing else tells. Its stamp is not
// expected any more: that all is to be walked is stored with the root.
void apply_stamp(WalkContext& context, const KnownDrive& known) {
  const auto expected = context.transaction.setting(stamp_key(known.id));
  if (!expected) return;
  const auto why = why_rolled_back(context, known.drive, *expected);
  if (!why) return;
  context.transaction.remove_setting(stamp_key(known.id));
  walk_all(context, known, *why);
}

void update_identity(WalkContext& context, KnownDrive& known) {
  Drive& drive = known.drive;
  const auto before = context.transaction.setting(identity_key(known.id));
  // The last scan may know an identity that the daemon does not.
  if (drive.identity.empty()) drive.identity = before.value_or("");
  if (drive.identity.empty() || before == drive.identity) return;
  if (before) {
    empty_drive(context, known.id);
    context.transaction.remove_setting(stamp_key(known.id));
  }
  context.transaction.set_setting(identity_key(known.id), drive.identity);
}

void update(WalkContext& context, KnownDrive& known) {
  if (known.drive.overlaps) {
    // What is stored of it counts files of the other drive again.
    const auto root = root_of(context, known.id);
    if (root && root->is_read) empty_drive(context, known.id);
  }
  if (!known.drive.refused.empty()) return;
  update_identity(context, known);
  apply_stamp(context, known);
  apply_gap(context, known);
}

base::Error other_drive_error(std::string_view what) {
  return {
      std::make_error_code(std::errc::no_such_device),
      fmt::format("it {}: it is not mounted, or was replaced, since the scan began; mount it, or, if it is "
                  "the drive from now on, run `spoor drives accept`",
                  what)};
}

// Another file system may be mounted at the path at any time: only the open directory counts.
base::Result<> check_identity(const DirectoryReader& reader, const DirectoryHandle& root,
                              const std::string& expected) {
  if (expected.empty()) return {};
  const auto content =
      reader.read_file(root, tracker::drive_identity_file, tracker::drive_identity_bytes_max);
  if (!content) return content.error();
  if (!*content) return other_drive_error("carries no identity (.spoor/drive.json)");
  const auto identity = tracker::parse_drive_identity(**content);
  if (!identity) {
    return base::Error(std::make_error_code(std::errc::bad_message),
                       fmt::format("its identity, {}, is corrupt", tracker::drive_identity_file));
  }
  if (*identity != expected) return other_drive_error("carries another drive's identity");
  return {};
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

std::vector<KnownDrive> match_drives(WalkContext& context) {
  ScanTransaction& transaction = context.transaction;
  std::map<std::string, StoredDrive> before;
  for (const StoredDrive& drive : transaction.drives()) before[drive.path] = drive;
  std::vector<KnownDrive> matched;
  for (const Drive& drive : context.options.drives) {
    const auto entry = before.extract(drive.path.native());
    if (entry.empty()) transaction.changes().reset();
    const StoredDrive its = entry.empty() ? transaction.add_drive(drive.path.native()) : entry.mapped();
    update(context, matched.emplace_back(KnownDrive{drive, its.id}));
  }
  // Directories of the others are not counted as deleted: they may still exist, on a drive that is not listed
  // any more.
  for (const auto& [path, drive] : before) {
    erase_drive(context, drive.id);
    transaction.forget_drive(drive);
  }
  return matched;
}

void DriveWalk::begin() {
  stored_ = root_of(context_, id_);
  if (stored_) context_.dirs_known += 1 + stored_->directories;
  if (!drive_.refused.empty()) return fail(drive_.refused);
  const auto seen = context_.environment.reader.look_at_drive(drive_.path);
  if (!seen) return fail(seen.error().message);
  seen_ = seen->facts();
  if (reason_to_read(*seen) == Reason::clean) {
    // Those of a drive that was walked before this scan was resumed have been counted.
    if (!cursor().resumed.is_done()) context_.figures.dirs_skipped += 1 + stored_->directories;
    return;
  }
  auto root = open();
  context_.throw_if_stopped();
  if (!root) return fail(root.error().message);
  walk(std::move(*root));
}

void DriveWalk::keep_so_far(DrivePlaces& places) {
  if (failed_) return;
  is_kept_ = is_over();
  if (!walker_) {
    if (cursor().resumed.is_done()) places[id_] = std::nullopt;
    return;
  }
  walker_->keep_so_far();
  std::optional<std::string>& place = places[id_];
  if (walker_->is_over()) return;
  place = walker_->place();
  if (!place) place = context_.places.at(id_);
}

PlanCursor DriveWalk::cursor() const {
  const auto place = context_.places.find(id_);
  if (place == context_.places.end()) return context_.plan->root(drive_.identity);
  return context_.plan->root(drive_.identity,
                             place->second ? ResumePoint::at(*place->second) : ResumePoint::done());
}

std::optional<std::string> DriveWalk::why_another() const {
  if (failed_) return std::nullopt;
  const auto found = context_.environment.reader.look_at_drive(drive_.path);
  if (!found) return found.error().message;
  if (const auto checked = check_identity(context_.environment.reader, *found, drive_.identity); !checked)
    return checked.error().message;
  if (found->device == seen_.device && found->inode == seen_.inode) return std::nullopt;
  return other_drive_error("is another directory than the one that was walked").message;
}

base::Result<DirectoryRead> DriveWalk::open() {
  const DirectoryReader& reader = context_.environment.reader;
  auto handle = reader.open_drive(drive_.path);
  if (!handle) return handle.error();
  if (auto checked = check_identity(reader, *handle, drive_.identity); !checked) return checked.error();
  DirectoryRead root;
  root.handle = std::move(*handle);
  seen_ = root.handle.facts();
  context_.wait_until_due();
  auto listing = reader.read(root.handle, "", context_.options.rules, context_.listing_parts(),
                             context_.environment.stop);
  if (!listing) return listing.error();
  root.listing = std::move(*listing);
  if (context_.options.full || !looks_unmounted(root)) return root;
  return base::Error(
      std::make_error_code(std::errc::no_such_device),
      "it is an empty directory, another one than at the last scan: nothing seems to be mounted there; mount "
      "it, or run `spoor scan --full`, which takes it as it is");
}

bool DriveWalk::looks_unmounted(const DirectoryRead& root) const {
  const Listing& listing = root.listing;
  const bool is_empty = listing.own.files == 0 && listing.subdirectories.empty() && !listing.incomplete;
  return is_empty && stored_ && (stored_->directories > 0 || stored_->subtree.files > 0) &&
         reason_to_read(root.handle) == Reason::other_directory;
}

Reason DriveWalk::reason_to_read(const DirectoryHandle& handle) const {
  if (!stored_) return Reason::unknown;
  if (is_another(*stored_, handle)) return Reason::other_directory;
  ScanPlan::Known known = ScanPlan::Known::of(*stored_);
  // A drive that failed before it was ever walked has no inode to compare.
  if (!stored_->is_read) known.inode = handle.inode;
  return context_.plan->reason(cursor(), handle.inode, known, std::nullopt);
}

void DriveWalk::walk(DirectoryRead root) {
  const Reason reason = reason_to_read(root.handle);
  if (reason == Reason::other_directory) {
    empty_drive(context_, id_);
    stored_.reset();
  }
  walker_.emplace(context_, cursor(), drive_, id_);
  walker_->begin(std::move(root), std::move(stored_), reason);
}

void DriveWalk::fail(const std::string& why) {
  DirectoryRow row = stored_.value_or(DirectoryRow());
  row.set_state(DirectoryState::unread);
  if (row.id == 0) row.id = store().new_id();
  store().put(DirectoryStore::parent_of_root(id_), row);
  context_.touched.add("");
  context_.add_error(drive_.path.native(), why);
  failed_ = ScanError{drive_.path.native(), why};
}

void walk_side_by_side(std::deque<DriveWalk>& walks, const std::function<void()>& between) {
  std::vector<DriveWalk*> open;
  for (DriveWalk& walk : walks) {
    walk.begin();
    if (!walk.is_over()) open.push_back(&walk);
  }
  while (!open.empty()) {
    bool has_stepped = false;
    for (DriveWalk* const walk : open) {
      const bool is_last = open.size() == 1;
      if (!is_last && walk->would_wait()) continue;
      has_stepped = true;
      walk->step(is_last);
    }
    if (!has_stepped) open.front()->step(true);
    std::erase_if(open, [](const DriveWalk* walk) { return walk->is_over(); });
    between();
  }
}

}  // namespace spoor::scanner
