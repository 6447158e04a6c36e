// What it costs to gather from a hundred real peers on this machine.
#include <fmt/core.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "peer/gather/cycle_frame.h"
#include "peer/gather/gather.h"
#include "peer/http/http_transport.h"
#include "tests/bench/bench_support.h"
#include "tests/support/process.h"
#include "tests/support/temp_directory.h"
#include "tracker/cycles/peer_book.h"
#include "tracker/filter/mark_set.h"

namespace spoor::bench {
namespace {

using Seconds = std::chrono::duration<double>;
using Steady = std::chrono::steady_clock;

constexpr double mib = 1 << 20U;

double seconds_since(Steady::time_point started) { return Seconds(Steady::now() - started).count(); }

double peak_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 / mib;
}

// Directories of a hundred buckets that all nodes write to.
std::string path_of(std::uint64_t node, std::uint64_t number) {
  return fmt::format("bucket{:02}/n{}/d{}", number % 100, node, number);
}

// Counts what comes back, and keeps it for the comparison.
class Counting final : public peer::Transport {
 public:
  explicit Counting(peer::Transport& inner) : inner_(inner) {}

  void exchange(std::span<const peer::HttpRequest> requests, const OnResponse& on_response) override {
    inner_.exchange(requests, [&](std::size_t index, base::Result<peer::HttpResponse> response) {
      if (response) bytes += response->body.size();
      on_response(index, std::move(response));
    });
  }

  std::uint64_t bytes = 0;

 private:
  peer::Transport& inner_;
};

class Peers {
 public:
  Peers(std::uint64_t count, std::uint64_t items) {
    for (std::uint64_t i = 0; i < count; ++i) start(i);
    peer::HttpTransport transport({.timeout = std::chrono::minutes(1)});
    for (std::uint64_t i = 0; i < count; ++i) {
      // So many that a filter of 200,000 items is full with their parents.
      std::string body;
      for (std::uint64_t number = 0; number < items; ++number) body += path_of(i, number) + '\n';
      const auto done = peer::exchange(transport, {endpoints_[i], "POST", "/v1/marks", "text/plain", body});
      if (!done || !done->is_success()) throw std::runtime_error("a peer does not take marks");
    }
  }

  const std::vector<base::Endpoint>& endpoints() const { return endpoints_; }

 private:
  void start(std::uint64_t number) {
    const auto name = fmt::format("n{}", number);
    const auto drive = directory_ / (name + "-drive");
    std::filesystem::create_directory(drive);
    const auto file = directory_ / (name + ".json");
    const auto socket = directory_ / (name + ".sock");
    std::ofstream(file) << fmt::format(
        R"({{"node":{{"name":"{0}","cluster":"bench","data_dir":"{1}/{0}-data"}},"drives":["{1}/{0}-drive"],)"
        R"("listen":[{{"unix":"{1}/{0}.sock"}}],"tracker":{{"durability":"memory"}}}})",
        name, directory_.path().native());
    daemons_.push_back(
        std::make_unique<support::Daemon>(std::vector<std::string>{SPOORD, "--config", file.native()}));
    if (daemons_.back()->wait_for("listening on unix:").empty())
      throw std::runtime_error(daemons_.back()->log());
    endpoints_.push_back({{}, 0, socket.native()});
  }

  support::TempDirectory directory_;
  std::vector<std::unique_ptr<support::Daemon>> daemons_;
  std::vector<base::Endpoint> endpoints_;
};

void report_or(const std::vector<tracker::MarkSet>& answers) {
  tracker::MarkSet merged;
  std::uint64_t bytes = 0;
  const auto started = Steady::now();
  for (const auto& marks : answers) merged.merge(marks);
  const double took = seconds_since(started);
  for (const auto& marks : answers) {
    for (const auto& filter : marks.filters()) bytes += filter.shape().byte_count();
  }
  fmt::print("the OR of the same filters, decoded already: {:.2f} ms, {:.1f} GB/s\n", 1000 * took,
             static_cast<double>(bytes) / took / 1e9);
}

void bench_peers(std::uint64_t count, std::uint64_t items, int rounds) {
  const double before = peak_mib();
  const Peers peers(count, items);
  const double with_peers = peak_mib();
  fmt::print("{} spoord on Unix sockets, {} directories marked through each\n", count, items);
  const tracker::PeerBook nobody;
  Figures took_ms;
  for (int round = 0; round < rounds; ++round) {
    peer::HttpTransport http({.timeout = std::chrono::minutes(1)});
    Counting transport(http);
    peer::GatherOptions options;
    options.cluster = "bench";
    options.min_cycle_age = std::chrono::hours(1);  // the live cycle, each time
    const auto started = Steady::now();
    options.members.endpoints = peers.endpoints();
    const auto gathered = peer::gather(transport, nobody, options);
    took_ms.add(1000 * seconds_since(started));
    fmt::print(
        "gathered in {:.1f} ms, {:.1f} MiB received, {} of {} answered\n", 1000 * seconds_since(started),
        static_cast<double>(transport.bytes) / mib,
        std::count_if(gathered.peers.begin(), gathered.peers.end(), [](const auto& peer) { return peer.ok; }),
        count);
  }
  fmt::print("peak memory: {:.1f} MiB before gathering ({:.1f} at the start), {:.1f} MiB after\n", with_peers,
             before, peak_mib());
  std::vector<tracker::MarkSet> answers;
  peer::HttpTransport http({.timeout = std::chrono::minutes(1)});
  std::vector<peer::HttpRequest> requests;
  for (const auto& endpoint : peers.endpoints()) {
    requests.push_back({endpoint, "POST", "/v1/peer/cycle", "application/json", R"({"cluster":"bench"})"});
  }
  http.exchange(requests, [&](std::size_t, const base::Result<peer::HttpResponse>& response) {
    answers.push_back(peer::decode_cycle_frame(response.value().body).value().answer.marks);
  });
  report_or(answers);
  if (count == 100) Targets().at_most("ms to gather from 100 daemons", took_ms.median(), 50);
  if (count == 1000) Targets().at_most("ms to gather from 1000 daemons", took_ms.median(), 600);
}

}  // namespace
}  // namespace spoor::bench

int main(int argc, char** argv) {
  CLI::App app("Gathering from many peers");
  std::uint64_t peers = 100;
  std::uint64_t items = 190'000;
  int rounds = 5;
  app.add_option("--peers", peers, "Real ones on this machine")->capture_default_str();
  app.add_option("--items", items, "Directories marked through each")->capture_default_str();
  app.add_option("--rounds", rounds, "Of gathering")->capture_default_str();
  app.add_flag_callback(
      "--short",
      [&] {
        peers = 3;
        items = 2000;
        rounds = 1;
      },
      "A few small ones: figures that say nothing");
  CLI11_PARSE(app, argc, argv);
  spoor::bench::bench_peers(peers, items, rounds);
  return 0;
}
