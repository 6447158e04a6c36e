// Random clusters and scanners against an exact record of what was marked and what was walked.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "peer/gather/gather.h"
#include "tests/fakes/fake_cluster.h"
#include "tests/fakes/manual_clock.h"
#include "tests/support/random.h"
#include "tests/support/sanitizer.h"

namespace spoor::peer {
namespace {

using fakes::FakeCluster;

// One scanner, and the paths that were marked somewhere and that it has not walked since.
struct Scanner {
  tracker::Cursors cursors;
  std::map<std::string, std::set<std::string>> unwalked;  // by host of the tracker
};

class Model {
 public:
  explicit Model(support::Random& random) : random_(random) {
    for (const auto& host : hosts_) cluster_.add(host);
  }

  void step() {
    clock_.advance(std::chrono::seconds(random_.below(90)));
    const std::uint64_t dice = random_.below(100);
    if (dice < 60)
      mark();
    else if (dice < 66)
      cluster_[random_.pick(hosts_)].is_down = random_.one_in(2);
    else if (dice < 67)
      lose_memory();
    else if (dice < 70)
      cluster_[random_.pick(hosts_)].tracker->advance({random_.below(60)});
    else
      scan(scanners_[random_.below(scanners_.size())]);
  }

 private:
  void mark() {
    const std::string host = random_.pick(hosts_);
    if (cluster_[host].is_down) return;  // nobody acknowledges
    const std::string path = "b/" + std::to_string(next_path_++);
    const auto kind = random_.one_in(5) ? tracker::MarkKind::tree : tracker::MarkKind::dir;
    const tracker::Mark mark{path, kind};
    cluster_[host].tracker->mark({&mark, 1});
    for (Scanner& scanner : scanners_) scanner.unwalked[host].insert(path);
  }

  // The marks of the lost tracker stay in `unwalked`: a gap has to cover them.
  void lose_memory() { cluster_.start_anew(cluster_[random_.pick(hosts_)]); }

  void scan(Scanner& scanner) {
    GatherOptions options;
    options.cluster = "c";
    options.members.endpoints = FakeCluster::endpoints(hosts_);
    const auto gathered = gather(cluster_, scanner.cursors, options);
    const bool dies = random_.one_in(4);
    for (const auto& peer : gathered.peers) {
      if (!peer.ok) continue;
      auto& unwalked = scanner.unwalked[peer.name];
      for (const std::string& path : unwalked) {
        ASSERT_TRUE(gathered.marks.may_contain(path, tracker::hash_path(path))) << peer.name << ' ' << path;
        for (const std::string_view parent : {std::string_view("b")}) {
          ASSERT_TRUE(gathered.marks.may_contain(parent, tracker::hash_path(parent)));
        }
      }
      if (!dies) unwalked.clear();
    }
    if (!dies) scanner.cursors = gathered.cursors;
  }

  support::Random& random_;
  fakes::ManualClock clock_;
  FakeCluster cluster_{clock_};
  std::vector<std::string> hosts_{"a", "b", "c", "d"};
  std::vector<Scanner> scanners_{3};
  std::uint64_t next_path_ = 0;
};

TEST(GatherModelTest, AcknowledgedMark_IsInNextGatherOfItsPeer) {
  SPOOR_RANDOM(random);
  for (int run = 0; run < (support::is_sanitized ? 15 : 40) && !testing::Test::HasFatalFailure(); ++run) {
    Model model(random);
    for (int step = 0; step < 400 && !testing::Test::HasFatalFailure(); ++step) model.step();
  }
}

}  // namespace
}  // namespace spoor::peer
