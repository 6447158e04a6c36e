// Counts how often directories are opened, by any process.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <thread>
#include <vector>

namespace spoor::support {

// Counts from construction to count(). Not thread-safe.
class DirectoryOpens {
 public:
  // Throws if the kernel cannot watch more directories.
  explicit DirectoryOpens(const std::vector<std::filesystem::path>& directories);
  DirectoryOpens(const DirectoryOpens&) = delete;
  DirectoryOpens& operator=(const DirectoryOpens&) = delete;
  ~DirectoryOpens();

  // Stops counting. Throws if the kernel lost events.
  std::uint64_t count();

 private:
  void read_events();

  int queue_ = -1;
  int last_watch_ = -1;  // its removal is the last event
  std::atomic<std::uint64_t> opens_ = 0;
  std::atomic<bool> has_lost_some_ = false;
  std::jthread reader_;
};

}  // namespace spoor::support
