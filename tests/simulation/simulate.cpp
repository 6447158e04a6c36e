// Simulated clusters from seeds: ./run simulate --seed S --steps N.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/simulation/world.h"

namespace spoor::simulation {
namespace {

struct Flags {
  std::uint64_t seed = 0;
  std::size_t steps = 10'000;
  std::uint64_t seeds = 1;
  double seconds = 0;
  unsigned threads = 1;
  std::string script;
};

class Simulator {
 public:
  explicit Simulator(const Flags& flags) : flags_(flags) {}

  int run() {
    const auto started = std::chrono::steady_clock::now();
    {
      std::vector<std::jthread> threads;
      for (unsigned i = 0; i < flags_.threads; ++i) threads.emplace_back([this, started] { work(started); });
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    fmt::print(
        "{} seeds, {} steps, {} marks, {} scans ({} full, {} partial), {} losses of memory, {:.0f} s: {}\n",
        seeds_, total_.actions, total_.marks, total_.scans, total_.full_scans, total_.partial_scans,
        total_.losses, took.count(), failed_ ? "BROKEN" : "no violation");
    return failed_ ? 1 : 0;
  }

 private:
  void work(std::chrono::steady_clock::time_point started) {
    for (;;) {
      const std::uint64_t at = next_++;
      const bool is_over = flags_.seconds > 0 ? std::chrono::steady_clock::now() - started >
                                                    std::chrono::duration<double>(flags_.seconds)
                                              : at >= flags_.seeds;
      if (is_over || failed_) return;
      one(flags_.seed + at);
    }
  }

  void one(std::uint64_t seed) {
    const Script script = random_script(seed, flags_.steps);
    const Outcome outcome = simulation::run(script);
    const std::scoped_lock lock(mutex_);
    ++seeds_;
    total_.actions += outcome.figures.actions;
    total_.marks += outcome.figures.marks;
    total_.scans += outcome.figures.scans;
    total_.full_scans += outcome.figures.full_scans;
    total_.partial_scans += outcome.figures.partial_scans;
    total_.losses += outcome.figures.losses;
    fmt::print("seed {}: {} nodes, {} steps, {} marks, {} scans ({} full, {} partial)\n", seed,
               script.setup.nodes, outcome.figures.actions, outcome.figures.marks, outcome.figures.scans,
               outcome.figures.full_scans, outcome.figures.partial_scans);
    std::fflush(stdout);
    if (!outcome.violation || failed_.exchange(true)) return;
    fmt::print("seed {} broken {}\nshrinking, for some minutes\n", seed, *outcome.violation);
    std::fflush(stdout);
    const Script shorter = shrink(script);
    fmt::print("{}broken {}\n", to_text(shorter),
               simulation::run(shorter).violation.value_or("not reproduced"));
  }

  const Flags flags_;
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // guards the members below
  std::uint64_t seeds_ = 0;
  Figures total_;
};

int replay(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  const auto script = parse_script(text.str());
  if (!script) {
    fmt::print(stderr, "{}: {}\n", file, script.error().message);
    return 2;
  }
  const Outcome outcome = run(*script);
  fmt::print("{}\n", outcome.violation.value_or("no violation"));
  return outcome.violation ? 1 : 0;
}

}  // namespace
}  // namespace spoor::simulation

int main(int argc, char** argv) {
  spoor::simulation::Flags flags;
  flags.seed = std::random_device{}();
  flags.threads = std::max(1U, std::thread::hardware_concurrency());
  CLI::App app("Simulated clusters, from seeds");
  app.add_option("--seed", flags.seed, "The first seed; a random one unless given");
  app.add_option("--steps", flags.steps, "For each seed")->capture_default_str();
  app.add_option("--seeds", flags.seeds, "How many seeds, one after the other")->capture_default_str();
  app.add_option("--seconds", flags.seconds, "Runs new seeds for this time instead");
  app.add_option("--threads", flags.threads, "Seeds that run in parallel")->capture_default_str();
  app.add_option("--script", flags.script, "Runs the script in this file instead");
  CLI11_PARSE(app, argc, argv);
  return flags.script.empty() ? spoor::simulation::Simulator(flags).run()
                              : spoor::simulation::replay(flags.script);
}
