// The model of Spoor's promise itself: a model that is too lenient would detect nothing.
#include "tests/hosts/knowledge.h"

#include <gtest/gtest.h>

namespace spoor::hosts {
namespace {

const std::vector<bool> both{true, true};
const std::vector<bool> only_itself{true, false};

class KnowledgeTest : public testing::Test {
 protected:
  Knowledge::Expected scan(std::size_t scanner, const std::vector<bool>& answered) {
    const auto reading = knowledge_.begin(scanner);
    auto expected = knowledge_.expect(reading, answered);
    knowledge_.finish(reading, answered, expected.is_full);
    return expected;
  }

  Knowledge knowledge_{2};
};

TEST_F(KnowledgeTest, FirstScan_IsFullAndSecondIsNot) {
  EXPECT_TRUE(scan(0, both).first);
  const auto second = scan(0, both);
  EXPECT_FALSE(second.first);
  EXPECT_FALSE(second.is_full);
  EXPECT_EQ(second.may_be_a_gap, (std::vector<bool>{false, false}));
}

TEST_F(KnowledgeTest, NodeLoss_ExpectsOneFullScan) {
  scan(0, both);
  knowledge_.lose(1);
  EXPECT_FALSE(scan(0, only_itself).is_full) << "it was never read";
  EXPECT_TRUE(scan(0, both).is_full);
  EXPECT_FALSE(scan(0, both).is_full);
  EXPECT_TRUE(scan(1, both).first) << "its database was lost, too";
}

TEST_F(KnowledgeTest, NodeLossDuringScan_MayBeAGapInThisOrNextScan) {
  scan(0, both);
  const auto reading = knowledge_.begin(0);
  knowledge_.lose(1);
  const auto during = knowledge_.expect(reading, both);
  EXPECT_FALSE(during.is_full);
  EXPECT_TRUE(during.may_be_a_gap[1]);
  knowledge_.finish(reading, both, false);
  const auto next = scan(0, both);
  EXPECT_FALSE(next.is_full);
  EXPECT_TRUE(next.may_be_a_gap[1]);
  EXPECT_FALSE(scan(0, both).may_be_a_gap[1]);
}

TEST_F(KnowledgeTest, PeerNotReadForManyScans_IsNoGap) {
  scan(0, both);
  for (int i = 0; i < 40; ++i) scan(0, only_itself);
  EXPECT_FALSE(scan(0, both).may_be_a_gap[1]);
}

TEST_F(KnowledgeTest, Totals_AreExactOnceAcknowledgingNodeIsRead) {
  scan(0, both);
  knowledge_.acknowledged(0, 1);
  EXPECT_FALSE(scan(0, only_itself).has_all_marks);
  EXPECT_TRUE(scan(0, both).has_all_marks);
  EXPECT_TRUE(scan(0, only_itself).has_all_marks);
  knowledge_.acknowledged(1, 1);
  EXPECT_TRUE(scan(0, only_itself).has_all_marks) << "that mark is for the drives of another host";
}

// Its first scan may not have reached the only host that knows of the former memory.
TEST_F(KnowledgeTest, BothLost_FormerMemoryMayBeMetLate) {
  knowledge_.lose(0);
  EXPECT_FALSE(knowledge_.may_meet_former(0, 1));
  knowledge_.lose(1);
  EXPECT_TRUE(knowledge_.may_meet_former(0, 1));
  scan(0, both);
  EXPECT_TRUE(scan(0, both).may_be_a_gap[1]);
}

}  // namespace
}  // namespace spoor::hosts
