// Changes to a drive without pause, while its node is stopped, killed and scanned.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/random.h"

namespace spoor::watch {

// A writer that creates, writes, renames and removes files and directories below one directory, and records
// each operation. start() and stop() alternate.
class TreeLoad {
 public:
  TreeLoad(support::Random& random, std::filesystem::path top);
  TreeLoad(const TreeLoad&) = delete;
  TreeLoad& operator=(const TreeLoad&) = delete;
  ~TreeLoad() { stop(); }

  void start();
  void stop();

  // Waits until it has done so many operations more. Only while it runs.
  void wait_for_more(std::size_t operations);

  // The latest operations on a path that contains `path`, for messages.
  std::string operations_on(const std::string& path) const;
  std::size_t count() const;

 private:
  void write(support::Random random);
  void change(support::Random& random);
  void make_directory(support::Random& random);
  void write_file(support::Random& random);
  void rename(support::Random& random);
  void remove(support::Random& random);
  std::filesystem::path some_directory(support::Random& random) const;
  std::filesystem::path some_path(support::Random& random) const;
  void record(const std::string& operation);

  support::Random& random_;
  const std::filesystem::path top_;
  std::thread writer_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool stopping_ = false;
  std::vector<std::string> operations_;
};

}  // namespace spoor::watch
