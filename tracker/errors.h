// What can go wrong in tracker/, as far as some caller reacts to it.
#pragma once

#include <system_error>

namespace spoor::tracker {

enum class Errc {
  invalid_path = 1,  // Empty, or with `..` or a NUL byte.
  path_too_long,     // The path, or one of its components.
  invalid_shape,     // A filter's size or number of hashes is outside what can be.
  snapshot_corrupt,  // Length, checksum or a field of a saved state is wrong.
  snapshot_foreign,  // A whole snapshot, of another node or cluster.
  snapshot_unknown,  // A format version this program does not know, of a snapshot or a journal.
  journal_corrupt,   // Length, checksum or a field in the journal is wrong.
  not_durable,       // The journal can't be written: what was marked may not survive.
  drive_refused,     // Another drive than the one known by this path, or none.
};

const std::error_category& tracker_category();
std::error_code make_error_code(Errc code);

}  // namespace spoor::tracker

template <>
struct std::is_error_code_enum<spoor::tracker::Errc> : std::true_type {};
