// The encoding of a MarkSet in snapshots and cycle frames (docs/formats.md, "Mark set"), and of what else a
// scan is made of.
#pragma once

#include "base/byte_codec.h"
#include "base/error.h"
#include "tracker/cycles/ids.h"
#include "tracker/cycles/peer_book.h"
#include "tracker/filter/mark_set.h"

namespace spoor::tracker {

// Packs each filter that is shorter packed, whether it is packed in memory or not.
void encode_mark_set(base::ByteWriter& out, const MarkSet& marks);

// Packed filters stay packed. Fails with Errc::snapshot_corrupt. The memory is proportional to the bytes left
// to read. Tree marks are joined if their paths exceed TreeMarks::bytes_max.
base::Result<MarkSet> decode_mark_set(base::ByteReader& in);

// The set with its groups, each as encode_mark_set() has it; decode_mark_groups() adds them by
// MarkSet::try_add_apart(), and fails also if that refuses one.
void encode_mark_groups(base::ByteWriter& out, const MarkSet& marks);
base::Result<MarkSet> decode_mark_groups(base::ByteReader& in);

// Names and URLs of any bytes; a reader checks them. After a failed read, the book is part of what was there.
void encode_peer_book(base::ByteWriter& out, const PeerBook& book);
PeerBook decode_peer_book(base::ByteReader& in);

void encode_instance(base::ByteWriter& out, const InstanceId& id);
InstanceId decode_instance(base::ByteReader& in);

}  // namespace spoor::tracker
