// What is stored for the scan that resumes another one.
#include "scanner/walk/unfinished_scan.h"

#include <gtest/gtest.h>

#include <string>

#include "base/byte_codec.h"
#include "tracker/storage/mark_set_codec.h"

namespace spoor::scanner {
namespace {

ScanOptions some_options() { return {.drives = {{"/mnt/a", ""}, {"/mnt/b", ""}}, .rules = {}}; }

// All fields are other than by default.
ScanInput some_input() {
  ScanInput input;
  input.marks.add(tracker::hash_path("a/b"), {.bits = 1024, .hashes = 3});
  input.marks.add(tracker::hash_path("c"), {.bits = 4096, .hashes = 7});
  input.marks.add_tree("tree/marked");
  tracker::InstanceId instance;
  for (std::uint8_t& byte : instance.bytes) byte = 9;
  input.book = {{{"one", instance},
                 {.cycle = {5},
                  .home = std::string("http://a\0:1", 11),
                  .standing = tracker::Standing::copied,
                  .silent = std::chrono::hours(1)}},
                {{"two", {}}, {.cycle = {tracker::CycleId::value_max}}}};
  input.start_level = 3;
  input.started_at = base::WallTime(std::chrono::nanoseconds(-5));
  input.cycle = {11};
  input.partial = true;
  input.everything = "for a reason";
  return input;
}

std::string encoded(const tracker::MarkSet& marks) {
  base::ByteWriter out;
  tracker::encode_mark_set(out, marks);
  return out.take();
}

std::optional<ScanInput> round_trip(const ScanInput& input) {
  return decode_unfinished_input(encode_unfinished_input(some_options(), input, input.marks), some_options());
}

void expect_same(const std::optional<ScanInput>& found, const ScanInput& expected) {
  ASSERT_TRUE(found);
  ASSERT_EQ(found->marks.group_count(), expected.marks.group_count());
  for (std::size_t number = 0; number < expected.marks.group_count(); ++number)
    EXPECT_EQ(encoded(found->marks.group(number)), encoded(expected.marks.group(number)));
  EXPECT_EQ(found->marks.tree_marks(), expected.marks.tree_marks());
  EXPECT_EQ(found->book, expected.book);
  EXPECT_EQ(found->start_level, expected.start_level);
  EXPECT_EQ(found->started_at, expected.started_at);
  EXPECT_EQ(found->cycle, expected.cycle);
  EXPECT_EQ(found->partial, expected.partial);
  EXPECT_EQ(found->everything, expected.everything);
  EXPECT_TRUE(found->is_resumed);
}

TEST(UnfinishedScanTest, Input_RoundTrips) {
  expect_same(round_trip(some_input()), some_input());
  expect_same(round_trip(ScanInput()), ScanInput());
}

TEST(UnfinishedScanTest, MarksOfManyPeers_StayApart) {
  ScanInput input = some_input();
  for (int peer = 0; peer < 100; ++peer) {
    tracker::MarkSet marks;
    marks.add(tracker::hash_path(std::to_string(peer)), {640, 3});
    marks.add_tree("tree/" + std::to_string(peer));
    ASSERT_TRUE(input.marks.try_add_apart(marks));
  }
  expect_same(round_trip(input), input);
}

TEST(UnfinishedScanTest, InputOfOtherOptions_IsNotFound) {
  const std::string bytes = encode_unfinished_input(some_options(), some_input(), some_input().marks);
  const auto is_found_with = [&](auto change) {
    ScanOptions options = some_options();
    change(options);
    return decode_unfinished_input(bytes, options).has_value();
  };
  EXPECT_TRUE(is_found_with([](ScanOptions& same) { same.threads = 7; }));
  EXPECT_FALSE(
      is_found_with([](ScanOptions& other) { other.rules = tracker::NamespaceRules({{"*.tmp"}, false}); }));
  EXPECT_FALSE(is_found_with([](ScanOptions& other) { other.drives.pop_back(); }));
  EXPECT_FALSE(is_found_with([](ScanOptions& other) { std::swap(other.drives[0], other.drives[1]); }));
  EXPECT_FALSE(is_found_with([](ScanOptions& other) { other.drives[0].gap = "gap"; }));
  EXPECT_FALSE(is_found_with([](ScanOptions& other) { other.file_feed = true; }));
  EXPECT_FALSE(is_found_with([](ScanOptions& other) { other.owners_depth = 2; }));
  EXPECT_FALSE(is_found_with([](ScanOptions& other) { other.own_marks_of = "node"; }));
}

TEST(UnfinishedScanTest, Progress_RoundTrips) {
  const UnfinishedScan scan{.reason = "first",
                            .resets_feed = true,
                            .figures = {1, 2, 3, 4, 5, 6, 1ULL << 63U},
                            .missed_paths = {"a", std::string("b\0c", 3)},
                            .places = {{1, "a/b"}, {2, std::nullopt}, {3, ""}}};
  EXPECT_EQ(UnfinishedScan::decode(scan.encode()), scan);
  EXPECT_EQ(UnfinishedScan::decode(UnfinishedScan().encode()), UnfinishedScan());
}

TEST(UnfinishedScanTest, TornBytes_AreRefused) {
  const std::string input = encode_unfinished_input(some_options(), some_input(), some_input().marks);
  for (std::size_t at = 0; at < input.size(); ++at)
    EXPECT_FALSE(decode_unfinished_input(input.substr(0, at), some_options())) << at;
  EXPECT_FALSE(decode_unfinished_input(input + "x", some_options()));
  const std::string scan =
      UnfinishedScan{.reason = "a", .missed_paths = {"b"}, .places = {{1, "c"}}}.encode();
  for (std::size_t at = 0; at < scan.size(); ++at)
    EXPECT_FALSE(UnfinishedScan::decode(scan.substr(0, at))) << at;
  EXPECT_FALSE(UnfinishedScan::decode(scan + "x"));
}

}  // namespace
}  // namespace spoor::scanner
