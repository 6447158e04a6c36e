#include "watch/kernel_event.h"

#include <gtest/gtest.h>
#include <sys/fanotify.h>

#include <cstring>
#include <string>

#include "tests/support/random.h"

namespace spoor::watch {
namespace {

constexpr auto no_record = static_cast<std::uint8_t>(0xff);

template <class T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A record as the kernel lays it out: header, fsid, file handle, name, padding.
std::string record(std::uint8_t type, const std::string& handle, const std::string& name) {
  std::string body(sizeof(fanotify_event_info_fid::fsid), '\x7');
  put(body, static_cast<std::uint32_t>(handle.size()));
  put(body, std::int32_t{1});
  body += handle + name + '\0';
  while ((body.size() + sizeof(fanotify_event_info_header)) % 4 != 0) body += '\0';
  std::string bytes;
  put(bytes, fanotify_event_info_header{
                 type, 0, static_cast<std::uint16_t>(body.size() + sizeof(fanotify_event_info_header))});
  return bytes + body;
}

std::string event(std::uint64_t mask, const std::string& records) {
  fanotify_event_metadata header{};
  header.event_len = static_cast<std::uint32_t>(sizeof(header) + records.size());
  header.vers = FANOTIFY_METADATA_VERSION;
  header.metadata_len = sizeof(header);
  header.mask = mask;
  header.fd = FAN_NOFD;
  std::string bytes;
  put(bytes, header);
  return bytes + records;
}

base::Result<std::vector<KernelEvent>> decode(const std::string& bytes) {
  return decode_kernel_events(std::as_bytes(std::span(bytes)));
}

DirectoryHandle handle(const std::string& bytes) { return std::string("\1\0\0\0", 4) + bytes; }

TEST(KernelEventTest, EventsOfEveryKind_AreDecoded) {
  const std::string bytes =
      event(FAN_CREATE | FAN_ONDIR, record(FAN_EVENT_INFO_TYPE_DFID_NAME, "abcdefgh", "new")) +
      event(FAN_RENAME, record(FAN_EVENT_INFO_TYPE_OLD_DFID_NAME, "abcdefgh", "before") +
                            record(FAN_EVENT_INFO_TYPE_NEW_DFID_NAME, "12345678", "after")) +
      event(FAN_Q_OVERFLOW, "");
  const std::vector<KernelEvent> expected = {
      {FAN_CREATE | FAN_ONDIR, {handle("abcdefgh"), "new"}, {}},
      {FAN_RENAME, {handle("abcdefgh"), "before"}, EntryName{handle("12345678"), "after"}},
      {FAN_Q_OVERFLOW, {}, {}}};
  EXPECT_EQ(decode(bytes).value(), expected);
}

TEST(KernelEventTest, RenameWithNewNameOnly_IsAnEventOfThatName) {
  const auto events = decode(event(FAN_RENAME, record(FAN_EVENT_INFO_TYPE_NEW_DFID_NAME, "12345678", "in")));
  const std::vector<KernelEvent> expected = {{FAN_RENAME, {handle("12345678"), "in"}, {}}};
  EXPECT_EQ(events.value(), expected);
}

TEST(KernelEventTest, RecordOfUnknownType_IsSkipped) {
  const auto events = decode(event(
      FAN_MODIFY, record(no_record, "x", "y") + record(FAN_EVENT_INFO_TYPE_DFID_NAME, "abcdefgh", "f")));
  EXPECT_EQ(events.value().at(0).entry.name, "f");
}

TEST(KernelEventTest, EventOfAFileInUnknownDirectory_HasNoEntry) {
  const auto events = decode(event(FAN_MODIFY, record(FAN_EVENT_INFO_TYPE_FID, "abcdefgh", "")));
  const std::vector<KernelEvent> expected = {{FAN_MODIFY, {}, {}, handle("abcdefgh")}};
  EXPECT_EQ(events.value(), expected);
}

TEST(KernelEventTest, EventOfAFileAndItsDirectory_HasBoth) {
  const auto events = decode(event(FAN_MODIFY, record(FAN_EVENT_INFO_TYPE_DFID_NAME, "abcdefgh", "f") +
                                                   record(FAN_EVENT_INFO_TYPE_FID, "12345678", "")));
  const std::vector<KernelEvent> expected = {{FAN_MODIFY, {handle("abcdefgh"), "f"}, {}, handle("12345678")}};
  EXPECT_EQ(events.value(), expected);
}

TEST(KernelEventTest, EventWithoutName_IsAnError) {
  EXPECT_FALSE(decode(event(FAN_MODIFY, "")));
  EXPECT_FALSE(decode(event(FAN_MODIFY, record(no_record, "x", "y"))));
}

TEST(KernelEventTest, TruncatedEvent_IsAnError) {
  const std::string whole = event(FAN_MODIFY, record(FAN_EVENT_INFO_TYPE_DFID_NAME, "abcdefgh", "f"));
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) EXPECT_FALSE(decode(whole.substr(0, bytes)));
}

TEST(KernelEventTest, RandomBytes_AreReadWithinBounds) {
  SPOOR_RANDOM(random);
  const std::string whole = event(FAN_RENAME, record(FAN_EVENT_INFO_TYPE_OLD_DFID_NAME, "abcdefgh", "f") +
                                                  record(FAN_EVENT_INFO_TYPE_NEW_DFID_NAME, "a", "g"));
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = whole;
    for (int change = 0; change < 3; ++change) bytes[random.below(bytes.size())] = random.byte();
    static_cast<void>(decode(bytes));  // a sanitizer reports what is wrong
  }
}

}  // namespace
}  // namespace spoor::watch
