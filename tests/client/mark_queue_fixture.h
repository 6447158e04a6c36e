// A queue of marks, and its spool in memory, with a daemon that is a function.
#pragma once

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/mark_queue.h"
#include "tests/fakes/memory_file_system.h"

namespace spoor::client {

inline constexpr auto never = Deadline::max();
inline constexpr auto past = Deadline::min();
// Of calls that are to run into it.
inline Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::milliseconds(30); }

inline std::vector<std::string> split(const std::string& paths) {
  std::vector<std::string> split;
  for (std::size_t begin = 0; begin < paths.size();) {
    const std::size_t end = paths.find('\0', begin);
    split.push_back(paths.substr(begin, end - begin));
    begin = end + 1;
  }
  return split;
}

// Acknowledges what it is sent; or fails.
class FakeDaemon {
 public:
  peer::MarkReply respond(const MarkBatch& batch) {
    if (const auto call = std::exchange(meanwhile, nullptr)) call();
    const auto instead = intercept ? intercept(batch) : std::nullopt;
    const std::lock_guard lock(mutex_);
    if (instead) return *instead;
    ++requests;
    if (failures > 0) {
      --failures;
      return {.problem = "it is down", .may_retry = true};
    }
    if (requests > allowed) return {.problem = "it is slow", .may_retry = true};
    if (denies) return {.problem = "no right"};
    if (batch.paths.size() > bytes_max) return {.problem = "too large", .is_too_large = true};
    if (batch.paths.size() > bytes_in_time) return {.problem = "it is slow", .may_retry = true};
    const auto paths = split(batch.paths);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (paths[i] == "bad") return {.problem = "bad path", .refused = i};
    }
    EXPECT_EQ(batch.count, paths.size());
    batch_bytes.push_back(batch.paths.size());
    for (const auto& path : paths) marked[kind_name(batch.kind)].insert(path);
    return {.is_acknowledged = true, .marked = paths.size(), .cycle = 7};
  }

  std::function<void()> meanwhile;                                            // during the next request
  std::function<std::optional<peer::MarkReply>(const MarkBatch&)> intercept;  // responds, if it does
  int failures = 0;
  bool denies = false;
  int requests = 0;
  int allowed = 1'000'000;
  std::size_t bytes_max = 1'000'000;
  std::size_t bytes_in_time = 1'000'000;
  std::vector<std::size_t> batch_bytes;
  std::map<std::string, std::set<std::string>> marked;  // by kind

 private:
  std::mutex mutex_;
};

class MarkQueueTest : public testing::Test {
 protected:
  MarkQueueTest() { files_.make_directory("/spool"); }

  Spool open_spool(std::uint64_t bytes_max = 1'000'000) {
    return Spool::open(files_, "/spool", "/spoor.sock", bytes_max).value();
  }

  MarkQueue make_queue(Spool* spool = nullptr) {
    return make_queue({.batch_bytes_max = 40, .held_bytes_max = 100, .spool = spool});
  }
  MarkQueue make_queue(QueueOptions options) {
    return MarkQueue(
        options, [this](const MarkBatch& batch, Deadline) { return daemon_.respond(batch); },
        [this](const std::string& problem) { refusals_.push_back(problem); });
  }

  // Until there was an attempt: on a busy machine the time can be over before.
  Outcome flush_in_vain(MarkQueue& queue) {
    daemon_.requests = 0;
    for (;;) {
      const Outcome outcome = queue.flush(soon());
      if (daemon_.requests > 0) return outcome;
    }
  }

  // The files of marks in the spool.
  std::vector<std::string> spooled() {
    auto names = files_.names_in("/spool");
    std::erase_if(names, [](const std::string& name) { return name.ends_with(".socket"); });
    return names;
  }

  // The file that tells the spool from other directories.
  std::string identity() {
    for (const std::string& name : files_.names_in("/spool"))
      if (name.ends_with(".socket")) return "/spool/" + name;
    return {};
  }

  std::set<std::string>& marked() { return daemon_.marked["dir"]; }

  fakes::MemoryFileSystem files_;
  FakeDaemon daemon_;
  std::vector<std::string> refusals_;
};

}  // namespace spoor::client
