#include "peer/gather/cycle_frame.h"

#include <gtest/gtest.h>

#include "base/byte_codec.h"
#include "base/checksum.h"
#include "tests/support/random.h"

namespace spoor::peer {
namespace {

CycleFrame sample() {
  CycleFrame frame;
  frame.sender = {"cluster", "node1"};
  frame.run = 0xfedcba9876543210;
  frame.rules_digest = 0x0123456789abcdef;
  frame.answer.instance = tracker::InstanceId::random();
  frame.answer.current = {13};
  frame.answer.current_age = std::chrono::milliseconds(1234);
  frame.answer.gap = true;
  frame.answer.complete_since_birth = true;
  frame.answer.marks.add(tracker::hash_path("a/b"), tracker::BloomShape::for_items(50, 0.1));
  frame.answer.marks.add(tracker::hash_path("c"), tracker::BloomShape::for_items(70, 0.01));
  frame.answer.marks.add_tree("t/r/e/e");
  return frame;
}

std::string with_new_checksum(std::string bytes) {
  bytes.resize(bytes.size() - 8);
  base::ByteWriter out;
  out.raw(bytes);
  out.u64(base::checksum(bytes));
  return out.take();
}

TEST(CycleFrameTest, EncodeAndDecode_KeepsAllFields) {
  const CycleFrame frame = sample();
  const auto decoded = decode_cycle_frame(encode_cycle_frame(frame));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->sender, frame.sender);
  EXPECT_EQ(decoded->run, frame.run);
  EXPECT_EQ(decoded->rules_digest, frame.rules_digest);
  EXPECT_EQ(decoded->answer.instance, frame.answer.instance);
  EXPECT_EQ(decoded->answer.current, frame.answer.current);
  EXPECT_EQ(decoded->answer.current_age, frame.answer.current_age);
  EXPECT_TRUE(decoded->answer.gap);
  EXPECT_TRUE(decoded->answer.complete_since_birth);
  EXPECT_EQ(decoded->answer.marks.filters().size(), 2U);
  EXPECT_TRUE(decoded->answer.marks.filters_may_contain(tracker::hash_path("a/b")));
  EXPECT_TRUE(decoded->answer.marks.tree_marks().covers("t/r/e/e/below"));
}

// ancestor 3: flipped bits went unnoticed.
TEST(CycleFrameTest, FlippedBitOrTruncation_IsRefused) {
  const std::string whole = encode_cycle_frame(sample());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    EXPECT_FALSE(decode_cycle_frame(flipped)) << at;
    EXPECT_FALSE(decode_cycle_frame(whole.substr(0, at))) << at;
  }
  EXPECT_FALSE(decode_cycle_frame(whole + '\0'));
}

TEST(CycleFrameTest, TrailingBytesWithValidChecksum_AreRefused) {
  std::string longer = encode_cycle_frame(sample());
  longer.insert(longer.size() - 8, 1, '\0');
  EXPECT_FALSE(decode_cycle_frame(with_new_checksum(longer)));
}

TEST(CycleFrameTest, InvalidCycleInstanceOrName_IsRefused) {
  const auto is_refused = [](const auto& change) {
    CycleFrame frame = sample();
    change(frame);
    return !decode_cycle_frame(encode_cycle_frame(frame));
  };
  EXPECT_TRUE(is_refused([](CycleFrame& frame) { frame.answer.current = {}; }));
  EXPECT_TRUE(
      is_refused([](CycleFrame& frame) { frame.answer.current = {tracker::CycleId::value_max + 1}; }));
  EXPECT_TRUE(is_refused([](CycleFrame& frame) { frame.answer.instance = {}; }));
  EXPECT_TRUE(is_refused([](CycleFrame& frame) { frame.sender.node.clear(); }));
  for (const std::string& name : {std::string("evil\n2026-01-01 \x1b[2J"), std::string(60'000, 'x'),
                                  std::string("http://a:7420"), std::string("n\xc3\xb6")}) {
    EXPECT_TRUE(is_refused([&](CycleFrame& frame) { frame.sender.node = name; })) << name.substr(0, 100);
    EXPECT_TRUE(is_refused([&](CycleFrame& frame) { frame.sender.cluster = name; })) << name.substr(0, 100);
  }
}

TEST(CycleFrameTest, NewerVersion_IsRefusedWithVersionInError) {
  std::string newer = encode_cycle_frame(sample());
  newer[0] = 2;
  const auto decoded = decode_cycle_frame(with_new_checksum(newer));
  ASSERT_FALSE(decoded);
  EXPECT_NE(decoded.error().message.find("version 2"), std::string::npos) << decoded.error().message;
}

TEST(CycleFrameTest, MutatedFrameWithValidChecksum_NeverCrashesDecoder) {
  SPOOR_RANDOM(random);
  const std::string whole = encode_cycle_frame(sample());
  for (int round = 0; round < 20'000; ++round) {
    std::string mutated = whole;
    for (std::uint64_t i = random.between(1, 4); i > 0; --i)
      mutated[random.below(mutated.size())] = random.byte();
    if (random.one_in(4)) mutated.resize(random.between(20, mutated.size()));
    static_cast<void>(decode_cycle_frame(with_new_checksum(mutated)));
  }
}

}  // namespace
}  // namespace spoor::peer
