#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/number.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/daemon_client.h"
#include "cli/format.h"
#include "cli/usage_report.h"
#include "config/derived.h"
#include "config/units.h"
#include "scanner/report_json.h"
#include "scanner/store/usage_database.h"
#include "scanner/store/usage_query.h"
#include "tracker/paths/path.h"

namespace spoor::cli {
namespace {

constexpr std::uint64_t lines_default = 20;                       // of a directory
constexpr std::uint64_t depth_max = tracker::path_bytes_max / 2;  // no path is deeper

struct UsageFlags {
  std::string path;
  std::uint64_t depth = 1;
  std::string sort = "size";
  std::optional<std::uint64_t> limit;
  std::optional<std::string> since;
  bool json = false;
  bool csv = false;
  std::string export_as;  // csv or json; empty: a report
  bool cluster = false;
  bool owner = false;
};

// Longer than a daemon waits for the members.
constexpr std::chrono::seconds cluster_timeout{30};

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
  options.depth = flags.depth;
  options.owners = flags.owner;
  options.order = scanner::parse_usage_order(flags.sort).value();
  const std::uint64_t limit = flags.limit.value_or(flags.json || flags.csv ? 0 : lines_default);
  if (limit > 0) options.children_max = limit;
  if (flags.since)
    options.since = or_fail(config::parse_since(*flags.since, base::SystemClock().wall_now()), exit_usage);
  return options;
}

std::string to_text(const scanner::Usage& usage, const UsageFlags& flags) {
  if (flags.owner) return flags.csv ? owners_csv(usage) : owners_text(usage);
  if (flags.csv) return usage_csv(usage, ::isatty(STDOUT_FILENO) == 1);
  const auto order = scanner::parse_usage_order(flags.sort).value();
  if (flags.cluster) return usage_text(usage, order, output_columns(), "incomplete");
  return usage_text(usage, order, output_columns());
}

void check_owners(const scanner::Usage& usage, const UsageFlags& flags) {
  if (!flags.owner || usage.owners) return;
  throw Failure{exit_failed,
                fmt::format("the owners of the files in '{}' are not known{}: set usage.owners, or raise "
                            "history.depth, then run 'spoor scan'",
                            base::printable(usage.total.path), flags.cluster ? " on every node" : "")};
}

bool has_rest(const scanner::UsageEntry& entry) {
  return entry.rest.count > 0 || std::ranges::any_of(entry.children, has_rest);
}

// The daemon returns at most this many children of a directory; the others are summed in its rest.
constexpr std::uint64_t children_of_daemon_max = 10'000;

// The nodes whose totals are missing from the sums; empty if all are in them.
std::string missing_text(const nlohmann::ordered_json& json) {
  std::string missing;
  for (const auto& node : json.value("nodes", nlohmann::ordered_json::array())) {
    if (node.at("ok").get<bool>()) continue;
    const std::string name = node.at("name").get<std::string>();
    const std::string url = node.at("url").is_null() ? "" : node.at("url").get<std::string>();
    missing += fmt::format("\n  {}: {}",
                           base::printable(name.empty()  ? url
                                           : url.empty() ? name
                                                         : fmt::format("{} ({})", name, url)),
                           base::printable(node.at("error").get<std::string>()));
  }
  for (const auto& source : json.value("unknown_sources", nlohmann::ordered_json::array())) {
    missing += fmt::format("\n  members of {}", base::printable(source.get<std::string>()));
  }
  return missing;
}

void run_at_daemon(const GlobalOptions& global, const UsageFlags& flags, const std::string& path) {
  auto daemon = or_fail(flags.cluster ? DaemonClient::create(global, {.timeout = cluster_timeout})
                                      : DaemonClient::create(global),
                        exit_usage);
  const auto children_max = std::min(query_options(flags).children_max, children_of_daemon_max);
  std::string target =
      fmt::format("/v1/usage?path={}&depth={}&sort={}&limit={}{}{}",
                  boost::urls::encode(path, boost::urls::unreserved_chars), flags.depth, flags.sort,
                  children_max, flags.cluster ? "&scope=cluster" : "", flags.owner ? "&owners=1" : "");
  if (flags.since) target += "&since=" + boost::urls::encode(*flags.since, boost::urls::unreserved_chars);
  auto json = or_fail(daemon.exchange("GET", target));
  if (!flags.cluster) json.erase("node");  // as it is printed on that node
  const auto usage = scanner::usage_from_json(json);
  if (!usage) throw Failure{exit_failed, "the daemon's response: " + usage.error().message};
  check_owners(*usage, flags);
  if (flags.json) {
    print_json(json);
  } else {
    print_exact(to_text(*usage, flags));
  }
  std::string missing;
  try {
    missing = missing_text(json);
  } catch (const nlohmann::json::exception& error) {
    throw Failure{exit_failed, fmt::format("the daemon's response: {}", error.what())};
  }
  if (!missing.empty()) throw Failure{exit_in_part, "missing from the sums:" + missing};
  const bool is_cut_short = query_options(flags).children_max > children_max && has_rest(usage->total);
  if (!usage->truncated && !is_cut_short) return;
  throw Failure{exit_in_part,
                fmt::format("the daemon returns at most {} directories: some are left out; request fewer "
                            "levels, or run this on its node",
                            children_of_daemon_max)};
}

scanner::UsageDatabase open_database(const config::Config& config) {
  const auto file = scanner::UsageDatabase::file_in(config.node.data_dir);
  or_fail(check_readable(file));
  return or_fail(scanner::UsageDatabase::open_read_only(file));
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
      if (entry.depth == 0) print_exact(usage_csv_header(usage));
      print_exact(usage_csv_line(usage, entry, for_terminal));
    }
    return true;
  };
  if (!or_fail(scanner::visit_usage(database, path, {}, print))) throw not_found(path);
}

void run(const GlobalOptions& global, const UsageFlags& flags) {
  const auto path = or_fail(scanner::parse_usage_path(flags.path), exit_usage);
  if (flags.sort == "growth" && !flags.since)
    throw Failure{exit_usage, "--sort growth needs --since, such as --since 24h"};
  if (!flags.export_as.empty()) {
    if (global.url) throw Failure{exit_usage, "--export reads scan.db: run it on the node, without --url"};
    return export_all(global, flags, path);
  }
  if (global.url || flags.cluster) return run_at_daemon(global, flags, path);
  const auto config = or_fail(global.load_config(), exit_usage);
  auto database = open_database(config);
  auto options = query_options(flags);
  options.copies = config::copy_rules(config);
  const auto found = or_fail(scanner::query_usage(database, path, options));
  if (!found) throw not_found(path);
  check_owners(*found, flags);
  if (flags.json) return print_json(scanner::usage_json(*found));
  print_exact(to_text(*found, flags));
}

}  // namespace

void add_usage_command(CLI::App& program, const GlobalOptions& options) {
  auto flags = std::make_shared<UsageFlags>();
  CLI::App* command =
      program.add_subcommand("usage", "Shows the totals of a directory and those below it, like du");
  command->add_option("PATH", flags->path, "A logical path (default: everything)")->type_name("PATH");
  auto* cluster =
      command->add_flag("--cluster", flags->cluster, "Adds up the totals of all nodes of the cluster");
  auto* owner = command->add_flag(
      "--owner", flags->owner, "Shows who owns the files in the directory and below it; needs usage.owners");
  command->add_option("--depth", flags->depth, "How many levels below it")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{0}, depth_max))
      ->capture_default_str();
  command->add_option("--sort", flags->sort, "size, files, name, or growth with --since")
      ->check(CLI::IsMember({"size", "files", "name", "growth"}))
      ->capture_default_str();
  auto* since =
      command
          ->add_option(
              "--since", flags->since,
              "Compares with the totals then: 24h or 7d ago, or at a time such as 2026-11-21T04:05:06Z")
          ->type_name("TIME");
  command
      ->add_option("--limit", flags->limit,
                   "Directories to list in each, or owners; 0 is all (default: 20; all with --json or "
                   "--csv). Sums up the others")
      ->type_name("N");
  auto* json = command->add_flag("--json", flags->json, "Prints one JSON object");
  auto* csv = command->add_flag("--csv", flags->csv, "Prints comma-separated values with a header line")
                  ->excludes(json);
  auto* exported = command
                       ->add_option("--export", flags->export_as,
                                    "Prints all directories below it, a line for each: csv, or json objects")
                       ->check(CLI::IsMember({"csv", "json"}));
  for (auto* const other : {cluster, owner, since, json, csv}) exported->excludes(other);
  command->callback([flags, &options] { run(options, *flags); });
}

}  // namespace spoor::cli
