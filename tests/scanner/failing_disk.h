#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>

namespace spoor::scanner {

// What a kill or a full disk does at the write, sync or truncation of this number. Replaces the functions of
// the system's files, so that one is never in use twice. Not thread-safe.
class FailingDisk {
 public:
  enum class Fate : std::uint8_t { killed, full };

  FailingDisk(Fate fate, int at) {
    state() = {.fate = fate, .left = at};
    vfs_ = *sqlite3_vfs_find("unix");
    vfs_.zName = "failing";
    vfs_.xOpen = [](sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* flags_out) {
      sqlite3_vfs* const system = sqlite3_vfs_find("unix");
      const int code = system->xOpen(system, name, file, flags, flags_out);
      if (code == SQLITE_OK) watch(file);
      return code;
    };
    sqlite3_vfs_register(&vfs_, 1);
  }
  FailingDisk(const FailingDisk&) = delete;
  FailingDisk& operator=(const FailingDisk&) = delete;
  ~FailingDisk() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(sqlite3_vfs_find("unix"), 1);
  }

  static bool has_failed() { return state().left <= 0; }

 private:
  // SQLite has other functions for a database than for the files beside it.
  struct Watched : sqlite3_io_methods {
    const sqlite3_io_methods* system = nullptr;
  };
  struct State {
    Fate fate = Fate::full;
    int left = 0;
    std::map<const sqlite3_io_methods*, Watched> watched = {};
  };

  static State& state() {
    static State only;
    return only;
  }

  static bool fails() {
    State& at = state();
    if (at.left > 0) --at.left;
    if (at.left > 0) return false;
    if (at.fate == Fate::killed) ::kill(::getpid(), SIGKILL);
    return true;
  }

  static const sqlite3_io_methods& system(const sqlite3_file* file) {
    return *static_cast<const Watched*>(file->pMethods)->system;
  }

  static void watch(sqlite3_file* file) {
    Watched& watched = state().watched[file->pMethods];
    static_cast<sqlite3_io_methods&>(watched) = *file->pMethods;
    watched.system = file->pMethods;
    watched.xWrite = [](sqlite3_file* to, const void* bytes, int count, sqlite3_int64 offset) {
      return fails() ? SQLITE_FULL : system(to).xWrite(to, bytes, count, offset);
    };
    watched.xTruncate = [](sqlite3_file* to, sqlite3_int64 size) {
      return fails() ? SQLITE_IOERR_TRUNCATE : system(to).xTruncate(to, size);
    };
    watched.xSync = [](sqlite3_file* to, int flags) {
      return fails() ? SQLITE_IOERR_FSYNC : system(to).xSync(to, flags);
    };
    file->pMethods = &watched;
  }

  sqlite3_vfs vfs_ = {};
};

// Runs the action, which has to succeed, on a copy of a database, in a process that is killed at its first
// write, then at its second one, and so on until it ends. Calls `check` after each. Returns the number of
// kills.
inline int kill_at_each_write(const std::filesystem::path& file, const std::function<bool()>& action,
                              const std::function<void(bool was_killed)>& check) {
  const std::filesystem::path saved = file.native() + ".saved";
  std::filesystem::copy_file(file, saved);
  for (int at = 1; at < 1000; ++at) {
    for (const char* const suffix : {"", "-wal", "-shm", ".commit"})
      std::filesystem::remove(file.native() + suffix);
    std::filesystem::copy_file(saved, file);
    const pid_t child = ::fork();
    if (child == 0) {
      const FailingDisk disk(FailingDisk::Fate::killed, at);
      ::_exit(action() ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    check(!WIFEXITED(status));
    EXPECT_EQ(status, WIFEXITED(status) ? 0 : SIGKILL);
    if (WIFEXITED(status) || ::testing::Test::HasFailure()) return at - 1;
  }
  ADD_FAILURE() << "it never ends";
  return 0;
}

}  // namespace spoor::scanner
