// Up to where a scan knows the roll of its cluster in etcd.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "peer/etcd_roll.h"
#include "tracker/cursor.h"

namespace spoor::peer {

// To be stored together with the results of the scan that read the roll.
struct RollPosition {
  std::string folder;  // of the roll's keys
  std::string cluster_id;
  std::int64_t revision = 0;
  std::uint64_t forgotten = 0;  // how many there were

  static RollPosition of(const Roll& roll, const EtcdPlace& place);

  std::string to_text() const;

  friend bool operator==(const RollPosition&, const RollPosition&) = default;
};

// Why marks may be missing that no peer and no cursor tells of: somebody came to the roll, acknowledged marks
// and was struck from it since this scanner stored `stored`. Whoever has a cursor is a gap by itself.
//
// `stored` is what RollPosition::to_text() gave, or empty; so are the cursors where there was no scan yet.
std::vector<std::string> gaps_since(std::string_view stored, const Roll& roll, const EtcdPlace& place,
                                    const tracker::Cursors& cursors);

}  // namespace spoor::peer
