#include "scanner/walk/drive_rows.h"

#include <algorithm>
#include <utility>

#include "scanner/errors.h"
#include "scanner/store/sqlite.h"

namespace spoor::scanner {
namespace {

constexpr std::size_t new_files_bytes_max = 16U << 20U;

}  // namespace

base::Result<> DriveRows::put_root(const DirectoryRow& row, const std::optional<DirectoryRow>& before) {
  if (before && named(row) == named(*before)) return directories().put(row);
  return directories().put(DirectoryStore::parent_of_root(drive_), row);
}

// A new directory gets its id after its subdirectories, so that rows are appended: its files are
// returned to wait for that, unless too many wait. `row` is as it was before.
base::Result<std::optional<Files>> DriveRows::take_files(std::string_view path, DirectoryRow& row,
                                                         Listing& listing) {
  std::optional<Files> files = std::exchange(listing.files, std::nullopt);
  FileFeed* const feed = context_.transaction.files();
  if (feed == nullptr || !files) return std::optional<Files>();
  if (!row.is_read) {
    const std::size_t bytes = files->memory_bytes();
    if (row.id == 0 && new_files_bytes_ + bytes <= new_files_bytes_max) {
      new_files_bytes_ += bytes;
      return files;
    }
    if (row.id == 0) row.id = directories().new_id();
    if (auto added = feed->add(row.id, *files); !added) return added.error();
    return std::optional<Files>();
  }
  if (listing.incomplete) return std::optional<Files>();
  const auto updated = feed->update(row, *files, row.is_racy || row.signature != listing.signature);
  if (!updated) return updated.error();
  if (!*updated) {
    // As if all of it had been replaced: a consumer drops its copy of the directory, and reads it anew.
    if (path.empty()) {
      context_.transaction.changes().reset();
    } else if (auto recorded = record(path, Change::deleted); !recorded) {
      return recorded.error();
    }
  }
  return std::optional<Files>();
}

base::Result<> DriveRows::add_files(std::int64_t directory, const Files& files) {
  new_files_bytes_ -= files.memory_bytes();
  return context_.transaction.files()->add(directory, files);
}

// An incomplete listing leaves the row's own totals and signature: a change shows once it can be summed up.
base::Result<> DriveRows::apply_listing(std::string_view path, DirectoryRow& row, const Listing& listing,
                                        bool keeps_subdirectories) {
  const bool is_new = !row.is_read;
  const bool is_changed =
      !is_new && !listing.incomplete && (row.is_racy || row.signature != listing.signature);
  ++context_.figures.dirs_walked;
  if (is_new) {
    ++context_.figures.dirs_new;
    if (auto recorded = record(path, Change::created); !recorded) return recorded;
  } else if (is_changed) {
    ++context_.figures.dirs_changed;
    if (auto recorded = record(path, Change::changed); !recorded) return recorded;
  }
  row.is_read = true;
  row.set_state(listing.incomplete ? DirectoryState::incomplete : DirectoryState::ok);
  if (!listing.incomplete || is_new) {
    row.signature = listing.signature;
    row.entries = listing.entries;
    row.is_racy = listing.is_racy;
    const bool has_only_subdirectories = listing.own.files == 0 && !listing.subdirectories.empty();
    row.ctime_ns = has_only_subdirectories ? listing.ctime_ns : 0;
  }
  if (listing.incomplete && !is_new) {
    row.restart_sums(row.own);
    return {};
  }
  if (auto replaced = replace_owners(path, row, listing); !replaced) return replaced;
  const bool is_same = keeps_subdirectories && !is_changed && row.own == listing.own;
  if (keeps_subdirectories) {
    row.replace_own(listing.own);
  } else {
    row.restart_sums(listing.own);
  }
  // Even where nothing changed, these were found later than what other directories have of the same files.
  if (is_same && listing.linked.empty()) return {};
  return context_.transaction.links().replace(drive_, path, listing.linked, is_new);
}

base::Result<> DriveRows::replace_owners(std::string_view path, DirectoryRow& row, const Listing& listing) {
  if (OwnerSums* const sums = context_.transaction.owners()) {
    auto replaced = guarded("sum up owners", context_.transaction.handle(), [&] {
      sums->replace(drive_, path, {row.owners, row.own}, {listing.owners, listing.own});
    });
    if (!replaced) return replaced;
  }
  row.owners = listing.owners;
  return {};
}

// Before the rows of the directory, and of all below it, are removed.
base::Result<> DriveRows::take_out_owners(std::string_view path, const DirectoryRow& row) {
  OwnerSums* const sums = context_.transaction.owners();
  if (sums == nullptr) return {};
  const auto take_out = [&](std::string_view at, const DirectoryRow& directory) {
    return guarded("sum up owners", context_.transaction.handle(),
                   [&] { sums->take_out(drive_, at, {directory.owners, directory.own}); });
  };
  if (auto taken = take_out(path, row); !taken || row.directories == 0) return taken;
  StoredTree below(directories(), row, path);
  for (;;) {
    if (context_.is_stopped()) return interrupted_error();
    const auto next = below.next();
    if (!next) return next.error();
    if (!*next) return {};
    if (auto taken = take_out(below.path(), **next); !taken) return taken;
  }
}

base::Result<> DriveRows::record(std::string_view path, Change change) {
  return context_.transaction.changes().add(drive_, path, change);
}

base::Result<> DriveRows::erase(std::string_view path, const DirectoryRow& row) {
  context_.touched.add_erased(path);
  if (auto recorded = record(path, Change::deleted); !recorded) return recorded;
  if (auto taken = take_out_owners(path, row); !taken) return taken;
  const auto erased = directories().erase(row, context_.environment.stop);
  if (!erased) return erased.error();
  context_.figures.dirs_deleted += *erased;
  return context_.transaction.links().erase_below(drive_, path, context_.environment.stop);
}

base::Result<> DriveRows::erase_mounted_over(std::string_view path, const DirectoryRow& row) {
  context_.touched.add_erased(path);
  if (auto taken = take_out_owners(path, row); !taken) return taken;
  const auto erased = directories().erase(row, context_.environment.stop);
  if (!erased) return erased.error();
  context_.figures.dirs_deleted += *erased - 1;
  auto links_erased = context_.transaction.links().erase_below(drive_, path, context_.environment.stop);
  if (!links_erased) return links_erased;
  if (row.state == DirectoryState::mount_point) return {};
  if (auto recorded = record(path, Change::deleted); !recorded) return recorded;
  return record(path, Change::created);
}

}  // namespace spoor::scanner
