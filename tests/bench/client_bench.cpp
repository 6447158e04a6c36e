// Marks by the client library over the Unix socket, from one thread, beside `spoor mark -0` with the same
// paths.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "client/spoor.h"
#include "tests/bench/bench_support.h"
#include "tests/bench/marks.h"
#include "tests/support/loopback.h"
#include "tests/support/process.h"
#include "tests/support/temp_directory.h"

namespace {

using namespace spoor;

constexpr std::size_t depth = 5;
constexpr int timeout_ms = 60'000;

std::string configuration(const std::filesystem::path& folder) {
  return fmt::format(R"({{"node":{{"name":"bench","data_dir":"{0}/data"}},"drives":["{0}/drive"],)"
                     R"("tracker":{{"save_interval":"1h","items":4000000}},)"
                     R"("listen":[{{"unix":"{0}/spoor.sock"}}]}})",
                     folder.native());
}

double marks_per_second(std::size_t count, std::chrono::steady_clock::time_point since) {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - since;
  return static_cast<double>(count) / took.count();
}

double by_library(const std::string& socket, const std::vector<tracker::Mark>& marks) {
  spoor_options options{};
  options.size = sizeof(options);
  options.socket = socket.c_str();
  spoor_client* client = nullptr;
  const auto since = std::chrono::steady_clock::now();
  int result = spoor_open(&options, &client);
  for (const tracker::Mark& mark : marks) {
    if (result == SPOOR_OK)
      result = spoor_mark(client, mark.path.data(), mark.path.size(), SPOOR_DIR, timeout_ms);
  }
  if (result == SPOOR_OK) result = spoor_close(client, timeout_ms);
  if (result != SPOOR_OK) throw std::runtime_error(spoor_last_error());
  return marks_per_second(marks.size(), since);
}

double by_command(const std::filesystem::path& folder, const std::vector<tracker::Mark>& marks) {
  std::string paths;
  for (const tracker::Mark& mark : marks) paths += mark.path + '\0';
  const auto since = std::chrono::steady_clock::now();
  const auto result =
      support::run_command({SPOOR, "--config", (folder / "spoor.json").native(), "mark", "-0"}, paths);
  if (result.code != 0) throw std::runtime_error(result.err);
  return marks_per_second(marks.size(), since);
}

void run(bool is_short) {
  const int rounds = is_short ? 1 : 7;
  const std::size_t count = is_short ? 10'000 : 200'000;  // all of them fit into the filter
  const support::TempDirectory directory;
  std::filesystem::create_directory(directory / "drive");
  std::ofstream(directory / "spoor.json") << configuration(directory.path());
  support::Daemon daemon({SPOORD, "--config", (directory / "spoor.json").native()});
  if (daemon.wait_for("listening on unix:").empty()) throw std::runtime_error(daemon.log());
  std::array<bench::Figures, 4> figures;
  for (int round = 0; round < rounds; ++round) {
    const auto first = bench::random_marks(depth, count, static_cast<std::size_t>(2 * round) + 1);
    const auto second = bench::random_marks(depth, count, static_cast<std::size_t>(2 * round) + 2);
    figures[0].add(by_library(directory / "spoor.sock", first));
    figures[1].add(by_library(directory / "spoor.sock", first));
    figures[2].add(by_command(directory.path(), second));
    figures[3].add(by_command(directory.path(), second));
  }
  fmt::print("1000 marks a second, depth {}: median of {} turns of {} (slowest..fastest)\n", depth, rounds,
             count);
  constexpr std::array names = {"libspoor, new", "libspoor, known", "spoor mark -0, new",
                                "spoor mark -0, known"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    fmt::print("{:<24}{:>10.0f} ({:.0f}..{:.0f})\n", names.at(i), figures.at(i).median() / 1000,
               figures.at(i).min() / 1000, figures.at(i).max() / 1000);
  }
  bench::Targets targets;
  targets.at_least("libspoor, new: million marks a second", figures[0].median() / 1e6, 1);
  targets.at_least("libspoor, known, of spoor mark -0", figures[1].median() / figures[3].median(), 1);
}

}  // namespace

int main(int argc, char** argv) {
  bool is_short = false;
  CLI::App program("Measures marks by the client library");
  program.add_flag("--short", is_short, "Enough to see that everything runs");
  return bench::run_bench(program, argc, argv, [&] { run(is_short); });
}
