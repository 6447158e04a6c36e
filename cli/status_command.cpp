#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "base/printable.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "peer/http_transport.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::chrono::seconds watch_interval{2};

std::chrono::nanoseconds seconds(const ordered_json& value) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(value.get<double>()));
}

std::string snapshot_text(const ordered_json& snapshot) {
  if (snapshot.is_null()) return "none yet\n";
  std::string text =
      snapshot["saved_at"].is_null()
          ? "never saved\n"
          : fmt::format("saved {}, {}, generation {}\n", snapshot["saved_at"].get<std::string>(),
                        human_bytes(snapshot["bytes"].get<std::uint64_t>()),
                        snapshot["generation"].get<std::uint64_t>());
  for (const auto& drive : snapshot["drives"]) {
    text += fmt::format("           {}: {}\n", base::printable(drive["path"].get<std::string>()),
                        drive["ok"].get<bool>() ? "ok" : base::printable(text_or(drive["error"], "failed")));
  }
  return text;
}

std::string cycles_text(const ordered_json& cycles) {
  Table table({"cycle", "items", "density", "false positives", "levels", "tree marks", ""}, {6});
  for (const auto& cycle : cycles) {
    table.add({with_commas(cycle["cycle"].get<std::uint64_t>()),
               with_commas(cycle["items"].get<std::uint64_t>()), percent(cycle["density"].get<double>()),
               percent(cycle["fp_rate"].get<double>()), std::to_string(cycle["levels"].get<std::uint64_t>()),
               with_commas(cycle["tree_marks"].get<std::uint64_t>()),
               cycle["saturated"].get<bool>() ? "saturated" : ""});
  }
  return table.to_string();
}

std::string peers_text(const ordered_json& peers) {
  if (peers.empty()) return {};
  Table table({"peer", "url", "state", "last seen", ""}, {1, 2, 3, 4});
  for (const auto& peer : peers) {
    table.add({text_or(peer["name"], "?"), peer["url"].get<std::string>(), peer["state"].get<std::string>(),
               text_or(peer["last_seen"], "never"), text_or(peer["error"], "")});
  }
  return '\n' + table.to_string();
}

std::string status_text(const ordered_json& status) {
  const auto& marks = status["marks"];
  const auto& cycle = status["cycle"];
  const auto count = [&](const char* name) { return with_commas(marks[name].get<std::uint64_t>()); };
  std::string text =
      fmt::format("node       {} of cluster {}, version {}, up {}\n", status["node"].get<std::string>(),
                  status["cluster"].get<std::string>(), status["version"].get<std::string>(),
                  human_duration(seconds(status["uptime_s"])));
  text += fmt::format("instance   {}\n", status["instance"].get<std::string>());
  text += fmt::format("cycle      {}, open for {}\n", cycle["current"].get<std::uint64_t>(),
                      human_duration(seconds(cycle["age_s"])));
  text += fmt::format("marks      {} accepted, {} of them new, {} ignored; {} requests rejected\n",
                      count("accepted"), count("new"), count("ignored"), count("rejected"));
  text += "snapshot   " + snapshot_text(status["snapshot"]);
  const auto& journal = status["journal"];
  text += fmt::format("durability {}, journal {}\n", journal["durability"].get<std::string>(),
                      human_bytes(journal["bytes"].get<std::uint64_t>()));
  if (!journal["ok"].get<bool>()) {
    text += fmt::format("           marks are NOT acknowledged: {}\n",
                        base::printable(text_or(journal["error"], "?")));
  }
  text += '\n';
  return text + cycles_text(status["cycles"]) + peers_text(status["peers"]);
}

int show(peer::Transport& transport, const peer::HttpRequest& request, bool as_json) {
  const auto response = peer::exchange(transport, request);
  if (!response) return fail(exit_failed, response.error().message);
  if (!response->is_success()) return fail(exit_failed, peer::problem_detail(*response));
  const auto status = ordered_json::parse(response->body, nullptr, false);
  if (!status.is_object()) return fail(exit_failed, "the daemon's answer is no JSON object");
  if (as_json) {
    print_exact(status.dump(2) + '\n');
  } else {
    print_text(status_text(status));
  }
  std::fflush(stdout);
  return exit_done;
}

int run(const GlobalOptions& global, bool as_json, bool watch) {
  const auto endpoint = global.own_endpoint();
  if (!endpoint) return fail(exit_usage, endpoint.error().message);
  const auto credentials = global.own_credentials(*endpoint);
  if (!credentials) return fail(exit_usage, credentials.error().message);
  peer::HttpTransport transport({.credentials = *credentials, .timeout = std::chrono::milliseconds(10'000)});
  const peer::HttpRequest request{*endpoint, "GET", "/v1/status", {}, {}};
  for (;;) {
    constexpr const char* clear_screen = "\x1b[H\x1b[2J";
    if (watch && !as_json && ::isatty(STDOUT_FILENO) == 1) print_exact(clear_screen);
    const int code = show(transport, request, as_json);
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
  CLI::App* command = program.add_subcommand("status", "Shows the node and its cluster at a glance");
  command->add_flag("--json", flags->json, "Prints the daemon's answer as JSON");
  command->add_flag("--watch", flags->watch, "Shows it again every two seconds, until interrupted");
  command->callback([flags, &global, &code] { code = run(global, flags->json, flags->watch); });
}

}  // namespace spoor::cli
