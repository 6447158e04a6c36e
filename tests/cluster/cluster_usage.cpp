#include "tests/cluster/cluster_usage.h"

#include <fstream>

#include "base/base64.h"
#include "tests/support/loopback.h"

namespace spoor::cluster {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int levels = 2;

void add(const json& entry, std::map<std::string, support::TreeTotals>& totals) {
  const std::string path = entry.contains("path_base64")
                               ? base::from_base64(entry["path_base64"].get<std::string>()).value()
                               : entry["path"].get<std::string>();
  EXPECT_FALSE(totals.contains(path)) << "listed twice: " << path;
  totals[path] = {entry["files"], entry["dirs"], entry["bytes"]};
  EXPECT_FALSE(entry.contains("rest")) << entry["rest"];
  for (const json& child : entry.value("children", json::array())) add(child, totals);
}

void count(const fs::path& drive, const fs::path& path, int levels_left,
           std::map<std::string, support::TreeTotals>& totals) {
  const fs::path directory = path.empty() ? drive : drive / path;
  if (!fs::is_directory(fs::symlink_status(directory))) return;
  const auto here = support::walk_independently({directory});
  support::TreeTotals& sum = totals[path.native()];
  sum = {sum.files + here.files, sum.dirs + here.dirs, sum.bytes + here.bytes};
  if (levels_left == 0) return;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const fs::path name = entry.path().filename();
    if (!path.empty() || name != ".spoor") count(drive, path / name, levels_left - 1, totals);
  }
}

}  // namespace

ClusterUsageTest::Totals ClusterUsageTest::Answer::totals() const {
  Totals totals;
  if (json.is_object()) add(json, totals);
  return totals;
}

std::multiset<std::string> ClusterUsageTest::Answer::missing(const Cluster& cluster) const {
  std::multiset<std::string> missing;
  if (!json.is_object()) return {"no answer"};
  for (const auto& listed : json["nodes"]) {
    if (listed["ok"]) continue;
    std::string name;
    for (const Cluster::Node& node : cluster.nodes()) {
      if (listed["url"].is_null() ? listed["name"] == node.name
                                  : listed["url"] == "unix:" + cluster.socket_of(node).native())
        name = node.name;
    }
    missing.insert(name);
  }
  return missing;
}

std::string ClusterUsageTest::Answer::error_of(const std::string& url_or_name) const {
  std::vector<std::string> errors;
  for (const auto& listed : json.value("nodes", nlohmann::json::array())) {
    if (listed["url"] == url_or_name || listed["name"] == url_or_name) errors.push_back(listed["error"]);
  }
  EXPECT_EQ(errors.size(), 1U) << url_or_name << " in " << json.dump();
  return errors.size() == 1 ? errors[0] : "not listed once";
}

ClusterUsageTest::Answer ClusterUsageTest::ask(const Cluster::Node& node,
                                               const std::vector<std::string>& arguments) {
  std::vector<std::string> command{"usage", "--cluster", "--json", "--depth", std::to_string(levels)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const auto result = cluster_.spoor(node, command);
  return {result.code, json::parse(result.out, nullptr, false), result.err};
}

ClusterUsageTest::Totals ClusterUsageTest::count(const std::vector<const Cluster::Node*>& nodes,
                                                 const std::string& path) {
  Totals totals;
  for (const Cluster::Node* const node : nodes) {
    for (const fs::path& drive : node->drives) cluster::count(drive, path, levels, totals);
  }
  return totals;
}

void ClusterUsageTest::write(Cluster::Node& node, const std::string& path, std::size_t bytes) {
  fs::create_directories((node.drives[0] / path).parent_path());
  std::ofstream(node.drives[0] / path) << std::string(bytes, 'x');
}

void ClusterUsageTest::scan_all() {
  for (const Cluster::Node& node : cluster_.nodes()) cluster_.scan(node);
}

std::string ClusterUsageTest::tcp_url_of(Cluster::Node& node) {
  const std::string address = "http://" + support::own_loopback() + ':';
  return address + node.daemon->wait_for("listening on " + address);
}

}  // namespace spoor::cluster
