#include "watch/kept_group.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <fstream>

#include "base/file_system.h"
#include "tests/support/temp_directory.h"

namespace spoor::watch {
namespace {

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

TEST(KeptGroupTest, KilledAsEventsAreRead_IsNotSettled) {
  const support::TempDirectory drive;
  const base::Descriptor root(::open(drive.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto group = FanotifyGroup::open(root.get(), drive.path());
  if (!group) GTEST_SKIP() << group.error().message;
  const GroupNote note{.drive = drive.path(), .device = 1, .inode = 2};
  KeptGroup kept(*std::move(group), note);
  kept.set_settled(note);
  ASSERT_EQ(kept.settled(), note);

  std::ofstream(drive / "file").put('x');
  const pid_t child = ::fork();
  if (child == 0) {
    die_at_read(kept.group().descriptor());
    static_cast<void>(kept.read());
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << status;
  EXPECT_EQ(kept.settled(), std::nullopt);
}

}  // namespace
}  // namespace spoor::watch
