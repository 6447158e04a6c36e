// Five nodes, changed at random, some of them stopped or killed: the totals of the cluster equal an
// independent count of all drives of the nodes that respond, and of the others as they were when the daemon
// that is asked had their totals last; these are listed.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/cluster/cluster_usage.h"
#include "tests/support/random.h"
#include "tests/support/sanitizer.h"
#include "tests/support/tree_writer.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;

constexpr int rounds = support::is_sanitized ? 3 : 8;

class ClusterUsageRoundsTest : public ClusterUsageTest {
 protected:
  ClusterUsageRoundsTest() : ClusterUsageTest(5, 2) {
    for (Cluster::Node& each : cluster_.nodes()) {
      for (const fs::path& drive : each.drives) {
        fill(drive);
        writers_[each.name].emplace_back(random_, drive, support::TreeOddities::all).fill(6);
      }
    }
  }

  // Directories that other drives and nodes have, too.
  void fill(const fs::path& drive) {
    static const std::vector<std::string> names{"bucket",   "shared", "Gr\xc3\xbcn", "\xff\xfe",
                                                "\xff\xfd", "-n",     "line\nbreak", "a \"b\""};
    for (const std::string& top : names) {
      if (random_.one_in(3)) continue;
      for (const std::string& name : names) {
        if (random_.one_in(2)) continue;
        fs::create_directories(drive / top / name / random_.pick(names));
        std::ofstream(drive / top / name / "f") << random_.bytes(random_.below(3000));
      }
    }
  }

  // Changes the drives of a node, and marks that at any node that runs.
  void change(const Cluster::Node& changed) {
    std::string lines;
    for (std::size_t drive = 0; drive < changed.drives.size(); ++drive) {
      support::TreeWriter& writer = writers_[changed.name][drive];
      for (std::uint64_t i = random_.between(1, 5); i > 0; --i) writer.change();
      lines += writer.take_changed();
      if (random_.one_in(2)) lines += resize_or_link(changed.drives[drive]);
    }
    if (lines.empty()) return;
    EXPECT_EQ(cluster_.spoor(some_up(), {"mark", "-0"}, lines).code, 0);
  }

  // Shrinks or grows a file, or makes a file with names in two directories. Returns what has to be marked.
  std::string resize_or_link(const fs::path& drive) {
    std::vector<fs::path> files;
    std::vector<fs::path> directories;
    for (const auto& entry : fs::recursive_directory_iterator(drive)) {
      const fs::path path = entry.path().lexically_relative(drive);
      if (path.native().starts_with(".spoor") || entry.is_symlink()) continue;
      if (entry.is_directory()) directories.push_back(path);
      // The directories of its other names would have to be marked as well.
      if (entry.is_regular_file() && entry.hard_link_count() == 1) files.push_back(path);
    }
    if (!files.empty() && random_.one_in(2)) {
      const fs::path path = random_.pick(files);
      fs::resize_file(drive / path, random_.below(4000));
      return path.native() + '\0';
    }
    if (directories.empty()) return {};
    const fs::path one = random_.pick(directories) / ("link" + random_.letters(6));
    const fs::path other = random_.pick(directories) / ("link" + random_.letters(6));
    std::ofstream(drive / one) << random_.bytes(random_.below(3000));
    fs::create_hard_link(drive / one, drive / other);
    return one.native() + '\0' + other.native() + '\0';
  }

  void take_down(Cluster::Node& victim) {
    down_.insert(victim.name);
    reported_.erase(victim.name);  // its memory
    if (random_.one_in(2)) return cluster_.kill_hard(victim);
    EXPECT_EQ(cluster_.stop(victim), 0);
  }

  std::vector<const Cluster::Node*> up() {
    std::vector<const Cluster::Node*> up;
    for (const Cluster::Node& each : cluster_.nodes()) {
      if (!down_.contains(each.name)) up.push_back(&each);
    }
    return up;
  }
  const Cluster::Node& some_up() { return *random_.pick(up()); }

  // All totals, and those of one directory.
  void expect_truth(bool is_complete) {
    const Totals truth = count(up());
    auto at = truth.begin();
    std::advance(at, random_.below(truth.size()));
    expect_truth_of("", is_complete);
    expect_truth_of(at->first, is_complete);
  }

  void expect_truth_of(const std::string& path, bool is_complete) {
    const Cluster::Node& asked = some_up();
    SCOPED_TRACE(asked.name + " is asked for '" + path + "'");
    auto& reported = reported_[asked.name][path];
    for (const Cluster::Node* const each : up()) reported[each->name] = count({each}, path);
    Totals truth;
    for (const auto& [name, totals] : reported) {
      for (const auto& [directory, sums] : totals) {
        support::TreeTotals& sum = truth[directory];
        sum = {sum.files + sums.files, sum.dirs + sums.dirs, sum.bytes + sums.bytes};
      }
    }
    const Answer answer = ask(asked, {"--", path});
    EXPECT_EQ(answer.code, down_.empty() ? 0 : 3) << answer.err;
    EXPECT_EQ(answer.totals(), truth);
    EXPECT_EQ(answer.json["complete"], is_complete && down_.empty()) << answer.json;
    EXPECT_EQ(answer.json["nodes"].size(), cluster_.nodes().size());
    EXPECT_EQ(answer.missing(cluster_), down_);
    for (const std::string& name : down_) {
      EXPECT_NE(answer.err.find(name + ".sock"), std::string::npos) << answer.err;
    }
  }

  support::Random random_;
  std::map<std::string, std::vector<support::TreeWriter>> writers_;
  std::multiset<std::string> down_;
  // What the nodes reported last, by the node that was asked and the path.
  std::map<std::string, std::map<std::string, std::map<std::string, Totals>>> reported_;
};

TEST_F(ClusterUsageRoundsTest, RandomChangesAndOutages_SumsEqualAnIndependentCount) {
  SCOPED_TRACE(random_.trace());
  scan_all();
  expect_truth(true);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    // The scans of the others are partial then, and they still see all marks.
    const bool is_down_before_scans = random_.one_in(3);
    const auto take_some_down = [&] {
      for (Cluster::Node& each : cluster_.nodes()) {
        if (down_.size() < 3 && random_.one_in(4)) take_down(each);
      }
    };
    if (is_down_before_scans) take_some_down();
    const bool is_partial = !down_.empty();
    for (const Cluster::Node* const each : up()) change(*each);
    for (const Cluster::Node* const each : up()) {
      EXPECT_EQ(cluster_.scan(*each, is_partial ? 3 : 0)["mode"], "incremental");
      cluster_.expect_truth(*each);
    }
    if (!is_down_before_scans && !random_.one_in(3)) take_some_down();
    expect_truth(!is_partial);
    for (Cluster::Node& each : cluster_.nodes()) {
      if (down_.contains(each.name)) cluster_.start(each);
    }
    if (down_.empty()) continue;
    down_.clear();
    expect_truth(!is_partial);
  }
}

}  // namespace
}  // namespace spoor::cluster
