#include "scanner/walk/drive_rows.h"

#include <utility>

namespace spoor::scanner {
namespace {

constexpr std::size_t new_files_bytes_max = 16U << 20U;

}  // namespace

void DriveRows::put_root(const DirectoryRow& row, const std::optional<DirectoryRow>& before) {
  directories().put(row);
  if (!before || named(row) != named(*before))
    directories().put_names(DirectoryStore::parent_of_root(drive_), {{row.name, named(row)}});
}

// A new directory gets its id after its subdirectories, so that rows are appended: its files are
// returned to wait for that, unless too many wait. `row` is as it was before.
std::optional<Files> DriveRows::take_files(std::string_view path, DirectoryRow& row, Listing& listing) {
  std::optional<Files> files = std::exchange(listing.files, std::nullopt);
  FileFeed* const feed = context_.transaction.files();
  if (feed == nullptr || !files) return std::nullopt;
  if (!row.is_read) {
    const std::size_t bytes = files->memory_bytes();
    if (row.id == 0 && new_files_bytes_ + bytes <= new_files_bytes_max) {
      new_files_bytes_ += bytes;
      return files;
    }
    if (row.id == 0) row.id = directories().new_id();
    feed->add(row.id, *files);
    return std::nullopt;
  }
  if (listing.incomplete) return std::nullopt;
  const bool differs = row.is_racy || row.signature != listing.signature;
  if (feed->update(row, *files, differs)) return std::nullopt;
  // As if all of it had been replaced: a consumer drops its copy of the directory, which may lack files, and
  // reads it anew.
  if (path.empty()) {
    context_.transaction.changes().reset();
  } else {
    record(path, Change::deleted);
  }
  return std::nullopt;
}

void DriveRows::add_files(std::int64_t directory, const Files& files) {
  new_files_bytes_ -= files.memory_bytes();
  context_.transaction.files()->add(directory, files);
}

// An incomplete listing leaves the row's own totals and signature: a change shows once it can be summed up.
void DriveRows::apply_listing(std::string_view path, DirectoryRow& row, const Listing& listing,
                              bool keeps_subdirectories) {
  const bool is_new = !row.is_read;
  const bool is_changed =
      !is_new && !listing.incomplete && (row.is_racy || row.signature != listing.signature);
  ++context_.figures.dirs_walked;
  if (is_new) {
    ++context_.figures.dirs_new;
    record(path, Change::created);
  } else if (is_changed) {
    ++context_.figures.dirs_changed;
    record(path, Change::changed);
  }
  row.is_read = true;
  row.set_state(listing.incomplete ? DirectoryState::incomplete : DirectoryState::ok);
  if (listing.incomplete && !is_new) {
    row.restart_sums(row.own);
    return;
  }
  row.signature = listing.signature;
  row.entries = listing.entries;
  row.is_racy = listing.is_racy;
  const bool has_only_subdirectories = listing.own.files == 0 && !listing.subdirectories.empty();
  row.ctime_ns = has_only_subdirectories ? listing.ctime_ns : 0;
  replace_owners(path, row, listing);
  const bool is_same = keeps_subdirectories && !is_changed && row.own == listing.own;
  if (keeps_subdirectories) {
    row.replace_own(listing.own);
  } else {
    row.restart_sums(listing.own);
  }
  // Even where nothing changed, these were found later than what other directories have of the same files.
  if (is_same && listing.linked.empty()) return;
  context_.transaction.links().replace(drive_, path, listing.linked, is_new);
}

void DriveRows::replace_owners(std::string_view path, DirectoryRow& row, const Listing& listing) {
  if (OwnerSums* const sums = context_.transaction.owners())
    sums->replace(drive_, path, {row.owners, row.own}, {listing.owners, listing.own});
  row.owners = listing.owners;
}

// Before the rows of the directory, and of all below it, are removed.
void DriveRows::take_out_owners(std::string_view path, const DirectoryRow& row) {
  OwnerSums* const sums = context_.transaction.owners();
  if (sums == nullptr) return;
  sums->take_out(drive_, path, {row.owners, row.own});
  if (row.directories == 0) return;
  StoredTree below(directories(), row, path);
  while (const auto next = below.next()) {
    context_.throw_if_stopped();
    sums->take_out(drive_, below.path(), {next->owners, next->own});
  }
}

void DriveRows::record(std::string_view path, Change change) {
  context_.transaction.changes().add(drive_, path, change);
}

// Returns how many rows these were.
std::uint64_t DriveRows::erase_rows(std::string_view path, const DirectoryRow& row) {
  take_out_owners(path, row);
  const std::uint64_t erased = directories().erase(row, context_.environment.stop);
  context_.transaction.links().erase_below(drive_, path, context_.environment.stop);
  return erased;
}

void DriveRows::erase(std::string_view path, const DirectoryRow& row) {
  context_.touched.add_erased(path);
  record(path, Change::deleted);
  context_.figures.dirs_deleted += erase_rows(path, row);
}

void DriveRows::erase_mounted_over(std::string_view path, const DirectoryRow& row) {
  context_.touched.add_erased(path);
  context_.figures.dirs_deleted += erase_rows(path, row) - 1;
  if (row.state == DirectoryState::mount_point) return;
  record(path, Change::deleted);
  record(path, Change::created);
}

}  // namespace spoor::scanner
