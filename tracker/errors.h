// Errors of tracker/ that some caller handles differently.
#pragma once

#include <system_error>

namespace spoor::tracker {

enum class Errc {
  invalid_path = 1,  // Empty, or with `..` or a NUL byte.
  path_too_long,     // The path, or one of its components.
  invalid_shape,     // A filter's size or number of hashes is out of range.
  snapshot_corrupt,  // Length, checksum or a field of a saved state is wrong.
  snapshot_foreign,  // A valid snapshot, but of another node or cluster.
  snapshot_unknown,  // A format version this program does not know, of a snapshot or a journal.
  journal_corrupt,   // Length, checksum or a field in the journal is wrong.
  not_durable,       // The journal can't be written: marks may not survive a crash.
  drive_refused,     // At this path is no drive, or another one than the known one.
};

std::error_code make_error_code(Errc code);

}  // namespace spoor::tracker

template <>
struct std::is_error_code_enum<spoor::tracker::Errc> : std::true_type {};
