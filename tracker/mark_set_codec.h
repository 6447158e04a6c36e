// A MarkSet as it stands in snapshots and in cycle frames alike (docs/formats.md, "Mark set").
#pragma once

#include "base/byte_codec.h"
#include "base/error.h"
#include "tracker/ids.h"
#include "tracker/mark_set.h"

namespace spoor::tracker {

// Packs what is shorter so: sparse filters are never long, whether packed in memory or not.
void encode_mark_set(base::ByteWriter& out, const MarkSet& marks);

// What came packed stays packed. Fails with Errc::snapshot_corrupt; never allocates more than in proportion
// to what is left to read. Tree marks of more bytes than this are joined.
base::Result<MarkSet> decode_mark_set(base::ByteReader& in,
                                      std::size_t tree_bytes_max = TreeMarks::bytes_max);

void encode_instance(base::ByteWriter& out, const InstanceId& id);
InstanceId decode_instance(base::ByteReader& in);

}  // namespace spoor::tracker
