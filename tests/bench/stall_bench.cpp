// How long a mark waits while full cycles are saved, and beside it the same marks while nothing else goes
// on: what the machine's scheduler alone does to them. Three threads have work, one of them little: on less
// than three free processors a thread that is put off with the lock in its hand holds up the marks as well,
// and a wait of some milliseconds then says nothing about the tracker, unless there are many of them.
#include <fmt/core.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "tests/bench/bench_support.h"
#include "tests/fakes/saves.h"
#include "tests/support/temp_directory.h"
#include "tracker/storage/persistence.h"

namespace {

using namespace spoor;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

struct Settings {
  std::size_t items = 200'000;  // of each cycle
  std::size_t tree_marks = 10'000;
  int rounds = 5;
  std::chrono::milliseconds round_time = 1s;
  int calls_alone = 200;
};

// Enough to see that everything runs; the figures say nothing.
constexpr Settings short_settings{
    .items = 2000, .tree_marks = 100, .rounds = 1, .round_time = 50ms, .calls_alone = 5};

constexpr std::uint64_t cycles = 17;  // the current one, and 16 of history
// So fast that many marks fall into every copy of the state, and so slowly that the marks of all rounds
// together don't fill the filter much further.
constexpr auto mark_pace = 20us;
constexpr double long_wait_us = 200;

tracker::Mark key(std::uint64_t cycle, std::size_t number) {
  return {fmt::format("key-{}-{}", cycle, number)};
}

tracker::Mark tree(std::size_t number) {
  return {fmt::format("bucket/projects/team-{:03}/checkouts/tree-{:08}", number % 100, number),
          tracker::MarkKind::tree};
}

tracker::Mark path(std::size_t number) {
  return {fmt::format("bucket/holidays/album-{:03}/picture-{:010}.jpeg", number % 100, number)};
}

// A tracker with all the cycles it keeps, each as full as it is made for, on a disk.
class FullNode {
 public:
  FullNode(std::size_t items, std::size_t tree_marks) {
    std::filesystem::create_directory(directory_ / "drive");
    std::filesystem::create_directory(directory_ / "data");
    tracker::Persistence::Options options;
    options.data_dir = directory_ / "data";
    options.drives = {directory_ / "drive"};
    options.owner = {"cluster", "bench"};
    options.durability = tracker::Durability::disk;
    options.tracker = {.levels = tracker::LevelSchedule(items, 0.1)};
    persistence_ = tracker::Persistence::start(files_, clock_, std::move(options)).value();
    fill(items, tree_marks);
  }

  tracker::Persistence& persistence() { return *persistence_; }
  tracker::Tracker& tracker() { return persistence_->tracker(); }

  // As a scan asks that knows all but the current cycle.
  tracker::CycleAnswer answer() {
    return tracker().cycle({.current = {cycles}, .oldest = {cycles}, .instance = instance_});
  }

  // As a scan asks that knows nothing.
  tracker::CycleAnswer whole_answer() {
    return tracker().cycle({.current = {cycles}, .oldest = {1}, .instance = instance_});
  }

  void save() {
    if (!fakes::save(*persistence_).durable()) throw std::runtime_error("no drive took the snapshot");
  }

 private:
  void fill(std::size_t items, std::size_t tree_marks) {
    instance_ = tracker().state().instance;
    for (std::uint64_t cycle = 1; cycle <= cycles; ++cycle) {
      tracker().advance({cycle});
      for (std::size_t i = 0; i < items; ++i) mark(key(cycle, i));
      persistence_->commit().value();
    }
    for (std::size_t i = 0; i < tree_marks; ++i) mark(tree(i));
    save();
  }

  void mark(const tracker::Mark& mark) { tracker().mark({&mark, 1}); }

  support::TempDirectory directory_;
  base::PosixFileSystem files_;
  base::SystemClock clock_;
  std::unique_ptr<tracker::Persistence> persistence_;
  tracker::InstanceId instance_;
};

struct Waits {
  std::vector<double> all_us;
  // Of those, the marks that went to sleep, which they do for the tracker's lock only. The others were at
  // most put off the processor.
  std::vector<double> asleep_us = {};
};

// How often the calling thread went to sleep of its own accord.
long times_asleep() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// Marks one path at a time, known and new ones by turns, and takes the time of each.
class Marker {
 public:
  Marker(tracker::Tracker& tracker, std::chrono::milliseconds round_time)
      : tracker_(tracker), round_time_(round_time) {}

  void run(Waits& waits, std::atomic<std::uint64_t>& made) {
    const auto end = Clock::now() + round_time_;
    for (auto next = Clock::now(); next < end; next = std::max(next + mark_pace, Clock::now())) {
      const tracker::Mark mark = path(made_ % 2 == 0 ? 0 : made_);
      ++made_;
      while (Clock::now() < next) {
      }
      const long asleep_before = times_asleep();
      const auto before = Clock::now();
      tracker_.mark({&mark, 1});
      const double took_us = Microseconds(Clock::now() - before).count();
      waits.all_us.push_back(took_us);
      if (times_asleep() != asleep_before) waits.asleep_us.push_back(took_us);
      ++made;
      made.notify_one();
    }
  }

 private:
  tracker::Tracker& tracker_;
  const std::chrono::milliseconds round_time_;
  std::size_t made_ = 0;
};

// What goes on beside the marks: one call after the other.
struct Beside {
  const char* name;
  std::function<void()> call;  // none: nothing goes on
  Waits waits = {};
  std::uint64_t calls = 0;
};

// One round. As in the daemon, the journal is written all the while.
void mark_beside(FullNode& node, Marker& marker, Beside& beside) {
  std::atomic<std::uint64_t> made = 0;
  std::atomic<bool> over = false;
  std::jthread group_commit([&] {
    for (std::uint64_t seen = 0; !over; seen = made) {
      made.wait(seen);
      node.persistence().commit().value();
    }
  });
  std::jthread caller([&] {
    for (; beside.call && !over; ++beside.calls) beside.call();
  });
  marker.run(beside.waits, made);
  over = true;
  ++made;
  made.notify_one();
}

void print_head() {
  fmt::print("  {:<17}{:>7}{:>8}{:>8}{:>8}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}\n", "marks beside, us", "calls",
             "marks", "median", "p99", "p99.99", "longest", ">0.2 ms", "asleep", "longest", ">0.2 ms");
}

std::ptrdiff_t long_ones(const std::vector<double>& us) {
  return std::count_if(us.begin(), us.end(), [](double each) { return each > long_wait_us; });
}

void print_waits(Beside& beside) {
  auto& [all, asleep] = beside.waits;
  const double median = bench::quantile(all, 0.5);  // also puts them in order
  const double longest_asleep = asleep.empty() ? 0 : *std::max_element(asleep.begin(), asleep.end());
  fmt::print("  {:<17}{:>7}{:>8}{:>8.1f}{:>8.1f}{:>9.1f}{:>9.1f}{:>9}{:>9}{:>9.1f}{:>9}\n", beside.name,
             beside.calls, all.size(), median, bench::quantile(all, 0.99), bench::quantile(all, 0.9999),
             all.back(), long_ones(all), asleep.size(), longest_asleep, long_ones(asleep));
}

// How long one call takes where nobody marks meanwhile.
template <class Call>
void print_alone(int calls, const char* name, Call call) {
  bench::Figures took_us;
  for (int i = 0; i < calls; ++i) {
    const auto before = Clock::now();
    const auto result = call();
    took_us.add(Microseconds(Clock::now() - before).count());
  }
  fmt::print("  {:<32}{:>9.1f}   ({:.1f} .. {:.1f})\n", name, took_us.median(), took_us.min(), took_us.max());
}

void measure(const Settings& settings, std::size_t tree_marks) {
  FullNode node(settings.items, tree_marks);
  fmt::print("\n{} cycles of {} keys, {} tree marks in the current one\n", cycles, settings.items,
             tree_marks);
  fmt::print("  {:<32}{:>9}   {}\n", "alone, in us", "median", "(min .. max)");
  print_alone(settings.calls_alone, "Tracker::state", [&] { return node.tracker().state(); });
  print_alone(settings.calls_alone, "Tracker::cycle, the current one", [&] { return node.answer(); });
  print_alone(settings.calls_alone, "Tracker::cycle, all of them", [&] { return node.whole_answer(); });

  std::vector<Beside> all = {{"nothing", {}}, {"saves", [&] { node.save(); }}};
  Marker marker(node.tracker(), settings.round_time);
  for (int round = 0; round < settings.rounds; ++round) {
    for (Beside& beside : all) mark_beside(node, marker, beside);
  }
  print_head();
  for (Beside& beside : all) print_waits(beside);
  bench::Targets().at_most(fmt::format("us that a mark waits at most, in {} saves", all.back().calls),
                           all.back().waits.all_us.back(), long_wait_us);
}

void run(const Settings& settings) {
  fmt::print("How long a mark takes while other things go on, {} rounds of {} ms each by turns.\n",
             settings.rounds, settings.round_time.count());
  fmt::print("{}, {} processors\n", bench::use_disk(), std::thread::hardware_concurrency());
  measure(settings, 0);
  measure(settings, settings.tree_marks);
}

}  // namespace

int main(int argc, char** argv) {
  bool is_short = false;
  CLI::App program("Times marks while full cycles are saved");
  program.add_flag("--short", is_short, "Runs everything once, for a moment: figures that say nothing");
  return bench::run_bench(program, argc, argv, [&] { run(is_short ? short_settings : Settings{}); });
}
