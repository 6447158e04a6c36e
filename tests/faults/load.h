// Writers that mark all the time, each on a connection of its own, and remember what was acknowledged.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/daemon/kept_connection.h"
#include "tests/support/random.h"

namespace spoor::faults {

struct SentMark {
  std::string path;
  bool is_tree = false;

  // A path that must be dirty once the mark is acknowledged: for a tree, one below it, which nothing but
  // the tree's own mark makes dirty.
  std::string witness() const { return is_tree ? path + "/below" : path; }
};

// Goes on over several lives of a daemon: start() and stop() alternate, what was acknowledged stays.
//
// A writer marks paths of its own and, now and then, what another one is just sending: that mark adds
// nothing new, and its answer must wait for the other's all the same. What is refused for now (503) it
// repeats until it is taken, as docs/http-api.md asks. Now and then a cycle is opened.
class Load {
 public:
  explicit Load(support::Random& random) : random_(random) {}
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() { stop(); }

  void start(std::uint16_t port);

  // Each writer ends with the answer it waits for, or with its connection.
  void stop();

  // Until so many more have been acknowledged (refused) than now. False where all writers ended before.
  bool wait_for_acknowledged(std::size_t more);
  bool wait_for_refused(std::size_t more);

  // Not between start() and stop().
  const std::vector<SentMark>& acknowledged() const { return acknowledged_; }

  // The newest cycle that any answer has named: the daemon must never be before it again.
  std::uint64_t newest_cycle() const;
  std::size_t refused() const;

 private:
  void write(std::size_t writer, std::uint16_t port, support::Random random);
  SentMark choose(std::size_t writer, support::Random& random);
  bool mark(daemon::KeptConnection& connection, const SentMark& mark);
  bool advance(daemon::KeptConnection& connection);
  bool is_stopping() const;
  bool wait_until(const std::size_t& count, std::size_t more);

  support::Random& random_;
  std::vector<std::thread> writers_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool stopping_ = false;
  std::size_t running_ = 0;
  std::uint64_t sent_count_ = 0;
  std::vector<SentMark> last_sent_;  // by each writer
  std::vector<SentMark> acknowledged_;
  std::size_t acknowledged_count_ = 0;
  std::size_t refused_ = 0;
  std::uint64_t newest_cycle_ = 1;
};

}  // namespace spoor::faults
