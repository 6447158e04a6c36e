#include <unistd.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/standard_streams.h"
#include "cli/commands.h"
#include "cli/daemon_client.h"
#include "cli/format.h"
#include "cli/status_report.h"

namespace spoor::cli {
namespace {

constexpr std::chrono::seconds watch_interval{2};

int show(DaemonClient& daemon, bool as_json) {
  const auto status = daemon.exchange("GET", "/v1/status");
  if (!status) return fail(exit_failed, status.error().message);
  if (as_json) {
    print_json(*status);
  } else {
    print_text(status_text(*status));
  }
  base::flush_standard_output();
  return exit_done;
}

int run(const GlobalOptions& global, bool as_json, bool watch) {
  auto daemon = or_fail(DaemonClient::create(global), exit_usage);
  for (;;) {
    constexpr const char* clear_screen = "\x1b[H\x1b[2J";
    if (watch && !as_json && ::isatty(STDOUT_FILENO) == 1) print_exact(clear_screen);
    const int code = show(daemon, as_json);
    if (!watch) return code;
    std::this_thread::sleep_for(watch_interval);
  }
}

}  // namespace

void add_status_command(CLI::App& program, const GlobalOptions& global, int& code) {
  struct Flags {
    bool json = false;
    bool watch = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.add_subcommand("status", "Shows the state of the node and its cluster");
  command->add_flag("--json", flags->json, "Prints the daemon's response as JSON");
  command->add_flag("--watch", flags->watch, "Shows it again every two seconds, until interrupted");
  command->callback([flags, &global, &code] { code = run(global, flags->json, flags->watch); });
}

}  // namespace spoor::cli
