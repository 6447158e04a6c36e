// `spoor scan` killed, and gone on with by the next one.
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <thread>

#include "scanner/store/usage_database.h"
#include "scanner/walk/unfinished_scan.h"
#include "tests/cluster/one_node.h"
#include "tests/support/sanitizer.h"

namespace spoor::cluster {
namespace {

using nlohmann::json;

constexpr std::uint64_t leaves = support::is_sanitized ? 10 : 50;  // of each directory that has any
constexpr std::uint64_t pace = 10 * leaves;  // a scan that nobody ends commits some times

// Counts how often directories are opened, by any process, from construction to count().
class DirectoryOpens {
 public:
  explicit DirectoryOpens(const std::vector<std::filesystem::path>& directories) {
    for (const auto& directory : directories) {
      if (::inotify_add_watch(queue_, directory.c_str(), IN_OPEN | IN_ONLYDIR) < 0)
        throw std::system_error(errno, std::generic_category(), "watch " + directory.native());
    }
    reader_ = std::jthread([this](const std::stop_token& stop) { read_until(stop); });
  }
  DirectoryOpens(const DirectoryOpens&) = delete;
  DirectoryOpens& operator=(const DirectoryOpens&) = delete;
  ~DirectoryOpens() {
    count();
    ::close(queue_);
  }

  std::uint64_t count() {
    reader_ = {};  // reads the rest
    EXPECT_FALSE(has_lost_some_) << "the queue of the kernel was full";
    return opens_;
  }

 private:
  void read_until(const std::stop_token& stop) {
    for (pollfd ready{queue_, POLLIN, 0};;) {
      const bool is_last = stop.stop_requested();
      while (::poll(&ready, 1, is_last ? 0 : 10) > 0) read_events();
      if (is_last) return;
    }
  }

  void read_events() {
    alignas(inotify_event) std::array<char, std::size_t{256} << 10U> buffer;
    const ssize_t got = ::read(queue_, buffer.data(), buffer.size());
    for (std::ptrdiff_t at = 0; at < got;) {
      const auto& event = *reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += static_cast<std::ptrdiff_t>(sizeof event + event.len);
      if ((event.mask & IN_Q_OVERFLOW) != 0) has_lost_some_ = true;
      // An event with a name is about an entry of the directory.
      if ((event.mask & IN_OPEN) != 0 && event.len == 0) ++opens_;
    }
  }

  const int queue_ = ::inotify_init1(IN_CLOEXEC);
  std::uint64_t opens_ = 0;  // the reader's, until it has ended
  bool has_lost_some_ = false;
  std::jthread reader_;
};

class ResumeTest : public OneNodeTest {
 protected:
  ResumeTest() {
    for (int top = 0; top < 10; ++top) {
      for (int middle = 0; middle < 20; ++middle) {
        const auto parent = drive() / std::to_string(top) / std::to_string(middle);
        for (std::uint64_t below = 0; below < leaves; ++below) {
          std::filesystem::create_directories(parent / std::to_string(below));
        }
        std::ofstream(parent / "file") << "some bytes";
      }
    }
  }

  // The drive's root is none of them.
  static constexpr std::uint64_t directories = 10 + 10 * 20 + 10 * 20 * leaves;

  void set_pace(std::uint64_t directories_per_second) {
    const auto file = cluster_.config_of(node());
    json config = json::parse(std::ifstream(file));
    config["scan"]["max_dirs_per_second"] = directories_per_second;
    std::ofstream(file) << config;
  }

  // By a scan that has not ended, as it was committed.
  std::uint64_t walked() {
    auto database =
        scanner::UsageDatabase::open_read_only(scanner::UsageDatabase::file_in(cluster_.data_dir_of(node())));
    const auto text = database ? database->setting(scanner::unfinished_key) : database.error();
    if (!text || !*text) return 0;
    const auto unfinished = scanner::UnfinishedScan::decode(**text);
    return unfinished ? unfinished->figures.dirs_walked : 0;
  }

  // Once it has committed something; gives its exit code.
  int scan_and_end(int signal, const std::vector<std::string>& more = {}) {
    const std::uint64_t before = walked();
    std::vector<std::string> command{SPOOR, "--config", cluster_.config_of(node()).native(), "scan"};
    command.insert(command.end(), more.begin(), more.end());
    support::Daemon scan(command);
    std::jthread watch([&](const std::stop_token& over) {
      while (!over.stop_requested() && walked() <= before) std::this_thread::yield();
      if (!over.stop_requested()) scan.signal(signal);
    });
    scan.wait_for("what it does not say: until it ends");
    watch.request_stop();
    watch.join();
    return scan.wait();
  }

  std::vector<std::filesystem::path> all_directories() {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(drive())) {
      const bool is_own = entry.path().native().starts_with((drive() / ".spoor").native());
      if (entry.is_directory() && !is_own) all.push_back(entry.path());
    }
    return all;
  }
};

constexpr int killed = 128 + SIGKILL;

TEST_F(ResumeTest, Scan_KilledRepeatedly_ReadsHardlyAnyDirectoryTwice) {
  DirectoryOpens opens(all_directories());
  set_pace(pace);
  EXPECT_EQ(scan_and_end(SIGKILL), killed);
  EXPECT_EQ(scan_and_end(SIGTERM), 1);
  EXPECT_TRUE(json::parse(cluster_.spoor(node(), {"usage", "--json"}).out)["scanning"]);
  set_pace(0);
  const json report = cluster_.scan(node());
  const std::uint64_t opened = opens.count();
  EXPECT_EQ(report["resumed"]["scan"], 1);
  EXPECT_GE(report["resumed"]["dirs_walked"], directories + 1);
  EXPECT_GT(report["resumed"]["dirs_replayed"], 0);
  EXPECT_EQ(report["scan"], 2);
  EXPECT_EQ(report["dirs_walked"], 0);
  EXPECT_LE(opened, directories + directories / 2) << "what was walked between a commit and the kill";
  EXPECT_GE(opened, directories);
  cluster_.expect_truth(node());
  EXPECT_EQ(walked(), 0U);

  const json idle = cluster_.scan(node());
  EXPECT_TRUE(idle["resumed"].is_null());
}

TEST_F(ResumeTest, ResumedScan_MarksSinceTheKill_AreInTheNextScan) {
  cluster_.scan(node());
  change("0/0/file");
  change("9/19/file");
  cluster_.spoor(node(), {"mark", "--kind", "tree", "9"});
  set_pace(pace);
  EXPECT_EQ(scan_and_end(SIGKILL, {"--full"}), killed);
  change("0/0/1/new");
  change("9/19/99/new");
  std::filesystem::remove_all(drive() / "0/1");
  std::filesystem::rename(drive() / "0/2", drive() / "9/moved");
  EXPECT_EQ(cluster_
                .spoor(node(), {"mark", "-0"},
                       std::string("0/1\0"
                                   "0/2\0"
                                   "9/moved",
                                   15))
                .code,
            0);
  EXPECT_EQ(cluster_.spoor(node(), {"scan", "--dry-run"}).code, 0);
  EXPECT_EQ(scan_and_end(SIGKILL), killed);
  change("5/5/5/later");
  set_pace(0);
  const json report = cluster_.scan(node());
  EXPECT_EQ(report["resumed"]["scan"], 2);
  EXPECT_GE(report["resumed"]["dirs_walked"], directories);
  EXPECT_EQ(report["scan"], 3);
  EXPECT_EQ(report["mode"], "incremental");
  EXPECT_LT(report["dirs_walked"], directories / 2);
  cluster_.expect_truth(node());
}

}  // namespace
}  // namespace spoor::cluster
