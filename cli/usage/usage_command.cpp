#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/number.h"
#include "base/printable.h"
#include "base/standard_streams.h"
#include "cli/program/commands.h"
#include "cli/program/daemon_client.h"
#include "cli/program/format.h"
#include "cli/program/places.h"
#include "cli/usage/usage_report.h"
#include "config/config.h"
#include "config/units.h"
#include "scanner/report_json.h"
#include "scanner/store/usage_database.h"
#include "scanner/usage/usage_query.h"
#include "tracker/paths/path.h"

namespace spoor::cli {
namespace {

constexpr std::uint64_t lines_default = 20;                       // of a directory
constexpr std::uint64_t depth_max = tracker::path_bytes_max / 2;  // no path is deeper
constexpr int cluster_points = 12;                                // of its history
constexpr std::chrono::hours cluster_history_default{24 * 30};

struct UsageFlags {
  std::vector<std::string> paths;
  std::uint64_t depth = 1;
  bool summary = false;
  bool with_header = true;  // of CSV
  bool history = false;
  std::optional<std::uint64_t> top;
  std::string sort = "size";
  std::optional<std::uint64_t> limit;
  std::optional<std::string> since;
  bool json = false;
  bool csv = false;
  std::string export_as;  // csv or json; empty: a report
  bool cluster = false;
  bool owner = false;

  scanner::UsageOrder order() const { return scanner::parse_usage_order(sort).value(); }
  bool is_report() const { return !json && !csv && export_as.empty(); }
};

// $COLUMNS, or else the columns of the terminal; nothing if standard output is not a terminal.
std::optional<std::size_t> output_columns() {
  const char* const variable = std::getenv("COLUMNS");
  const auto columns = base::parse_number<std::size_t>(variable == nullptr ? "" : variable);
  if (columns && *columns > 0) return columns;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return std::nullopt;
}

scanner::UsageOptions query_options(const UsageFlags& flags) {
  scanner::UsageOptions options;
  options.depth = flags.summary ? 0 : flags.top ? scanner::usage_depth_max : flags.depth;
  options.owners = flags.owner;
  options.order = flags.order();
  const std::uint64_t limit = flags.limit.value_or(flags.json || flags.csv || flags.top ? 0 : lines_default);
  if (limit > 0) options.children_max = limit;
  if (flags.since)
    options.since = or_fail(config::parse_since(*flags.since, base::SystemClock().wall_now()), exit_usage);
  return options;
}

std::string to_text(const scanner::Usage& usage, const UsageFlags& flags) {
  if (flags.owner) return flags.csv ? owners_csv(usage, flags.with_header) : owners_text(usage);
  if (flags.csv) return usage_csv(usage, ::isatty(STDOUT_FILENO) == 1, flags.with_header);
  const auto now =
      ::isatty(STDOUT_FILENO) == 1 ? std::optional(base::SystemClock().wall_now()) : std::nullopt;
  return usage_text(usage, flags.order(), output_columns(),
                    flags.cluster ? UsageScope::cluster : UsageScope::node, now);
}

// In a form that each version of the daemon knows.
std::string since_query(const std::string& since) {
  const auto time = config::parse_since(since, base::SystemClock().wall_now());
  const bool is_duration = config::parse_duration(since).has_value();  // by the clock of the daemon
  return "&since=" + url_encoded(is_duration || !time ? since : base::iso_time(*time));
}

void check_owners(const scanner::Usage& usage, const UsageFlags& flags) {
  if (!flags.owner || usage.owners) return;
  throw_failure(exit_failed,
                "the owners of the files in '{}' are not known{}: set usage.owners, or raise "
                "history.depth, then run 'spoor scan'",
                base::printable(usage.total.path), flags.cluster ? " on every node" : "");
}

bool has_rest(const scanner::UsageEntry& entry) {
  return entry.rest.count > 0 || std::ranges::any_of(entry.children, has_rest);
}

// The daemon returns at most this many children of a directory; the others are summed in its rest.
constexpr std::uint64_t children_of_daemon_max = 10'000;

// The nodes whose totals are missing from the sums, or old; empty if there are none.
std::string missing_text(const nlohmann::ordered_json& json) {
  std::string missing;
  for (const auto& node : json.value("nodes", nlohmann::ordered_json::array())) {
    if (node.at("ok").get<bool>()) continue;
    const std::string name = node.at("name").get<std::string>();
    const std::string url = node.at("url").is_null() ? "" : node.at("url").get<std::string>();
    const std::string how =
        node.value("last_known", false)
            ? fmt::format("included as of {}", text_or(node.at("as_of"), "its first scan"))
            : "excluded";
    missing += fmt::format("\n  {}: {}: {}",
                           base::printable(name.empty()  ? url
                                           : url.empty() ? name
                                                         : fmt::format("{} ({})", name, url)),
                           base::printable(how), base::printable(node.at("error").get<std::string>()));
  }
  for (const auto& source : json.value("unknown_sources", nlohmann::ordered_json::array())) {
    missing += fmt::format("\n  members of {}", base::printable(source.get<std::string>()));
  }
  return missing;
}

// Empty if they are not known.
std::string limits_at(DaemonClient& daemon, const std::string& path, bool of_cluster) {
  const auto status = daemon.exchange("GET", "/v1/status");
  if (!status) return {};
  return exceeded_limits(scanner::limits_from_json(status->value("limits", nlohmann::ordered_json::array())),
                         path, of_cluster);
}

DaemonClient daemon_of(const GlobalOptions& global, const UsageFlags& flags) {
  return or_fail(flags.cluster ? DaemonClient::create(global, cluster_timeout) : DaemonClient::create(global),
                 exit_usage);
}

// The largest of the directories that are added, by an order.
class Largest {
 public:
  explicit Largest(const UsageFlags& flags) : flags_(flags) {}

  // The requested directory itself is none of them.
  void add(const scanner::UsageEntry& entry) {
    if (entry.depth == 0) return;
    if (heap_.size() == *flags_.top && !is_larger_(entry, heap_.front())) return;
    heap_.push_back(entry);
    heap_.back().children.clear();
    heap_.back().rest = {};
    std::ranges::push_heap(heap_, is_larger_);
    if (heap_.size() <= *flags_.top) return;
    std::ranges::pop_heap(heap_, is_larger_);
    heap_.pop_back();
  }

  // `usage`: of the requested directory.
  void print(scanner::Usage usage) {
    std::ranges::sort_heap(heap_, is_larger_);
    usage.total.children = std::move(heap_);
    usage.total.rest = {};
    usage.total.is_open = true;
    if (flags_.json) return print_json(scanner::usage_json(usage));
    if (flags_.csv) return print_exact(to_text(usage, flags_));
    print_exact(usage_text(usage, flags_.order(), std::nullopt));
  }

 private:
  const UsageFlags& flags_;
  const std::function<bool(const scanner::UsageEntry&, const scanner::UsageEntry&)> is_larger_ =
      std::bind_front(scanner::is_before, flags_.order());
  std::vector<scanner::UsageEntry> heap_;  // the smallest on top
};

// Of a response, which has all but the deepest. Returns whether it has all.
bool print_top(const scanner::Usage& usage, const UsageFlags& flags) {
  Largest largest(flags);
  bool is_whole = true;
  scanner::for_each_entry(usage.total, [&](const scanner::UsageEntry& entry) {
    is_whole = is_whole && (entry.depth < scanner::usage_depth_max || entry.dirs == 0);
    largest.add(entry);
  });
  largest.print(usage);
  return is_whole;
}

// Throws a Failure for what is missing in a response that was printed.
void check_nodes(const nlohmann::ordered_json& json) {
  const std::string missing = missing_text(json);
  if (!missing.empty()) throw Failure{exit_in_part, "not every node reported its totals:" + missing};
}

void run_at_daemon(const GlobalOptions& global, const UsageFlags& flags, const std::string& path) {
  auto daemon = daemon_of(global, flags);
  const auto options = query_options(flags);
  const auto children_max = std::min(options.children_max, children_of_daemon_max);
  std::string target = fmt::format("/v1/usage?path={}&depth={}&sort={}&limit={}{}{}", url_encoded(path),
                                   options.depth, flags.sort, children_max,
                                   flags.cluster ? "&scope=cluster" : "", flags.owner ? "&owners=1" : "");
  if (flags.since) target += since_query(*flags.since);
  auto json = or_fail(daemon.exchange("GET", target));
  if (!flags.cluster) {  // as it is printed on that node
    json.erase("node");
    json.erase("fullest_drive");
  }
  const auto usage = scanner::usage_from_json(json);
  if (!usage) throw Failure{exit_failed, "the daemon's response: " + usage.error().message};
  check_owners(*usage, flags);
  bool is_whole = true;
  if (flags.top) {
    is_whole = print_top(*usage, flags);
  } else if (flags.json) {
    print_json(json);
  } else {
    print_exact(to_text(*usage, flags));
  }
  if (flags.is_report() && !flags.top) print_text(limits_at(daemon, path, flags.cluster));
  check_nodes(json);
  const bool is_cut_short = options.children_max > children_max && has_rest(usage->total);
  if (!is_whole) {
    throw_failure(exit_in_part, "the daemon returns {} levels: deeper directories are left out",
                  scanner::usage_depth_max);
  }
  if (!usage->truncated && !is_cut_short) return;
  throw_failure(exit_in_part,
                "the daemon returns at most {} directories: some are left out; request fewer "
                "levels, or run this on its node",
                children_of_daemon_max);
}

Failure not_found(const std::string& path) {
  return {exit_failed,
          path.empty() ? "there was no scan yet; run 'spoor scan'"
                       : fmt::format("no directory '{}' was found by the last scan", base::printable(path))};
}

// A line for each directory, as it is read: there may be hundreds of millions.
void export_all(const GlobalOptions& global, const UsageFlags& flags, const std::string& path) {
  auto database = open_database(or_fail(global.load_config(), exit_usage));
  const bool for_terminal = ::isatty(STDOUT_FILENO) == 1;
  const auto print = [&](const scanner::Usage& usage, const scanner::UsageEntry& entry) {
    if (flags.export_as == "json") {
      print_json(scanner::usage_entry_json(usage, entry), -1);
    } else {
      if (entry.depth == 0 && flags.with_header) print_exact(usage_csv_header(usage));
      print_exact(usage_csv_line(usage, entry, for_terminal));
    }
    return true;
  };
  if (!or_fail(scanner::visit_usage(database, path, {}, print))) throw not_found(path);
}

void print_top(scanner::UsageDatabase& database, const UsageFlags& flags, const std::string& path) {
  Largest largest(flags);
  auto usage = or_fail(scanner::visit_usage(
      database, path, {}, [&](const scanner::Usage& /*usage*/, const scanner::UsageEntry& entry) {
        largest.add(entry);
        return true;
      }));
  if (!usage) throw not_found(path);
  largest.print(*std::move(usage));
}

// The daemon adds up the nodes at one time: the totals now less the growth since. So it has some points, each
// the sum of all nodes, and none of the events of a node. `last`: its response with the totals now.
nlohmann::ordered_json cluster_history(DaemonClient& daemon, const UsageFlags& flags, const std::string& path,
                                       nlohmann::ordered_json& last) {
  const base::WallTime now = base::SystemClock().wall_now();
  base::WallTime begin = query_options(flags).since.value_or(now - cluster_history_default);
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  const auto add = [&](const std::string& at, const nlohmann::ordered_json& growth, bool is_complete) {
    if (!points.empty() && points.back().at("at") == at) return;
    nlohmann::ordered_json point{{"at", at}};
    for (const char* const name : {"files", "dirs", "bytes", "allocated"})
      point[name] = last.at(name).get<std::int64_t>() - growth.value(name, std::int64_t{0});
    point["complete"] = is_complete;
    point["event"] = nullptr;
    points.push_back(std::move(point));
  };
  for (int i = 0; i < cluster_points; ++i) {
    const std::string asked = base::iso_time(begin + (now - begin) / cluster_points * i);
    last = or_fail(daemon.exchange("GET", fmt::format("/v1/usage?scope=cluster&depth=0&path={}&since={}",
                                                      url_encoded(path), url_encoded(asked))));
    const auto kept_since = base::parse_iso_time(text_or(last.at("history_since"), ""));
    if (i == 0 && kept_since) begin = std::clamp(*kept_since, begin, std::max(begin, now));
    const auto& growth = last.at("growth");
    if (growth.is_object())
      add(std::max(asked, text_or(growth.at("since"), "")), growth, growth.at("complete").get<bool>());
  }
  if (last.at("as_of").is_string())
    add(last.at("as_of").get<std::string>(), nlohmann::ordered_json::object(),
        last.at("complete").get<bool>());
  return {{"path", path},
          {"as_of", last.at("as_of")},
          {"history_since", last.at("history_since")},
          {"points", points}};
}

void print_history(const GlobalOptions& global, const UsageFlags& flags, const std::string& path) {
  constexpr std::size_t points_max = 10'000;
  nlohmann::ordered_json json;
  nlohmann::ordered_json last = nlohmann::ordered_json::object();
  if (flags.cluster) {
    auto daemon = daemon_of(global, flags);
    json = cluster_history(daemon, flags, path, last);
  } else if (global.url) {
    auto daemon = daemon_of(global, flags);
    json = or_fail(
        daemon.exchange("GET", fmt::format("/v1/usage/history?limit={}&path={}{}", points_max,
                                           url_encoded(path), flags.since ? since_query(*flags.since) : "")));
  } else {
    auto database = open_database(or_fail(global.load_config(), exit_usage));
    json = scanner::history_json(
        path, or_fail(scanner::query_history(database, path, query_options(flags).since, points_max)));
  }
  if (flags.json) {
    print_json(json);
    return check_nodes(last);
  }
  if (json.at("points").empty()) {
    throw_failure(exit_failed,
                  "there is no history of '{}': see history.keep, history.depth and "
                  "history.prefixes in spoor.json(5)",
                  base::printable(path));
  }
  print_text(history_text(json, output_columns()));
  check_nodes(last);
}

void check_flags(const GlobalOptions& global, const UsageFlags& flags) {
  if (flags.sort == "growth" && !flags.since)
    throw Failure{exit_usage, "--sort growth needs --since, such as --since 24h"};
  if (!flags.export_as.empty() && global.url)
    throw Failure{exit_usage, "--export reads scan.db: run it on the node, without --url"};
}

// A place that is meant must not be taken for another directory, or for everything.
std::string logical_path(const GlobalOptions& global, const std::string& given) {
  const bool is_from_here = Places::is_from_here(given);
  if (is_from_here && global.url)
    throw_failure(exit_usage, "'{}' is a place on this machine: give a logical path with --url",
                  base::printable(given));
  const bool is_everything = given == "/";
  if (global.url || is_everything || !(is_from_here || given.starts_with('/'))) return given;
  const auto found = Places(global).logical_path(given);
  if (found) return *found;
  if (is_from_here)
    throw_failure(exit_usage,
                  "'{}' is on no drive of this node: give a logical path, or none for "
                  "everything",
                  base::printable(given));
  return given;
}

void run_for(const GlobalOptions& global, const UsageFlags& flags, const std::string& given) {
  const auto path = or_fail(scanner::parse_usage_path(logical_path(global, given)), exit_usage);
  if (flags.history) return print_history(global, flags, path);
  if (!flags.export_as.empty()) return export_all(global, flags, path);
  if (global.url || flags.cluster) return run_at_daemon(global, flags, path);
  const auto config = or_fail(global.load_config(), exit_usage);
  auto database = open_database(config);
  if (flags.top) return print_top(database, flags, path);
  auto options = query_options(flags);
  options.copies = tracker::CopyRules(config.usage.copies);
  const auto found = or_fail(scanner::query_usage(database, path, options));
  if (!found) throw not_found(path);
  check_owners(*found, flags);
  if (flags.json) return print_json(scanner::usage_json(*found));
  print_exact(to_text(*found, flags));
  if (flags.csv) return;
  const auto limits = scanner::read_limits(database);
  if (limits) print_text(exceeded_limits(*limits, path, false));
}

// As du does: what cannot be shown of one path does not keep the others from being shown.
int run(const GlobalOptions& global, UsageFlags& flags) {
  check_flags(global, flags);
  if (flags.paths.size() < 2) {
    run_for(global, flags, flags.paths.empty() ? "" : flags.paths.front());
    return exit_done;
  }
  int code = exit_done;
  for (const std::string& path : flags.paths) {
    flags.with_header = &path == &flags.paths.front();
    if (flags.is_report())
      print_text(fmt::format("{}{}:\n", &path == &flags.paths.front() ? "" : "\n", base::printable(path)));
    try {
      run_for(global, flags, path);
    } catch (const Failure& failure) {
      base::flush_standard_output();
      fail(failure.code, failure.message);
      code = code == exit_failed ? code : failure.code;
    }
  }
  return code;
}

}  // namespace

void add_usage_command(CLI::App& program, const GlobalOptions& options, int& code) {
  auto flags = std::make_shared<UsageFlags>();
  CLI::App* command =
      program.add_subcommand("usage", "Shows the totals of a directory and those below it, like du");
  command->set_help_flag("--help", "Print this help message and exit");
  command->footer(
      "Examples:\n"
      "  spoor usage -d 2 --since 7d --sort growth   what grew most in a week, two levels deep\n"
      "  spoor usage --top 20                        the largest directories, however deep\n"
      "  spoor usage --cluster bucket                one directory, over all nodes");
  add_value(*command, "PATH", flags->paths, "PATH",
            "Logical paths, or directories on a drive (default: everything)");
  auto* cluster =
      command->add_flag("--cluster", flags->cluster, "Adds up the totals of all nodes of the cluster");
  auto* owner = command->add_flag(
      "--owner", flags->owner, "Shows who owns the files in the directory and below it; needs usage.owners");
  auto* depth = add_value(*command, "-d,--depth", flags->depth, "N", "How many levels below it")
                    ->check(CLI::Range(std::uint64_t{0}, depth_max))
                    ->capture_default_str();
  auto* summary = command->add_flag("-s,--summary", flags->summary, "Shows only the totals of each PATH");
  command->add_flag("-h,--human-readable")->description("Sizes with units: as always");
  command->add_option("--sort", flags->sort, "size, files, name, or growth with --since")
      ->check(CLI::IsMember({"size", "files", "name", "growth"}))
      ->capture_default_str();
  auto* since = add_value(*command, "--since", flags->since, "TIME",
                          "Compares with the totals then: 24h, 7d or yesterday, or at a time such as "
                          "2026-11-21 or 2026-11-21T04:05:06Z");
  auto* limit = add_value(*command, "--limit", flags->limit, "N",
                          "Directories to list in each, or owners; 0 is all (default: 20; all with "
                          "--json or --csv). Sums up the others");
  auto* top =
      add_value(*command, "--top", flags->top, "N", "Shows the N largest directories below it, at any depth")
          ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000}));
  auto* history = command->add_flag("--history", flags->history, "Shows the totals of PATH over time");
  auto* json = command->add_flag("--json", flags->json, "Prints one JSON object for each PATH");
  auto* csv = command->add_flag("--csv", flags->csv, "Prints comma-separated values with a header line")
                  ->excludes(json);
  auto* exported = command
                       ->add_option("--export", flags->export_as,
                                    "Prints all directories below it, a line for each: csv, or json objects")
                       ->check(CLI::IsMember({"csv", "json"}));
  for (auto* const other : {cluster, owner, since, json, csv}) exported->excludes(other);
  for (auto* const other : {owner, since, exported, depth, summary, limit}) top->excludes(other);
  for (auto* const other : {owner, csv, exported, depth, summary, limit, top}) history->excludes(other);
  summary->excludes(depth);
  command->callback([flags, &options, &code, command] {
    refuse_empty_values(*command);
    code = run(options, *flags);
  });
}

}  // namespace spoor::cli
