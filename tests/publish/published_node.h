// A node with one drive, and spoor-publish as a real process.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/cluster.h"
#include "tests/publish/drive_changes.h"
#include "tests/publish/event_server.h"
#include "tests/publish/tree_copy.h"
#include "tests/support/process.h"
#include "tests/support/random.h"

namespace spoor::publish {

class PublishedNode {
 public:
  static constexpr std::size_t batch = 7;

  explicit PublishedNode(bool file_feed = true);

  // Publishes to these, under the names "s0", "s1"...
  void set_sinks(const std::vector<nlohmann::json>& sinks);

  // Changes the drive, marks that, and scans.
  void change_and_scan(DriveChanges& changes, support::Random& random);
  // Returns its number.
  std::uint64_t scan(const std::vector<std::string>& options = {});
  // Writes this many files into a directory, and scans.
  void write_and_scan(const std::string& directory, int files);

  void start();                    // spoor-publish
  void kill();                     // kill -9
  int stop(int signal = SIGTERM);  // returns the exit code
  bool is_running() const { return publisher_ != nullptr; }
  support::Daemon& publisher() { return *publisher_; }
  // Whether spoor-publish has nothing left to publish, and nothing that is not acknowledged.
  bool has_published_all();
  // spoor-publish --once; ends a running one before.
  support::CommandResult publish_once();
  // The feed begins again for the first sink, if it has begun.
  void forget();

  std::filesystem::path drive() { return node().drives[0]; }
  Tree tree() { return tree_of(drive()); }

 private:
  cluster::Cluster::Node& node() { return cluster_.nodes()[0]; }
  void configure(const std::string& section, const nlohmann::json& value);
  void mark(const std::string& kind, const std::string& paths);

  cluster::Cluster cluster_{1, 1};
  std::unique_ptr<support::Daemon> publisher_;
};

}  // namespace spoor::publish
