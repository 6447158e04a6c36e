// Random clusters and scanners against an exact record of what was marked and what was walked. The filters of
// the peers have different sizes and levels.
#include <gtest/gtest.h>

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

// One scanner, and the paths that were acknowledged somewhere and that it has not walked since.
struct Scanner {
  tracker::PeerBook book;
  std::set<std::string> unwalked;
};

class Model {
 public:
  explicit Model(support::Random& random) : random_(random) {
    for (const auto& host : hosts_) {
      cluster_.add(host);
      start_anew(host);
    }
    // Else it takes silent members for long gone.
    for (Scanner& scanner : scanners_) {
      while (scanner.book.empty()) scan(scanner);
    }
  }

  void step() {
    clock_.advance(std::chrono::seconds(random_.below(90)));
    const std::uint64_t dice = random_.below(100);
    if (dice < 55)
      mark(random_.pick(hosts_));
    else if (dice < 60)
      flip(down_);
    else if (dice < 65)
      flip(hidden_);
    else if (dice < 68)
      flip(listed_);
    else if (dice < 70)
      start_anew(random_.pick(hosts_));  // a gap has to cover the marks of the old one
    else if (dice < 73)
      cluster_[random_.pick(hosts_)].tracker->advance({random_.below(60)});
    else
      scan(scanners_[random_.below(scanners_.size())]);
  }

 private:
  using Hosts = std::set<std::string>;

  void flip(Hosts& hosts) {
    const std::string host = random_.pick(hosts_);
    if (hosts.erase(host) == 0) hosts.insert(host);
  }

  void start_anew(const std::string& host) {
    const std::vector<double> rates{0.5, 0.1, 0.01, 1e-4};
    const tracker::LevelSchedule levels(random_.between(1, 300), random_.pick(rates));
    cluster_[host].tracker =
        std::make_unique<tracker::Tracker>(tracker::Tracker::Options{.levels = levels}, clock_,
                                           tracker::Tracker::born(tracker::InstanceId::random(), clock_));
  }

  // As the daemon: it acknowledges what it marks only after all members that respond have recorded it, and
  // one has.
  void mark(const std::string& host) {
    if (down_.contains(host)) return;
    bool is_introduced = false;
    for (const auto& other : hosts_) {
      if (other == host || down_.contains(other)) continue;
      cluster_.record(other, cluster_.id(host));
      is_introduced = true;
    }
    const std::string path = "b/" + std::to_string(next_path_++);
    const auto kind = random_.one_in(5) ? tracker::MarkKind::tree : tracker::MarkKind::dir;
    const tracker::Mark mark{path, kind};
    cluster_[host].tracker->mark({&mark, 1});
    if (!is_introduced) return;
    for (Scanner& scanner : scanners_) scanner.unwalked.insert(path);
  }

  void scan(Scanner& scanner) {
    for (const auto& host : hosts_) cluster_[host].is_down = down_.contains(host) || hidden_.contains(host);
    GatherOptions options;
    options.cluster = "c";
    if (random_.one_in(8)) options.marks_bytes_max = random_.below(2'000);
    options.members.endpoints = FakeCluster::endpoints({listed_.begin(), listed_.end()});
    const auto gathered = gather(cluster_, scanner.book, options);
    std::set<std::string> missed;
    for (const std::string& path : scanner.unwalked) {
      const bool is_walked = gathered.marks.may_contain(path, tracker::hash_path(path)) &&
                             gathered.marks.may_contain("b", tracker::hash_path("b"));
      if (!is_walked) missed.insert(path);
    }
    if (gathered.complete()) {
      ASSERT_TRUE(missed.empty()) << *missed.begin();
      ++complete;
    }
    if (random_.one_in(4)) return;  // it dies
    scanner.unwalked = std::move(missed);
    scanner.book = gathered.book;
  }

  support::Random& random_;
  fakes::ManualClock clock_;
  FakeCluster cluster_{clock_};
  const std::vector<std::string> hosts_{"a", "b", "c", "d"};
  Hosts down_;
  Hosts hidden_;  // from the scanners: others meet them, and they acknowledge marks
  Hosts listed_{"a", "b", "c", "d"};
  std::vector<Scanner> scanners_{3};
  std::uint64_t next_path_ = 0;

 public:
  int complete = 0;  // scans
};

TEST(GatherModelTest, MarkAcknowledgedByAnyMember_IsInTheNextCompleteGather) {
  SPOOR_RANDOM(random);
  constexpr int runs = support::is_sanitized ? 15 : 40;
  int complete = 0;
  for (int run = 0; run < runs && !testing::Test::HasFatalFailure(); ++run) {
    Model model(random);
    for (int step = 0; step < 400 && !testing::Test::HasFatalFailure(); ++step) model.step();
    complete += model.complete;
  }
  EXPECT_GT(complete, 2 * runs) << "a third of what is usual";
}

}  // namespace
}  // namespace spoor::peer
