#include "watch/fanotify_group.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/fanotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>

#include "tests/support/random.h"
#include "tests/support/temp_directory.h"

namespace spoor::watch {
namespace {

constexpr auto unknown_type = static_cast<std::uint8_t>(0xff);

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

std::string event(std::uint64_t mask, const std::string& records,
                  std::uint8_t version = FANOTIFY_METADATA_VERSION) {
  fanotify_event_metadata header{};
  header.event_len = static_cast<std::uint32_t>(sizeof(header) + records.size());
  header.vers = version;
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

const std::string file_f = record(FAN_EVENT_INFO_TYPE_DFID_NAME, "abcdefgh", "f");
const std::string unnamed = record(FAN_EVENT_INFO_TYPE_FID, "12345678", "");
const std::string before = record(FAN_EVENT_INFO_TYPE_OLD_DFID_NAME, "abcdefgh", "before");
const std::string after = record(FAN_EVENT_INFO_TYPE_NEW_DFID_NAME, "12345678", "after");
const EntryName entry_f{handle("abcdefgh"), "f"};
const EntryName entry_after{handle("12345678"), "after"};

TEST(KernelEventTest, EventsOfEveryKind_AreDecoded) {
  const std::string bytes = event(FAN_CREATE | FAN_ONDIR, file_f) + event(FAN_RENAME, before + after) +
                            event(FAN_Q_OVERFLOW, "") + event(FAN_RENAME, after) +
                            event(FAN_MODIFY, record(unknown_type, "x", "y") + file_f) +
                            event(FAN_MODIFY, unnamed) + event(FAN_MODIFY, file_f + unnamed);
  const std::vector<KernelEvent> expected = {
      {FAN_CREATE | FAN_ONDIR, entry_f, {}},
      {FAN_RENAME, {handle("abcdefgh"), "before"}, entry_after},
      {FAN_Q_OVERFLOW, {}, {}},
      {FAN_RENAME, entry_after, {}},             // to the drive from elsewhere
      {FAN_MODIFY, entry_f, {}},                 // a record of unknown type is skipped
      {FAN_MODIFY, {}, {}, handle("12345678")},  // a file in an unknown directory
      {FAN_MODIFY, entry_f, {}, handle("12345678")}};
  EXPECT_EQ(decode(bytes).value(), expected);
}

TEST(KernelEventTest, WhatIsNotUnderstood_IsAnError) {
  for (const std::string& bytes : {event(FAN_MODIFY, ""), event(FAN_MODIFY, record(unknown_type, "x", "y")),
                                   event(FAN_MODIFY, file_f, 2),
                                   event(FAN_MODIFY, record(FAN_EVENT_INFO_TYPE_DFID_NAME, "abcdefgh", ""))})
    EXPECT_FALSE(decode(event(FAN_MODIFY, file_f) + bytes));
  const std::string whole = event(FAN_MODIFY, file_f);
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) EXPECT_FALSE(decode(whole.substr(0, bytes)));
}

TEST(KernelEventTest, RandomBytes_AreReadWithinBounds) {
  SPOOR_RANDOM(random);
  const std::string whole = event(FAN_RENAME, before + after);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = whole;
    for (int change = 0; change < 3; ++change) bytes[random.below(bytes.size())] = random.byte();
    static_cast<void>(decode(bytes));  // a sanitizer reports what is wrong
  }
}

// The kernel ends this process when it reads from this descriptor, before anything is read.
void die_at_read(int descriptor) {
  const auto load = [](std::size_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  };
  std::array filter = {
      load(offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 3),
      load(offsetof(seccomp_data, args[0])),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(descriptor), 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

TEST(FanotifyGroupTest, KilledAsEventsAreRead_IsNotSettled) {
  const support::TempDirectory drive;
  const base::Descriptor root(::open(drive.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto group = FanotifyGroup::open(root.get(), drive.path());
  if (!group) GTEST_SKIP() << group.error().message;
  const GroupNote note{.drive = drive.path(), .device = 1, .inode = 2, .gap = {"id", "reason", {}}};
  group->keep(note.drive);
  EXPECT_EQ(group->settled(), std::nullopt);
  group->set_settled(note);
  ASSERT_EQ(group->settled(), note);

  std::ofstream(drive / "file").put('x');
  const pid_t child = ::fork();
  if (child == 0) {
    die_at_read(group->descriptor());
    static_cast<void>(group->read());
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << status;
  EXPECT_EQ(group->settled(), std::nullopt);
}

}  // namespace
}  // namespace spoor::watch
