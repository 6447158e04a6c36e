// Listings that are known without reading the directory.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/directory_store.h"
#include "scanner/walk/directory_reader.h"
#include "scanner/walk/listing.h"

namespace spoor::scanner {

// Whether the listing of the directory with this row may be known: no file counts in it, and it was not
// changed since `settled_before_ns` (WalkContext) when it was read.
bool may_be_known(const DirectoryRow& stored, std::int64_t settled_before_ns);

// The listing of such a directory, from the rows of its subdirectories. Nothing if what is found is not the
// stored directory, or if its times are not those with which the stored signature was made: it has to be
// read. Holds on file systems of DirectoryReader::changes_times_with_entries(). Fails where the database
// does.
base::Result<std::optional<Listing>> known_listing(DirectoryStore& store, const DirectoryRow& stored,
                                                   const DirectoryFacts& found,
                                                   std::int64_t settled_before_ns);

}  // namespace spoor::scanner
