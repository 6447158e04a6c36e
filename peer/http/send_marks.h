// Marks for a daemon: one batch of POST /v1/marks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/endpoint.h"
#include "peer/http/transport.h"

namespace spoor::peer {

struct MarkReply {
  bool is_acknowledged = false;
  // If not: why, and what may be done about it.
  std::string problem = {};
  bool may_retry = false;                // the same batch may succeed later
  std::optional<std::size_t> refused{};  // this path of the batch is invalid; the others were not marked
  bool is_too_large = false;             // a smaller batch may succeed

  // If it is:
  std::uint64_t marked = 0;
  std::uint64_t ignored = 0;  // by the namespace rules
  std::uint64_t cycle = 0;
};

// Sends paths, each followed by a NUL, as marks of this kind ("dir", "file" or "tree"), once. One that begins
// with `/` is that of a file: the daemon marks the path below its drive, or refuses it.
// `drive`: the path of the only drive that they are for; empty: for all.
MarkReply send_marks(Transport& transport, const base::Endpoint& daemon, std::string_view kind,
                     std::string paths, const std::string& drive = {});

// Removes the path of this index from such a batch.
void remove_path(std::string& paths, std::size_t index);

}  // namespace spoor::peer
