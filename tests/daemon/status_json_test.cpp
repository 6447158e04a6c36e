#include "daemon/status/status_json.h"

#include <gtest/gtest.h>

namespace spoor::daemon {
namespace {

using tracker::Durability;

PeerState peer(const std::string& state) {
  PeerState peer;
  peer.state = state;
  return peer;
}

TEST(StatusLineTest, HealthyNode_ShowsCyclePeersAndJournal) {
  EXPECT_EQ(status_line({12}, {peer("up"), peer("down"), peer("up")}, Durability::disk, {}),
            "cycle 12, 2 of 3 peers up, journal ok");
  EXPECT_EQ(status_line({1}, {peer("up")}, Durability::memory, {}), "cycle 1, 1 of 1 peer up, no journal");
  EXPECT_EQ(status_line({1}, {}, Durability::os, {}), "cycle 1, no peers, journal ok");
}

TEST(StatusLineTest, HealthErrors_ReplaceTheJournalState) {
  EXPECT_EQ(status_line({3}, {}, Durability::disk, {"journal: no space", "drive /d: gone"}),
            "cycle 3, no peers; errors: journal: no space; drive /d: gone");
}

}  // namespace
}  // namespace spoor::daemon
