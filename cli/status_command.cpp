#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "base/printable.h"
#include "cli/commands.h"
#include "cli/daemon_client.h"
#include "cli/format.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::chrono::seconds watch_interval{2};

std::chrono::nanoseconds seconds(const ordered_json& value) {
  constexpr double century_s = 100.0 * 365 * 86'400;  // fits into nanoseconds
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::clamp(value.get<double>(), 0.0, century_s)));
}

std::string snapshot_text(const ordered_json& snapshot) {
  if (snapshot.is_null()) return "none yet\n";
  std::string text =
      snapshot.at("saved_at").is_null()
          ? "never saved\n"
          : fmt::format("saved {}, {}, generation {}\n", snapshot.at("saved_at").get<std::string>(),
                        human_bytes(snapshot.at("bytes").get<std::uint64_t>()),
                        snapshot.at("generation").get<std::uint64_t>());
  for (const auto& drive : snapshot.at("drives")) {
    text += fmt::format(
        "           {}: {}\n", base::printable(drive.at("path").get<std::string>()),
        drive.at("ok").get<bool>() ? "ok" : base::printable(text_or(drive.at("error"), "failed")));
  }
  return text;
}

std::string cycles_text(const ordered_json& cycles) {
  Table table({"cycle", "items", "density", "false positives", "levels", "tree marks", ""}, {6});
  for (const auto& cycle : cycles) {
    table.add({with_commas(cycle.at("cycle").get<std::uint64_t>()),
               with_commas(cycle.at("items").get<std::uint64_t>()),
               percent(cycle.at("density").get<double>()), percent(cycle.at("fp_rate").get<double>()),
               std::to_string(cycle.at("levels").get<std::uint64_t>()),
               with_commas(cycle.at("tree_marks").get<std::uint64_t>()),
               cycle.at("saturated").get<bool>() ? "saturated" : ""});
  }
  return table.to_string();
}

std::string peers_text(const ordered_json& peers) {
  if (peers.empty()) return {};
  Table table({"peer", "url", "state", "last seen", ""}, {1, 2, 3, 4});
  for (const auto& peer : peers) {
    table.add({text_or(peer.at("name"), "?"), peer.at("url").get<std::string>(),
               peer.at("state").get<std::string>(), text_or(peer.at("last_seen"), "never"),
               text_or(peer.at("error"), "")});
  }
  return '\n' + table.to_string();
}

// How many members a source lists, and why the last request to it failed.
std::string source_text(const std::string& heading, const ordered_json& source) {
  const auto members = source.at("members").get<std::uint64_t>();
  std::string text = fmt::format("{} {} member{} known\n", heading, members, members == 1 ? "" : "s");
  if (!source.at("ok").get<bool>()) {
    text += fmt::format("           failing: {}\n", base::printable(text_or(source.at("error"), "?")));
  }
  return text;
}

std::string membership_text(const ordered_json& membership) {
  std::string text;
  if (const auto etcd = membership.value("etcd", ordered_json()); etcd.is_object()) {
    const bool is_registered = etcd.at("registered").get<bool>();
    text += source_text(is_registered ? "etcd       registered," : "etcd       NOT registered,", etcd);
  }
  for (const auto& name : membership.value("dns", ordered_json::array())) {
    text += source_text("dns        " + base::printable(name.at("source").get<std::string>()) + ":", name);
  }
  return text;
}

std::string watch_text(const ordered_json& watch) {
  if (!watch.is_object()) return {};
  Table table({"watched drive", "events", "marks", "gaps", "last gap", ""}, {4, 5});
  for (const auto& drive : watch.at("drives")) {
    const auto count = [&](const char* name) { return with_commas(drive.at(name).get<std::uint64_t>()); };
    const auto& gap = drive.at("last_gap");
    table.add({drive.at("path").get<std::string>(), count("events"), count("marks"), count("gaps"),
               gap.is_object() ? gap.at("at").get<std::string>() : "-",
               drive.at("ok").get<bool>() ? "" : base::printable(text_or(drive.at("error"), "?"))});
  }
  return fmt::format("\n{}reported by spoor-watch at {}\n", table.to_string(),
                     watch.at("reported_at").get<std::string>());
}

// With a single sender, the totals above are sufficient.
std::string writers_text(const ordered_json& writers) {
  if (writers.size() < 2) return {};
  Table table({"marks from", "accepted", "last"}, {2});
  for (const auto& writer : writers) {
    table.add({writer.at("identity").get<std::string>(),
               with_commas(writer.at("accepted").get<std::uint64_t>()),
               writer.at("last_at").get<std::string>()});
  }
  return '\n' + table.to_string();
}

std::string status_text(const ordered_json& status) {
  const auto& marks = status.at("marks");
  const auto& cycle = status.at("cycle");
  const auto count = [&](const char* name) { return with_commas(marks.at(name).get<std::uint64_t>()); };
  std::string text =
      fmt::format("node       {} of cluster {}, version {}, up {}\n", status.at("node").get<std::string>(),
                  status.at("cluster").get<std::string>(), status.at("version").get<std::string>(),
                  human_duration(seconds(status.at("uptime_s"))));
  text += fmt::format("instance   {}\n", status.at("instance").get<std::string>());
  text += fmt::format("cycle      {}, open for {}\n", cycle.at("current").get<std::uint64_t>(),
                      human_duration(seconds(cycle.at("age_s"))));
  text += fmt::format("marks      {} accepted, {} of them new, {} ignored; {} requests rejected\n",
                      count("accepted"), count("new"), count("ignored"), count("rejected"));
  text += "snapshot   " + snapshot_text(status.at("snapshot"));
  const auto& journal = status.at("journal");
  text += fmt::format("durability {}, journal {}\n", journal.at("durability").get<std::string>(),
                      human_bytes(journal.at("bytes").get<std::uint64_t>()));
  if (!journal.at("ok").get<bool>()) {
    text += fmt::format("           marks are NOT acknowledged: {}\n",
                        base::printable(text_or(journal.at("error"), "?")));
  }
  text += membership_text(status.value("membership", ordered_json::object()));
  return text + '\n' + cycles_text(status.at("cycles")) + watch_text(status.value("watch", ordered_json())) +
         writers_text(status.value("writers", ordered_json::array())) + peers_text(status.at("peers"));
}

int show(DaemonClient& daemon, bool as_json) {
  const auto status = daemon.exchange("GET", "/v1/status");
  if (!status) return fail(exit_failed, status.error().message);
  if (as_json) {
    print_json(*status);
  } else {
    print_text(status_text(*status));
  }
  std::fflush(stdout);
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
