// Real daemons and real scans on this machine, with real trees on their drives.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temp_directory.h"
#include "tests/support/tree_totals.h"

namespace spoor::cluster {

// Of a file; empty if there is none.
inline std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Nodes reach each other over Unix sockets in one temporary directory, so that no port can be taken;
// each also listens on a free TCP port.
class Cluster {
 public:
  struct Node {
    std::string name;
    std::vector<std::filesystem::path> drives;
    std::unique_ptr<support::Daemon> daemon;
  };

  // Nodes "n0", "n1"... with this many drives each. They know each other by a list, or by this `peers.etcd`.
  Cluster(std::size_t nodes, std::size_t drives, nlohmann::json etcd = nullptr);

  std::vector<Node>& nodes() { return nodes_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  void start(Node& node);
  int stop(Node& node);        // SIGTERM; gives the exit code
  void kill_hard(Node& node);  // SIGKILL

  // Restarts the daemon with a configuration that this function has changed.
  void configure(Node& node, const std::function<void(nlohmann::json& config)>& change);

  // `spoor --config <the node's> ARGUMENTS`
  support::CommandResult spoor(const Node& node, std::vector<std::string> arguments,
                               const std::string& input = {});

  // One scan that is expected to end with this code; gives its JSON.
  nlohmann::json scan(const Node& node, int code = 0, const std::vector<std::string>& more = {});

  // The totals that the database has; that they equal an independent walk of the drives.
  support::TreeTotals usage(const Node& node);
  void expect_truth(const Node& node);

  // `spoor status --json`
  nlohmann::json status(const Node& node);

  // Makes a directory with a file on the first drive of n0, and marks it at one node alone.
  void change_and_tell(const Node& told);

  std::filesystem::path config_of(const Node& node) const { return directory_ / (node.name + ".json"); }
  std::filesystem::path data_dir_of(const Node& node) const { return directory_ / (node.name + "-data"); }
  std::filesystem::path socket_of(const Node& node) const { return directory_ / (node.name + ".sock"); }

 private:
  void write_config(const Node& node) const;

  support::TempDirectory directory_;
  const nlohmann::json etcd_;
  std::vector<Node> nodes_;
  int changes_ = 0;
};

}  // namespace spoor::cluster
