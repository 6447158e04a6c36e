#include "scanner/walk/drive_walk.h"

#include <fmt/core.h>

#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "scanner/errors.h"
#include "scanner/walk/directory_identity.h"

namespace spoor::scanner {
namespace {

base::Error unmounted_error() {
  return {
      std::make_error_code(std::errc::no_such_device),
      "it is an empty directory, another one than at the last scan: nothing seems to be mounted there; mount "
      "it, or run `spoor scan --full`, which takes it as it is"};
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
  const auto identity = reader.drive_identity(root);
  if (!identity) return identity.error();
  if (!*identity) return other_drive_error("carries no identity (.spoor/drive.json)");
  if (**identity != expected) return other_drive_error("carries another drive's identity");
  return {};
}

}  // namespace

base::Result<> DriveWalk::begin() {
  auto found = store().find(parent_of_root(), "");
  if (!found) return found.error();
  stored_ = std::move(*found);
  if (stored_) context_.dirs_known += 1 + stored_->directories;
  if (!drive_.refused.empty()) return fail(drive_.refused);
  const auto seen = context_.environment.reader.look_at_drive(drive_.path);
  if (!seen) return fail(seen.error().message);
  seen_ = seen->facts();
  if (reason_to_read(*seen) == Reason::clean) {
    // Those of a drive that was walked before this scan was resumed have been counted.
    if (!cursor().resumed.is_done()) context_.figures.dirs_skipped += 1 + stored_->directories;
    return {};
  }
  auto root = open();
  if (root) return walk(std::move(*root));
  if (root.error().code == Errc::interrupted) return root.error();
  return fail(root.error().message);
}

base::Result<> DriveWalk::keep_so_far(DrivePlaces& places) {
  if (failed_) return {};
  is_kept_ = is_over();
  if (!walker_) {
    if (cursor().resumed.is_done()) places[id_] = std::nullopt;
    return {};
  }
  if (auto kept = walker_->keep_so_far(); !kept) return kept;
  std::optional<std::string>& place = places[id_];
  if (walker_->is_over()) return {};
  place = walker_->place();
  if (!place) place = context_.places.at(id_);
  return {};
}

PlanCursor DriveWalk::cursor() const {
  const auto place = context_.places.find(id_);
  if (place == context_.places.end()) return plan_.root(drive_.identity);
  return plan_.root(drive_.identity, place->second ? ResumePoint::at(*place->second) : ResumePoint::done());
}

bool DriveWalk::looks_unmounted(const DirectoryRead& root) const {
  const Listing& listing = root.listing;
  const bool is_empty = listing.own.files == 0 && listing.subdirectories.empty() && !listing.incomplete;
  return is_empty && stored_ && (stored_->directories > 0 || stored_->subtree.files > 0) &&
         reason_to_read(root.handle) == Reason::other_directory;
}

base::Result<DirectoryHandle> DriveWalk::open_checked() const {
  auto handle = context_.environment.reader.open_drive(drive_.path);
  if (!handle) return handle;
  if (auto checked = check_identity(context_.environment.reader, *handle, drive_.identity); !checked)
    return checked.error();
  return handle;
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
  auto handle = open_checked();
  if (!handle) return handle.error();
  DirectoryRead root;
  root.handle = std::move(*handle);
  seen_ = root.handle.facts();
  context_.pace.wait_until_due(context_.environment.stop);
  auto listing = context_.environment.reader.read(root.handle, "", context_.options.rules,
                                                  context_.listing_parts(), context_.environment.stop);
  if (!listing) return listing.error();
  root.listing = std::move(*listing);
  if (!context_.options.full && looks_unmounted(root)) return unmounted_error();
  return root;
}

Reason DriveWalk::reason_to_read(const DirectoryHandle& handle) const {
  if (!stored_) return Reason::unknown;
  if (is_another(*stored_, handle)) return Reason::other_directory;
  ScanPlan::Known known = ScanPlan::Known::of(*stored_);
  // A drive that failed before it was ever walked has no inode to compare.
  if (!stored_->is_read) known.inode = handle.inode;
  return plan_.reason(cursor(), handle.inode, known, std::nullopt);
}

base::Result<> DriveWalk::walk(DirectoryRead root) {
  const Reason reason = reason_to_read(root.handle);
  if (reason == Reason::other_directory) {
    if (auto emptied = empty_drive(context_, id_); !emptied) return emptied;
    stored_.reset();
  }
  walker_.emplace(context_, plan_, cursor(), drive_, id_);
  return walker_->begin(std::move(root), std::move(stored_), reason);
}

base::Result<> DriveWalk::fail(const std::string& why) {
  DirectoryRow row = stored_.value_or(DirectoryRow());
  row.set_state(DirectoryState::unread);
  if (row.id == 0) row.id = store().new_id();
  if (auto put = store().put(parent_of_root(), row); !put) return put.error();
  context_.touched.add("");
  context_.add_error(drive_.path.native(), why);
  failed_ = ScanError{drive_.path.native(), why};
  return {};
}

base::Result<> walk_side_by_side(std::deque<DriveWalk>& walks,
                                 const std::function<base::Result<>()>& between) {
  std::vector<DriveWalk*> open;
  for (DriveWalk& walk : walks) {
    if (auto begun = walk.begin(); !begun) return begun;
    if (!walk.is_over()) open.push_back(&walk);
  }
  while (!open.empty()) {
    bool has_stepped = false;
    for (DriveWalk* const walk : open) {
      const bool is_last = open.size() == 1;
      if (!is_last && walk->would_wait()) continue;
      has_stepped = true;
      if (auto stepped = walk->step(is_last); !stepped) return stepped;
    }
    if (!has_stepped) {
      if (auto stepped = open.front()->step(true); !stepped) return stepped;
    }
    std::erase_if(open, [](const DriveWalk* walk) { return walk->is_over(); });
    if (auto done = between(); !done) return done;
  }
  return {};
}

}  // namespace spoor::scanner
