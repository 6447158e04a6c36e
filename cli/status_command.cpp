#include "cli/status_command.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/printable.h"
#include "base/standard_streams.h"
#include "cli/program/commands.h"
#include "cli/program/daemon_client.h"
#include "cli/program/format.h"
#include "cli/usage/usage_report.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* unknown = "?";

// Null if there is none.
const ordered_json& member(const ordered_json& object, const char* name) {
  static const ordered_json none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

// Empty unless the member is a list.
const ordered_json& list(const ordered_json& object, const char* name) {
  static const ordered_json none = ordered_json::array();
  const ordered_json& found = member(object, name);
  return found.is_array() ? found : none;
}

std::string text(const ordered_json& object, const char* name, const std::string& other = unknown) {
  return text_or(member(object, name), other);
}

template <class Show>
std::string number(const ordered_json& object, const char* name, Show show) {
  const ordered_json& found = member(object, name);
  return found.is_number_unsigned() ? show(found.get<std::uint64_t>()) : unknown;
}

std::string count(const ordered_json& object, const char* name) { return number(object, name, with_commas); }

std::string share(const ordered_json& object, const char* name) {
  const ordered_json& found = member(object, name);
  return found.is_number() ? percent(found.get<double>()) : unknown;
}

std::string duration(const ordered_json& object, const char* name) {
  constexpr double century_s = 100.0 * 365 * 86'400;  // fits into nanoseconds
  const ordered_json& found = member(object, name);
  if (!found.is_number()) return unknown;
  return human_duration(std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::clamp(found.get<double>(), 0.0, century_s))));
}

// What is missing is neither.
bool is_true(const ordered_json& object, const char* name) { return member(object, name) == true; }
bool is_false(const ordered_json& object, const char* name) { return member(object, name) == false; }

// Empty if it is well.
std::string error_text(const ordered_json& object, const std::string& other) {
  return is_true(object, "ok") ? "" : text(object, "error", is_false(object, "ok") ? other : unknown);
}

std::string snapshot_text(const ordered_json& snapshot) {
  if (!snapshot.is_object()) return "none yet\n";
  const ordered_json& saved_at = member(snapshot, "saved_at");
  std::string lines = saved_at.is_null()
                          ? "never saved\n"
                          : fmt::format("saved {}, {}, generation {}\n", text_or(saved_at, unknown),
                                        number(snapshot, "bytes", human_bytes),
                                        number(snapshot, "generation",
                                               [](std::uint64_t value) { return std::to_string(value); }));
  for (const auto& drive : list(snapshot, "drives")) {
    const std::string error = error_text(drive, "failed");
    lines += fmt::format("           {}: {}\n", base::printable(text(drive, "path")),
                         error.empty() ? "ok" : base::printable(error));
  }
  return lines;
}

std::string cycles_text(const ordered_json& cycles) {
  Table table({"cycle", "items", "density", "false positives", "levels", "tree marks", ""}, {6});
  for (const auto& cycle : cycles) {
    const std::string last = count(cycle, "cycle");
    const std::string first = count(cycle, "first_cycle");  // unknown to an older daemon
    table.add({span_text(first == unknown ? last : first, last), count(cycle, "items"),
               share(cycle, "density"), share(cycle, "fp_rate"), count(cycle, "levels"),
               count(cycle, "tree_marks"), is_true(cycle, "saturated") ? "saturated" : ""});
  }
  return table.to_string();
}

std::string peers_text(const ordered_json& peers) {
  if (peers.empty()) return {};
  Table table({"peer", "url", "state", "last seen", ""}, {1, 2, 3, 4});
  for (const auto& peer : peers) {
    table.add({text(peer, "name"), text(peer, "url"), text(peer, "state"), text(peer, "last_seen", "never"),
               text(peer, "error", "")});
  }
  return '\n' + table.to_string();
}

// How many members a source lists, and why the last request to it failed.
std::string source_text(const std::string& heading, const ordered_json& source) {
  const std::string members = count(source, "members");
  std::string lines = fmt::format("{} {} member{} known\n", heading, members, members == "1" ? "" : "s");
  if (is_false(source, "ok"))
    lines += fmt::format("           failing: {}\n", base::printable(text(source, "error")));
  return lines;
}

std::string membership_text(const ordered_json& membership) {
  std::string lines;
  if (const ordered_json& etcd = member(membership, "etcd"); etcd.is_object()) {
    lines += source_text(is_true(etcd, "registered")    ? "etcd       registered,"
                         : is_false(etcd, "registered") ? "etcd       NOT registered,"
                                                        : "etcd      ",
                         etcd);
  }
  for (const auto& name : list(membership, "dns"))
    lines += source_text("dns        " + base::printable(text(name, "source")) + ":", name);
  return lines;
}

std::string limits_text(const ordered_json& limits) {
  if (limits.empty()) return {};
  std::string lines;
  bool are_known = true;
  try {
    for (const scanner::LimitState& state : scanner::limits_from_json(limits)) {
      if (state.is_exceeded()) lines += fmt::format("limit      {}\n", exceeded_limit(state));
      are_known = are_known && state.is_known();
    }
  } catch (const ordered_json::exception&) {
    return fmt::format("limits     {}\n", unknown);
  }
  if (!lines.empty()) return lines;
  return fmt::format("limits     {}, none is {}exceeded\n", limits.size(), are_known ? "" : "known to be ");
}

std::string watch_text(const ordered_json& watch) {
  if (!watch.is_object()) return {};
  Table table({"watched drive", "events", "marks", "gaps", "last gap", ""}, {4, 5});
  for (const auto& drive : list(watch, "drives")) {
    const ordered_json& gap = member(drive, "last_gap");
    std::string state = error_text(drive, unknown);
    if (is_false(drive, "ok"))
      state = fmt::format("not watched since {}: {}", text(drive, "failing_since"), state);
    table.add({text(drive, "path"), count(drive, "events"), count(drive, "marks"), count(drive, "gaps"),
               gap.is_object() ? text(gap, "at") : "-", state});
  }
  return '\n' + table.to_string();
}

// With a single sender, the totals above are sufficient.
std::string writers_text(const ordered_json& writers) {
  if (writers.size() < 2) return {};
  Table table({"marks from", "accepted", "last"}, {2});
  for (const auto& writer : writers)
    table.add({text(writer, "identity"), count(writer, "accepted"), text(writer, "last_at")});
  return '\n' + table.to_string();
}

constexpr std::chrono::seconds watch_interval{2};

int show_status(DaemonClient& daemon, bool as_json) {
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

int show_or_watch(const GlobalOptions& global, bool as_json, bool watch) {
  auto daemon = or_fail(DaemonClient::create(global), exit_usage);
  for (;;) {
    constexpr const char* clear_screen = "\x1b[H\x1b[2J";
    if (watch && !as_json && ::isatty(STDOUT_FILENO) == 1) print_exact(clear_screen);
    const int code = show_status(daemon, as_json);
    if (!watch) return code;
    std::this_thread::sleep_for(watch_interval);
  }
}

}  // namespace

std::string status_text(const ordered_json& status) {
  const ordered_json& marks = member(status, "marks");
  const ordered_json& cycle = member(status, "cycle");
  const ordered_json& journal = member(status, "journal");
  std::string lines =
      fmt::format("node       {} of cluster {}, version {}, up {}\n", text(status, "node"),
                  text(status, "cluster"), text(status, "version"), duration(status, "uptime_s"));
  lines += fmt::format("instance   {}\n", text(status, "instance"));
  lines += fmt::format("cycle      {}, open for {}\n",
                       number(cycle, "current", [](std::uint64_t value) { return std::to_string(value); }),
                       duration(cycle, "age_s"));
  lines += fmt::format("marks      {} accepted, {} of them new, {} ignored; {} requests rejected\n",
                       count(marks, "accepted"), count(marks, "new"), count(marks, "ignored"),
                       count(marks, "rejected"));
  lines += "snapshot   " + snapshot_text(member(status, "snapshot"));
  lines += fmt::format("durability {}, journal {}\n", text(journal, "durability"),
                       number(journal, "bytes", human_bytes));
  if (is_false(journal, "ok")) {
    lines +=
        fmt::format("           marks are NOT acknowledged: {}\n", base::printable(text(journal, "error")));
  }
  lines += membership_text(member(status, "membership")) + limits_text(list(status, "limits"));
  return lines + '\n' + cycles_text(list(status, "cycles")) + watch_text(member(status, "watch")) +
         writers_text(list(status, "writers")) + peers_text(list(status, "peers"));
}

void add_status_command(CLI::App& program, const GlobalOptions& global, int& code) {
  struct Flags {
    bool json = false;
    bool watch = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.add_subcommand("status", "Shows the state of the node and its cluster");
  command->add_flag("--json", flags->json, "Prints the daemon's response as JSON");
  command->add_flag("--watch", flags->watch, "Shows it again every two seconds, until interrupted");
  command->callback([flags, &global, &code] { code = show_or_watch(global, flags->json, flags->watch); });
}

}  // namespace spoor::cli
