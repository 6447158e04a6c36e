// The response to POST /v1/peer/cycle: `application/vnd.spoor.cycles`, version 1 (docs/formats.md, "Cycle
// frame").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tracker/cycles/tracker.h"
#include "tracker/storage/snapshot.h"

namespace spoor::peer {

inline constexpr std::string_view cycle_frame_content_type = "application/vnd.spoor.cycles";

struct CycleFrame {
  tracker::NodeIdentity sender;
  // A random number, new at each start of the sender: two copies of one tracker have the same name and
  // instance.
  std::uint64_t run = 0;
  std::uint64_t rules_digest = 0;  // of the sender's NamespaceRules
  tracker::CycleAnswer answer;
  // The sender acknowledges no marks: it retires, has retired, or began after that and is not recorded yet.
  bool is_closed = false;
};

std::string encode_cycle_frame(const CycleFrame& frame);

// Fails with std::errc::bad_message. The memory is proportional to the size of `bytes`.
base::Result<CycleFrame> decode_cycle_frame(std::string_view bytes);

}  // namespace spoor::peer
