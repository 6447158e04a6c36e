#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_system.h"

namespace spoor::fakes {

// A file system in memory that injects failures and crashes like a machine that loses power: unsynced changes
// may be lost. OutputFile::sync makes contents durable; sync_directory makes the creations, renames and
// removals in the directory durable (of a rename: the target's directory). POSIX promises no more, and no
// order of unsynced changes.
//
// The root "/" exists; paths are absolute. No symbolic links.
//
// Thread-safe.
class MemoryFileSystem final : public base::FileSystem {
 public:
  // --- base::FileSystem ---

  base::Result<std::string> read(const std::filesystem::path& path, std::uint64_t bytes_max) override;
  base::Result<std::unique_ptr<base::OutputFile>> create(const std::filesystem::path& path) override;
  base::Result<> rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  base::Result<> remove(const std::filesystem::path& path) override;
  base::Result<> create_directory(const std::filesystem::path& path) override;
  base::Result<> remove_directory(const std::filesystem::path& path) override;
  base::Result<> sync_file(const std::filesystem::path& path) override;
  base::Result<std::vector<std::string>> list_directory(const std::filesystem::path& path) override;
  base::Result<> sync_directory(const std::filesystem::path& path) override;
  base::Result<base::DiskSpace> space(const std::filesystem::path& path) override;

  // --- for the test: the content. These functions do not count as calls and never fail ---

  // Durable at once, with all directories above.
  void make_directory(const std::filesystem::path& path);
  void put(const std::filesystem::path& path, std::string content);

  std::optional<std::string> content(const std::filesystem::path& path) const;
  bool exists(const std::filesystem::path& path) const;
  std::vector<std::string> names_in(const std::filesystem::path& directory) const;

  // Called at the beginning of each read(), create() and append() to a file, to simulate concurrent events;
  // may be empty.
  std::function<void(const std::filesystem::path&)> before_read;
  std::function<void(const std::filesystem::path&)> before_create;
  std::function<void(const std::filesystem::path&)> before_append;

  // An independent copy of the tree with the same unsynced changes, without the injected failures and what is
  // called. Open files belong to the original.
  std::unique_ptr<MemoryFileSystem> clone() const;

  // --- for the test: failures ---

  // What space() returns; a full file system has none free.
  base::DiskSpace disk_space{.bytes = std::uint64_t{1} << 40U, .free_bytes = std::uint64_t{1} << 39U};

  // The number of calls to the file system and its open files since the last reset, including failed ones.
  std::size_t calls() const;
  void reset_calls();

  // The `number`-th call from now, counted from 1, fails with this errno and does nothing.
  void fail_call(std::size_t number, int error);

  // The `number`-th call from now, counted from 1, returns only the first half of the file if it is a read.
  void shorten_call(std::size_t number);

  // That call and all later ones fail with EIO and do nothing: the power fails just before it. crash()
  // restarts the machine.
  void stop_at_call(std::size_t number);

  // A sync of a file or directory for which this returns true does nothing, and succeeds; may be empty.
  std::function<bool(const std::filesystem::path&)> is_sync_omitted;

  // Every call on this path or below it fails until heal(): a failing drive.
  void fail_below(const std::filesystem::path& path, int error);
  // Only calls that need space fail: ENOSPC. An append still writes half of its bytes.
  void fill(const std::filesystem::path& path);
  void heal(const std::filesystem::path& path);

  // --- for the test: crashes ---

  // The process ends: its files are closed and the injected failures are removed. Nothing is lost, and
  // unsynced changes stay unsynced.
  void kill();

  enum class Fate {
    lost,       // the change never happened; a file has its last synced content
    torn,       // the first half of the bytes that changed; for a directory entry the same as lost
    reordered,  // the second half of them, before the first
    kept,
  };
  // Called for each unsynced change, in a fixed order; `what` describes it for messages.
  using Chooser = std::function<Fate(const std::string& what)>;

  // The machine loses power and restarts. Open files are closed and the injected failures are removed.
  // Returns the number of unsynced changes.
  std::size_t crash(const Chooser& choose);
  std::size_t crash(Fate all = Fate::lost);

 private:
  class Output;

  struct File {
    std::string content;
    std::string synced;
  };
  // A directory if `file` is null.
  struct Node {
    std::shared_ptr<File> file;
  };
  // By bytes: a directory precedes its content, and paths are compared as fast as strings.
  struct ByBytes {
    bool operator()(const std::filesystem::path& one, const std::filesystem::path& other) const {
      return one.native() < other.native();
    }
  };
  using Entries = std::map<std::filesystem::path, Node, ByBytes>;

  // One change of directory entries that happens as a whole or not at all.
  struct Change {
    std::filesystem::path directory;
    std::string what;
    std::vector<std::pair<std::filesystem::path, std::optional<Node>>> edits;
  };

  void forget_process();
  static void apply(Entries& entries, const Change& change);
  void make(Change change);
  const Node* find(const std::filesystem::path& path) const;
  base::Result<> in_directory(const char* what, const std::filesystem::path& path) const;
  base::Result<> begin_call(const char* what, const std::filesystem::path& path);
  bool is_full(const std::filesystem::path& path) const;
  bool omits_sync(const std::filesystem::path& path) const {
    return is_sync_omitted && is_sync_omitted(path);
  }

  mutable std::mutex mutex_;  // guards all members below, and the contents of the files
  Entries live_{{"/", Node{}}};
  Entries durable_{{"/", Node{}}};
  std::vector<Change> unsynced_;
  std::size_t calls_ = 0;
  std::map<std::size_t, int> failing_calls_;
  std::optional<std::size_t> shortened_call_;
  std::optional<std::size_t> stopped_at_;
  std::map<std::filesystem::path, int> failing_below_;
  std::vector<std::filesystem::path> full_;
  std::uint64_t boot_ = 0;  // files opened in an earlier boot are closed
};

}  // namespace spoor::fakes
