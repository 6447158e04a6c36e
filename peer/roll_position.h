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
  std::string ledger_id;
  std::uint64_t left = 0;
  // Entries that somebody erased by hand: that neither stand on the roll nor left it as they should.
  std::int64_t erased = 0;

  static RollPosition of(const Roll& roll, const EtcdPlace& place);

  std::string to_text() const;

  friend bool operator==(const RollPosition&, const RollPosition&) = default;
};

// Why marks may be missing that no peer and no cursor tells of: since this scanner stored `stored`, somebody
// came to the roll, acknowledged marks and left it, or the roll is not the one it was. Whoever has a cursor
// of the same instance is a gap by itself once it can't be found; whoever is still on the roll is expected.
//
// `stored` is what RollPosition::to_text() gave, or empty; so are the cursors where there was no scan yet.
std::vector<std::string> gaps_since(std::string_view stored, const Roll& roll, const EtcdPlace& place,
                                    const tracker::Cursors& cursors);

}  // namespace spoor::peer
