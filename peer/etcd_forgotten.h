// Who was struck from the roll of a cluster in etcd, so that a scan learns of members that came and went
// while it did not look.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::peer {

struct Forgotten {
  static constexpr std::size_t recent_max = 100;

  std::uint64_t count = 0;          // of all that ever were
  std::vector<std::string> recent;  // the names of the last ones, the newest last
  std::int64_t mod_revision = 0;    // of its key in etcd; 0 while there is none

  // With one more.
  Forgotten with(const std::string& node) const;

  // As it stands in etcd; nothing where the text means none.
  std::string to_value() const;
  static std::optional<Forgotten> parse(std::string_view value);

  friend bool operator==(const Forgotten&, const Forgotten&) = default;
};

}  // namespace spoor::peer
