#include "tests/cluster/cluster.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <utility>

#include "tests/support/loopback.h"

namespace spoor::cluster {

using nlohmann::json;

Cluster::Cluster(std::size_t nodes, std::size_t drives, json etcd) : etcd_(std::move(etcd)) {
  for (std::size_t i = 0; i < nodes; ++i) {
    Node& node = nodes_.emplace_back();
    node.name = "n" + std::to_string(i);
    for (std::size_t d = 0; d < drives; ++d) {
      node.drives.push_back(directory_ / (node.name + "-drive" + std::to_string(d)));
      std::filesystem::create_directory(node.drives.back());
    }
  }
  for (Node& node : nodes_) {
    write_config(node);
    start(node);
  }
}

void Cluster::write_config(const Node& node) const {
  json peers{{"static", json::array()}};
  for (const Node& other : nodes_) {
    if (etcd_.is_null() && other.name != node.name) {
      peers["static"].push_back("unix:" + socket_of(other).native());
    }
  }
  if (!etcd_.is_null()) {
    peers["etcd"] = etcd_;
    peers["etcd"]["url"] = "unix:" + socket_of(node).native();
  }
  const json config{{"node", {{"name", node.name}, {"cluster", "test"}, {"data_dir", data_dir_of(node)}}},
                    {"drives", node.drives},
                    {"listen",
                     {{{"address", support::own_loopback()}, {"port", 0}, {"insecure", true}},
                      {{"unix", socket_of(node)}}}},
                    {"peers", peers},
                    {"scan", {{"min_cycle_age", "1ms"}}}};
  std::ofstream(config_of(node)) << config;
}

void Cluster::start(Node& node) {
  node.daemon = std::make_unique<support::Daemon>(
      std::vector<std::string>{SPOORD, "--config", config_of(node).native()});
  ASSERT_FALSE(node.daemon->wait_for("listening on unix:").empty()) << node.daemon->log();
}

int Cluster::stop(Node& node) {
  node.daemon->signal(SIGTERM);
  return node.daemon->wait();
}

void Cluster::kill_hard(Node& node) {
  node.daemon->signal(SIGKILL);
  node.daemon->wait();
}

void Cluster::configure(Node& node, const std::function<void(json&)>& change) {
  stop(node);
  json config = json::parse(std::ifstream(config_of(node)));
  change(config);
  std::ofstream(config_of(node)) << config;
  start(node);
}

support::CommandResult Cluster::spoor(const Node& node, std::vector<std::string> arguments,
                                      const std::string& input) {
  std::vector<std::string> command{SPOOR, "--config", config_of(node).native()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return support::run_command(command, input);
}

json Cluster::scan(const Node& node, int code, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"scan", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto result = spoor(node, arguments);
  EXPECT_EQ(result.code, code) << result.err << result.out;
  return json::parse(result.out, nullptr, false);
}

support::TreeTotals Cluster::usage(const Node& node) {
  const auto result = spoor(node, {"usage", "--json"});
  EXPECT_EQ(result.code, 0) << result.err;
  const auto usage = json::parse(result.out, nullptr, false);
  if (!usage.is_object()) return {};
  return {usage["files"], usage["dirs"], usage["bytes"]};
}

void Cluster::expect_truth(const Node& node) {
  EXPECT_EQ(usage(node), support::walk_independently(node.drives)) << node.name;
}

json Cluster::status(const Node& node) {
  return json::parse(spoor(node, {"status", "--json"}).out, nullptr, false);
}

void Cluster::change_and_tell(const Node& told) {
  const std::string path = "bucket/d" + std::to_string(++changes_);
  std::filesystem::create_directories(nodes_[0].drives[0] / path);
  std::ofstream(nodes_[0].drives[0] / path / "file") << "12345";
  const auto marked = spoor(told, {"mark", path});
  ASSERT_EQ(marked.code, 0) << marked.err;
}

}  // namespace spoor::cluster
