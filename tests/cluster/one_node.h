// A cluster of one node, mostly with one drive, which is changed and scanned.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cluster/cluster.h"
#include "tests/faults/mounts.h"
#include "tests/support/file_times.h"

namespace spoor::cluster {

class OneNodeTest : public testing::Test {
 protected:
  explicit OneNodeTest(std::size_t drives = 1) : cluster_(1, drives) {}

  Cluster::Node& node() { return cluster_.nodes()[0]; }
  std::filesystem::path drive() { return node().drives[0]; }

  support::CommandResult changes(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "changes");
    return cluster_.spoor(node(), std::move(arguments));
  }

  // Writes a file, and marks it.
  void change(const std::string& path) {
    std::filesystem::create_directories((drive() / path).parent_path());
    std::ofstream(drive() / path, std::ios::app) << path;
    ASSERT_EQ(cluster_.spoor(node(), {"mark", "-0"}, path).code, 0);
  }

  // Reports each change once: what was changed before is old enough.
  void scan_settled() {
    support::outlast_timestamp_step();
    cluster_.scan(node());
  }

  // Runs a recipe of docs/recipes with `spoor` as this node has it.
  support::CommandResult recipe(const std::string& name, const std::vector<std::string>& arguments,
                                const std::vector<std::string>& environment = {},
                                const std::vector<std::string>& options = {}) {
    return support::run_command(recipe_command(name, arguments, environment, options));
  }

  std::filesystem::path state_of_recipes() { return cluster_.config_of(node()).parent_path() / "recipes"; }

  std::vector<std::string> recipe_command(const std::string& name, const std::vector<std::string>& arguments,
                                          const std::vector<std::string>& environment = {},
                                          const std::vector<std::string>& options = {}) {
    std::string program = std::string("SPOOR=") + SPOOR + " --config " + cluster_.config_of(node()).native();
    for (const std::string& each : options) program += ' ' + each;
    std::vector<std::string> command{"env", program, "STATE_DIRECTORY=" + state_of_recipes().native()};
    if (!faults::why_no_mounts().empty()) command.emplace_back("SPOOR_UNCONFINED=1");
    command.insert(command.end(), environment.begin(), environment.end());
    command.push_back(std::string(RECIPES "/") + name);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
  }

  Cluster cluster_;
};

}  // namespace spoor::cluster
