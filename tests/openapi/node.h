// A real spoord that is asked by hand; a test may have several.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tests/daemon/spoord_fixture.h"

namespace spoor::openapi {

class Node final : public daemon::Spoord {
 public:
  Node() {
    config_["scan"] = {{"min_cycle_age", "0s"}};
    config_["usage"]["copies"] = nlohmann::json::array({{{"path", "bucket"}, {"factor", 2}}});
  }  // each scan opens a cycle, which is changed by then

  // As spoor-scan.path, but without the scan.
  void take_scan_requests() {
    unit_ = std::jthread([request = directory_ / "data/scan.request"](const std::stop_token& stop) {
      std::mutex mutex;
      std::condition_variable_any stopped;
      std::unique_lock lock(mutex);
      while (!stopped.wait_for(lock, stop, std::chrono::milliseconds(10), [] { return false; }) &&
             !stop.stop_requested()) {
        std::error_code error;
        if (std::filesystem::is_regular_file(request, error)) std::filesystem::remove(request, error);
      }
    });
  }

  std::filesystem::path drive() const { return directory_ / "drive"; }
  std::filesystem::path scan_database() const { return directory_ / "data/scan.db"; }

  // Writes a file, marks it and scans.
  void change_and_scan(const std::string& path) const {
    std::filesystem::create_directories((drive() / path).parent_path());
    std::ofstream(drive() / path, std::ios::app) << path;
    for (const auto& command : {std::vector<std::string>{"mark", "--kind", "file", path}, {"scan"}}) {
      const auto result = spoor(command);
      EXPECT_EQ(result.code, 0) << result.err;
    }
  }

  // From then on no file takes a write, of a daemon that was started for that.
  void fill_disks() const {
    rlimit limit{};
    ASSERT_EQ(::prlimit(daemon_->pid(), RLIMIT_FSIZE, nullptr, &limit), 0);
    limit.rlim_cur = 0;
    ASSERT_EQ(::prlimit(daemon_->pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  }
  // A signal would end it before it sees the error.
  void start_for_full_disks() { start_by({"env", "--ignore-signal=XFSZ"}); }

 private:
  std::jthread unit_;
};

}  // namespace spoor::openapi
