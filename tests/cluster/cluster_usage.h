// `spoor usage --cluster` of real daemons, beside a count of the drives that does not use Spoor.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/cluster/cluster.h"
#include "tests/support/tree_totals.h"

namespace spoor::cluster {

class ClusterUsageTest : public testing::Test {
 protected:
  using Totals = std::map<std::string, support::TreeTotals>;  // by path

  struct Answer {
    int code = -1;
    nlohmann::json json;
    std::string err;

    Totals totals() const;
    // Those that are not ok: the names of nodes of this cluster, "" for any other.
    std::multiset<std::string> missing(const Cluster& cluster) const;
    // The error of the one node with this URL or name.
    std::string error_of(const std::string& url_or_name) const;
  };

  explicit ClusterUsageTest(std::size_t nodes, std::size_t drives = 1) : cluster_(nodes, drives) {}

  Cluster::Node& node(std::size_t index) { return cluster_.nodes()[index]; }
  std::string url_of(const Cluster::Node& node) const { return "unix:" + cluster_.socket_of(node).native(); }

  // `spoor usage --cluster --json --depth 2 ARGUMENTS`
  Answer ask(const Cluster::Node& node, const std::vector<std::string>& arguments = {});

  // The true totals of a directory and those up to two levels below it, on these nodes together.
  static Totals count(const std::vector<const Cluster::Node*>& nodes, const std::string& path = {});

  // Creates or replaces a file of this size.
  void write(Cluster::Node& node, const std::string& path, std::size_t bytes);
  void scan_all();

  // At which the daemon listens besides its socket.
  static std::string tcp_url_of(Cluster::Node& node);

  Cluster cluster_;
};

}  // namespace spoor::cluster
