// The encoding of a MarkSet in snapshots and cycle frames (docs/formats.md, "Mark set").
#pragma once

#include "base/byte_codec.h"
#include "base/error.h"
#include "tracker/cycles/ids.h"
#include "tracker/filter/mark_set.h"

namespace spoor::tracker {

// Packs each filter that is shorter packed, whether it is packed in memory or not.
void encode_mark_set(base::ByteWriter& out, const MarkSet& marks);

// Packed filters stay packed. Fails with Errc::snapshot_corrupt. The memory is proportional to the bytes left
// to read. Tree marks are joined if their paths exceed `tree_bytes_max`.
base::Result<MarkSet> decode_mark_set(base::ByteReader& in,
                                      std::size_t tree_bytes_max = TreeMarks::bytes_max);

void encode_instance(base::ByteWriter& out, const InstanceId& id);
InstanceId decode_instance(base::ByteReader& in);

}  // namespace spoor::tracker
