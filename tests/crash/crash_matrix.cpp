#include "tests/crash/crash_matrix.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "tests/tracker/node.h"

namespace spoor::crash {
namespace {

using fakes::MemoryFileSystem;
using tracker::CycleId;
using tracker::Durability;
using tracker::Mark;
using tracker::MarkKind;
using tracker::Node;
using Fate = MemoryFileSystem::Fate;

constexpr std::size_t violations_kept = 20;

enum class Act { start, mark, open_cycle, save, stop, kill };

struct Step {
  Act act;
  Mark mark = {};
  std::uint64_t cycle = 0;
};

Step mark(std::string path, MarkKind kind = MarkKind::dir) { return {Act::mark, {std::move(path), kind}, 0}; }
Step open_cycle(std::uint64_t cycle) { return {Act::open_cycle, {}, cycle}; }

// Marks that say nothing new stand behind those they rely on; every kind of step follows on every other.
const std::vector<Step>& life() {
  static const std::vector<Step> steps{
      {Act::start},
      mark("bucket/a/1"),
      mark("bucket/a/1"),
      mark("bucket/b", MarkKind::tree),
      open_cycle(2),
      mark("bucket/c/2", MarkKind::file),
      {Act::save},
      mark("bucket/d/3"),
      open_cycle(5),
      mark("bucket/e", MarkKind::tree),
      mark("bucket/e/below"),
      {Act::save},
      {Act::save},
      mark("bucket/d/3"),
      {Act::stop},
      {Act::start},
      mark("bucket/f/4"),
      {Act::kill},
      {Act::start},
      mark("bucket/g/5", MarkKind::file),
      open_cycle(6),
      {Act::save},
      {Act::kill},
      {Act::start},
      {Act::save},
      mark("bucket/h/6"),
      open_cycle(7),
      mark("top"),
      {Act::save},
      mark("bucket/i", MarkKind::tree),
      {Act::stop},
      {Act::start},
      {Act::stop},
  };
  return steps;
}

// The directory that the mark is about.
std::string directory_of(const Mark& mark) {
  return mark.kind == MarkKind::file ? std::string(tracker::parent_path(mark.path)) : mark.path;
}

// What the world outside was told, and what it tried.
struct Oracle {
  std::optional<tracker::InstanceId> instance;  // as soon as anybody relies on it
  std::vector<std::pair<Mark, CycleId>> acknowledged;
  std::set<std::string> attempted;
  CycleId answered{0};  // the highest cycle that a scanner has a cursor for
  CycleId highest{1};   // asked for, answered or not
};

// A machine with its disks, and what was promised by it.
class World {
 public:
  explicit World(const Matrix& matrix) : matrix_(matrix), files_(std::make_unique<MemoryFileSystem>()) {
    tracker::make_directories(*files_);
    files_->reset_calls();
    files_->is_sync_omitted = matrix.is_sync_omitted;
  }
  World(const World& other) : matrix_(other.matrix_), files_(other.files_->clone()), oracle_(other.oracle_) {
    files_->is_sync_omitted = matrix_.is_sync_omitted;
  }
  World& operator=(const World&) = delete;

  MemoryFileSystem& files() { return *files_; }
  const Oracle& oracle() const { return oracle_; }

  // Through all steps, or up to where the file system stopped.
  void run_steps(const std::string& boot_id) {
    std::unique_ptr<Node> node;
    for (const Step& step : life()) {
      if (!take(step, node, boot_id)) break;
    }
  }

  // Starts a node on what is there. Nothing where it can't write.
  std::unique_ptr<Node> start(const std::string& boot_id) {
    auto options = tracker::node_options(matrix_.durability);
    options.boot_id = boot_id;
    try {
      return std::make_unique<Node>(*files_, clock_, std::move(options));
    } catch (const std::system_error&) {
      return nullptr;
    }
  }

 private:
  // Whether the node goes on.
  bool take(const Step& step, std::unique_ptr<Node>& node, const std::string& boot_id) {
    switch (step.act) {
      case Act::start:
        node = start(boot_id);
        return node != nullptr;
      case Act::mark:
        return make(*node, step.mark);
      case Act::open_cycle:
        return open(*node, {step.cycle});
      case Act::save:
        return node->save().durable();
      case Act::stop:
        return fakes::stop(node->persistence()).has_value();
      case Act::kill:
        node.reset();
        return true;
    }
    return false;
  }

  bool make(Node& node, const Mark& mark) {
    oracle_.attempted.insert(directory_of(mark));
    const CycleId cycle = node.tracker().state().current;
    if (!node.mark_durably(mark)) return false;
    oracle_.instance = node.instance();
    oracle_.acknowledged.emplace_back(mark, cycle);
    return true;
  }

  bool open(Node& node, CycleId cycle) {
    oracle_.highest = std::max(oracle_.highest, cycle);
    tracker::CycleRequest request;
    request.current = cycle;
    const auto answer = node.tracker().cycle(request);
    auto& persistence = node.persistence();
    if (persistence.durable_position() < answer.position && !persistence.commit()) return false;
    oracle_.instance = answer.instance;
    oracle_.answered = std::max(oracle_.answered, answer.current);
    return true;
  }

  const Matrix& matrix_;
  std::unique_ptr<MemoryFileSystem> files_;
  fakes::ManualClock clock_;
  Oracle oracle_;
};

// Every sequence of fates, one after the other. How many things there are to choose for is known only once
// they were asked for.
class Choices {
 public:
  Fate choose(const std::string& what) {
    if (at_ == digits_.size()) {
      const bool is_content = what.starts_with("content of");  // an entry can't be half there
      digits_.push_back({0, is_content ? 4U : 2U});
    }
    const Digit& digit = digits_[at_++];
    if (digit.radix == 2) return digit.value == 0 ? Fate::lost : Fate::kept;
    return static_cast<Fate>(digit.value);
  }

  // To the next sequence; false after the last.
  bool next() {
    at_ = 0;
    while (!digits_.empty()) {
      if (++digits_.back().value < digits_.back().radix) return true;
      digits_.pop_back();
    }
    return false;
  }

  std::string describe() const {
    std::string text;
    for (const Digit& digit : digits_) text += static_cast<char>('0' + static_cast<char>(digit.value));
    return text;
  }

 private:
  struct Digit {
    unsigned value;
    unsigned radix;
  };
  std::vector<Digit> digits_;
  std::size_t at_ = 0;
};

class Runner {
 public:
  explicit Runner(const Matrix& matrix) : matrix_(matrix) {}

  Outcome run() {
    World whole(matrix_);
    whole.run_steps("boot 1");
    const std::size_t calls = whole.files().calls();
    for (std::size_t stop = matrix_.first; stop <= calls + 1 && !is_enough(); stop += matrix_.stride)
      crash_at(stop);
    return std::move(outcome_);
  }

 private:
  void crash_at(std::size_t stop) {
    World cut_off(matrix_);
    cut_off.files().stop_at_call(stop);
    cut_off.run_steps("boot 1");
    for_each_crash(matrix_.fault, cut_off, [&](const World& crashed, const std::string& fates) {
      const std::string where = fmt::format("cut before call {}, fates {}", stop, fates);
      const std::size_t calls = check(World(crashed), boot_after_first(), where);
      if (matrix_.in_recovery) crash_recovery(crashed, calls, where);
    });
  }

  void crash_recovery(const World& crashed, std::size_t calls, const std::string& where) {
    for (std::size_t stop = 1; stop <= calls && !is_enough(); ++stop) {
      World cut_off(crashed);
      cut_off.files().reset_calls();
      cut_off.files().stop_at_call(stop);
      cut_off.start(boot_after_first());
      for_each_crash(second_fault(), cut_off, [&](const World& again, const std::string& fates) {
        check(World(again), second_fault() == Fault::kill ? boot_after_first() : "boot 3",
              fmt::format("{}; the start cut before call {}, fates {}", where, stop, fates));
      });
    }
  }

  template <class Visit>
  void for_each_crash(Fault fault, const World& cut_off, Visit&& visit) {
    Choices choices;
    do {
      World crashed(cut_off);
      if (fault == Fault::kill) {
        crashed.files().kill();
      } else {
        crashed.files().crash([&](const std::string& what) { return choices.choose(what); });
      }
      visit(crashed, choices.describe());
    } while (!is_enough() && choices.next());
  }

  bool is_enough() const { return matrix_.until_first_violation && outcome_.violation_count > 0; }

  const char* boot_after_first() const { return matrix_.fault == Fault::kill ? "boot 1" : "boot 2"; }
  Fault second_fault() const { return matrix_.fault_in_recovery.value_or(matrix_.fault); }

  // Returns how many calls the start took.
  std::size_t check(World world, const char* boot, const std::string& where) {
    ++outcome_.points;
    where_ = where;
    world.files().reset_calls();
    auto node = world.start(boot);
    const std::size_t calls = world.files().calls();
    if (!node) {
      violation("the node does not start");
      return calls;
    }
    hold_against(world.oracle(), *node);
    check_that_it_goes_on(world, std::move(node), boot);
    return calls;
  }

  // What is acknowledged from here on is there after the next kill as well.
  void check_that_it_goes_on(World& world, std::unique_ptr<Node> node, const std::string& boot_id) {
    const Mark later{"bucket/later", MarkKind::dir};
    if (!node->mark_durably(later)) return violation("nothing is acknowledged after the recovery");
    const auto instance = node->instance();
    node.reset();
    world.files().kill();
    node = world.start(boot_id);
    if (!node) return violation("the node does not start again");
    if (matrix_.durability != Durability::memory) {
      if (node->instance() != instance) violation("a kill after the recovery is a loss: " + node->loss());
      if (!node->is_dirty(later.path)) violation("a mark after the recovery is gone");
    }
    hold_against(world.oracle(), *node);
  }

  void hold_against(const Oracle& oracle, Node& node) {
    const bool is_loss = !node.loss().empty();
    if (is_loss) ++outcome_.losses;
    const bool may_lose = matrix_.durability == Durability::memory ||
                          (matrix_.durability == Durability::os && matrix_.fault == Fault::power_cut);
    if (is_loss && !may_lose) violation("a gap where none is due: " + node.loss());
    const auto state = node.tracker().state();
    if (!may_lose && oracle.instance && state.instance != *oracle.instance) violation("another instance");
    const bool same = oracle.instance && state.instance == *oracle.instance;
    for (const auto& [mark, cycle] : oracle.acknowledged) {
      // In another instance every cursor is void, and the gap over everything is what counts.
      const auto since = same ? cycle : CycleId{0};
      const std::string path = directory_of(mark);
      if (!node.tracker().dirty(path, since).latest) violation("lost: " + path);
    }
    if (same && state.current < oracle.answered) violation("the cycle number went back");
    if (state.current > next(next(oracle.highest)) && !may_lose) violation("a cycle that nobody opened");
    if (same) check_cursor(oracle, node);
    if (!is_loss && same) check_nothing_invented(oracle, node);
  }

  // A scanner that had the highest cycle answered reads on from there without a gap.
  void check_cursor(const Oracle& oracle, Node& node) {
    if (oracle.answered.value == 0) return;
    tracker::CycleRequest request;
    request.oldest = oracle.answered;
    request.instance = *oracle.instance;
    const auto answer = node.tracker().cycle(request);
    if (answer.gap) violation("a gap for a scanner whose cursor holds");
    for (const auto& [mark, cycle] : oracle.acknowledged) {
      if (cycle < oracle.answered) continue;
      const std::string path = directory_of(mark);
      if (!tracker::contains(answer.marks, path)) violation("not answered: " + path);
    }
  }

  void check_nothing_invented(const Oracle& oracle, Node& node) {
    for (const Step& step : life()) {
      const std::string path = directory_of(step.mark);
      if (step.act != Act::mark || oracle.attempted.contains(path)) continue;
      const bool below_a_tree = path.starts_with("bucket/e/") && oracle.attempted.contains("bucket/e");
      if (!below_a_tree && node.is_dirty(path)) violation("invented: " + path);
    }
  }

  void violation(const std::string& what) {
    ++outcome_.violation_count;
    if (outcome_.violations.size() < violations_kept) outcome_.violations.push_back(where_ + ": " + what);
  }

  const Matrix& matrix_;
  std::string where_;
  Outcome outcome_;
};

}  // namespace

Outcome run(const Matrix& matrix) { return Runner(matrix).run(); }

}  // namespace spoor::crash
