// Marks of one kind, in the form of a request to POST /v1/marks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tracker/paths/path.h"

namespace spoor::client {

using tracker::MarkKind;

// The value of the parameter `kind`.
constexpr const char* kind_name(MarkKind kind) {
  constexpr std::array<const char*, 3> names = {"dir", "file", "tree"};
  return names.at(static_cast<std::size_t>(kind));
}

struct MarkBatch {
  MarkKind kind = MarkKind::dir;
  std::string paths = {};  // each followed by a NUL
  std::uint64_t count = 0;
};

}  // namespace spoor::client
