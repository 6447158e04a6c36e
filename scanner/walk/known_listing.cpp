#include "scanner/walk/known_listing.h"

#include <utility>

namespace spoor::scanner {

bool may_be_known(const DirectoryRow& stored, std::int64_t settled_before_ns) {
  const bool is_whole = stored.state == DirectoryState::ok && stored.pending + stored.mount_points == 0;
  return is_whole && stored.is_read && stored.entries != 0 && !stored.is_racy && stored.own.files == 0 &&
         stored.directories > 0 && is_proof(stored.birth) && stored.own.mtime_ns < settled_before_ns &&
         !stored.subtree.is_saturated();
}

base::Result<std::optional<Listing>> known_listing(DirectoryStore& store, const DirectoryRow& stored,
                                                   const DirectoryFacts& found,
                                                   std::int64_t settled_before_ns) {
  const bool is_the_stored_one = found.inode == stored.inode && found.birth == stored.birth;
  const bool is_settled = found.mtime_ns == stored.own.mtime_ns && found.ctime_ns < settled_before_ns;
  if (!is_the_stored_one || !is_settled) return std::optional<Listing>();
  auto subdirectories = store.subdirectories(stored.id);
  if (!subdirectories) return subdirectories.error();
  EntryDigests digests;
  for (std::size_t at = 0; at < subdirectories->size(); ++at) {
    digests.add_subdirectory((*subdirectories)[at].name);
  }
  if (digests.signature(0, 0, found.mtime_ns, found.ctime_ns) != stored.signature) {
    return std::optional<Listing>();
  }
  return std::optional<Listing>(Listing{.own = stored.own,
                                        .signature = stored.signature,
                                        .entries = digests.entries(),
                                        .subdirectories = *std::move(subdirectories),
                                        .files = {},
                                        .ctime_ns = found.ctime_ns,
                                        .incomplete = {}});
}

}  // namespace spoor::scanner
