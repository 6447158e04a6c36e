#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "peer/gather.h"
#include "peer/http_transport.h"
#include "scanner/errors.h"
#include "scanner/scan.h"
#include "scanner/scan_lock.h"
#include "scanner/usage_database.h"
#include "tracker/drive_registry.h"
#include "tracker/namespace_rules.h"
#include "tracker/path.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;

struct ScanFlags {
  bool full = false;
  bool dry_run = false;
  bool json = false;
};

// Requests a stop on SIGTERM and SIGINT for as long as it lives.
class StopOnSignal {
 public:
  StopOnSignal() {
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) source_.request_stop();
    });
    thread_ = std::jthread([this] { context_.run(); });
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal() { context_.stop(); }

  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  boost::asio::io_context context_{1};
  boost::asio::signal_set signals_{context_, SIGTERM, SIGINT};
  std::jthread thread_;
};

// A deep tree takes a descriptor a level; the soft limit is meant for programs that use select(2).
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(
      ::setrlimit(RLIMIT_NOFILE, &limit));  // without it, deep directories are left for next time
}

base::Result<std::vector<peer::Endpoint>> endpoints_of(const GlobalOptions& global,
                                                       const config::Config& config) {
  std::vector<peer::Endpoint> endpoints;
  const auto own = global.url ? peer::parse_endpoint(*global.url) : own_endpoint(config);
  if (!own) return own.error();
  endpoints.push_back(*own);
  for (const std::string& url : config.peers.static_urls) {
    const auto peer = peer::parse_endpoint(url);
    if (!peer) return peer.error();
    const bool is_listed = std::any_of(endpoints.begin(), endpoints.end(), [&](const peer::Endpoint& other) {
      return other.to_string() == peer->to_string();
    });
    if (!is_listed) endpoints.push_back(*peer);
  }
  return endpoints;
}

// What a scan has found; a dry run has no report.
struct Outcome {
  const peer::Gathered& gathered;
  const scanner::ScanReport* report = nullptr;
  bool full = false;  // as asked for

  // Why everything is walked, as far as it is known before; empty where it need not be.
  std::string reason() const {
    if (report != nullptr) return report->record.reason;
    return full ? "a full scan was asked for" : fmt::format("{}", fmt::join(gathered.gaps, "; "));
  }
  bool is_full() const { return report != nullptr ? report->record.walked_everything : !reason().empty(); }
};

ordered_json peers_json(const peer::Gathered& gathered) {
  ordered_json peers = ordered_json::array();
  for (const auto& peer : gathered.peers) {
    peers.push_back({{"name", peer.name},
                     {"url", peer.url},
                     {"ok", peer.ok},
                     {"error", peer.error.empty() ? ordered_json(nullptr) : ordered_json(peer.error)}});
  }
  return peers;
}

ordered_json errors_json(const std::vector<scanner::ScanError>& errors) {
  ordered_json list = ordered_json::array();
  for (const auto& error : errors) {
    list.push_back({{"path", error.path}, {"message", error.message}});
  }
  return list;
}

ordered_json to_json(const Outcome& outcome) {
  static const scanner::ScanReport nothing_walked;
  const auto& gathered = outcome.gathered;
  const auto& report = outcome.report != nullptr ? *outcome.report : nothing_walked;
  const auto& record = report.record;
  const auto filter = tracker::MarkSetFigures::of(gathered.marks);
  ordered_json json{{"scan", record.id},
                    {"cycle", gathered.cycle.value},
                    {"mode", outcome.is_full() ? "full" : "incremental"},
                    {"reason", outcome.reason()},
                    {"dry_run", outcome.report == nullptr},
                    {"partial", !gathered.complete()},
                    {"peers", peers_json(gathered)},
                    {"gaps", gathered.gaps}};
  json["filter"] = {
      {"items", filter.whole_items()}, {"density", filter.density}, {"fp_rate", filter.fp_rate}};
  json["dirs_walked"] = record.figures.dirs_walked;
  json["dirs_skipped"] = record.figures.dirs_skipped;
  json["dirs_changed"] = record.figures.dirs_changed;
  json["dirs_new"] = record.figures.dirs_new;
  json["dirs_deleted"] = record.figures.dirs_deleted;
  json["audited"] = 0;  // there is no audit
  json["missed_changes"] = 0;
  json["files"] = record.files;
  json["bytes"] = record.bytes;
  json["errors"] = record.errors;
  json["error_details"] = errors_json(report.errors);
  json["duration_s"] = std::chrono::duration<double>(report.duration).count();
  return json;
}

std::string peers_text(const peer::Gathered& gathered) {
  std::size_t answered = 0;
  std::string failures;
  for (const auto& peer : gathered.peers) {
    if (peer.ok) {
      ++answered;
    } else {
      failures += fmt::format("  left for next time: {}: {}\n", peer.name, peer.error);
    }
  }
  return fmt::format("peers      {} of {} answered, cycle {}\n{}", answered, gathered.peers.size(),
                     gathered.cycle.value, failures);
}

std::string filter_text(const tracker::MarkSet& marks) {
  const auto filter = tracker::MarkSetFigures::of(marks);
  return fmt::format("filter     about {} items, density {}, false positives {}; {} tree marks\n",
                     with_commas(filter.whole_items()), percent(filter.density), percent(filter.fp_rate),
                     with_commas(marks.tree_marks().size()));
}

std::string report_text(const scanner::ScanReport& report) {
  const auto& record = report.record;
  const auto& figures = record.figures;
  const std::uint64_t all = figures.dirs_walked + figures.dirs_skipped;
  const double share = all == 0 ? 0 : static_cast<double>(figures.dirs_walked) / static_cast<double>(all);
  std::string text = record.walked_everything
                         ? fmt::format("scan {}     full: {}\n", record.id, record.reason)
                         : fmt::format("scan {}     incremental\n", record.id);
  text += fmt::format("walked     {} of {} directories ({}): {} changed, {} new, {} deleted\n",
                      with_commas(figures.dirs_walked), with_commas(all), percent(share),
                      with_commas(figures.dirs_changed), with_commas(figures.dirs_new),
                      with_commas(figures.dirs_deleted));
  text += fmt::format("now        {} files, {}\n", with_commas(record.files), human_bytes(record.bytes));
  text += fmt::format("took       {}\n", human_duration(report.duration));
  for (const auto& error : report.errors) {
    text += fmt::format("  left for next time: {}: {}\n", tracker::printable(error.path), error.message);
  }
  if (record.errors > report.errors.size()) {
    text += fmt::format("  and {} more\n", with_commas(record.errors - report.errors.size()));
  }
  return text;
}

void print(const Outcome& outcome, bool as_json) {
  if (as_json) {
    fmt::print("{}\n", to_json(outcome).dump(2, ' ', false, ordered_json::error_handler_t::replace));
    return;
  }
  if (outcome.report != nullptr) fmt::print("{}", report_text(*outcome.report));
  fmt::print("{}{}", peers_text(outcome.gathered), filter_text(outcome.gathered.marks));
  if (outcome.report != nullptr) return;
  fmt::print("a dry run  nothing was walked, nothing stored; a scan now would be {}\n",
             outcome.is_full() ? "full: " + outcome.reason() : "incremental");
}

// A line on a terminal that is written over and over.
void show_progress(const scanner::Progress& progress) {
  fmt::print(stderr, "\r{} directories read  ", with_commas(progress.figures.dirs_walked));
}

class ScanCommand {
 public:
  ScanCommand(const GlobalOptions& global, const ScanFlags& flags, const config::Config& config)
      : global_(global), flags_(flags), config_(config) {}

  int run() {
    const auto lock = scanner::lock_scan(config_.node.data_dir);
    if (!lock) {
      const bool is_running = lock.error().code == scanner::Errc::scan_running;
      return fail(is_running ? exit_scan_running : exit_failed, lock.error().message);
    }
    return flags_.dry_run ? run_dry() : run_in_earnest();
  }

 private:
  // Leaves not even an empty database behind.
  int run_dry() const {
    const auto cursors = stored_cursors();
    if (!cursors) return fail(exit_failed, cursors.error().message);
    const auto gathered = gather(*cursors);
    if (!gathered) return fail(exit_failed, gathered.error().message);
    print({*gathered, nullptr, flags_.full}, flags_.json);
    return gathered->complete() ? exit_done : exit_in_part;
  }

  base::Result<tracker::Cursors> stored_cursors() const {
    auto database = scanner::UsageDatabase::open_read_only(database_file());
    if (database) return database->cursors();
    if (database.error().code == std::errc::no_such_file_or_directory) return tracker::Cursors{};
    return database.error();
  }

  int run_in_earnest() const {
    auto database = scanner::UsageDatabase::open(database_file());
    if (!database) return fail(exit_failed, database.error().message);
    const auto started_at = clock_.wall_now();
    const auto cursors = database->cursors();
    if (!cursors) return fail(exit_failed, cursors.error().message);
    const auto gathered = gather(*cursors);
    if (!gathered) return fail(exit_failed, gathered.error().message);
    const auto report = walk(*database, *gathered, started_at);
    if (!report) return fail(exit_failed, report.error().message);
    print({*gathered, &*report, flags_.full}, flags_.json);
    return gathered->complete() && !report->left_something() ? exit_done : exit_in_part;
  }

  std::filesystem::path database_file() const {
    return scanner::UsageDatabase::file_in(config_.node.data_dir);
  }

  tracker::NamespaceRules rules() const {
    return tracker::NamespaceRules(
        {config_.name_space.exclude, config_.name_space.bucket_names == config::BucketNames::s3});
  }

  base::Result<peer::Gathered> gather(const tracker::Cursors& cursors) const {
    const auto endpoints = endpoints_of(global_, config_);
    if (!endpoints) return endpoints.error();
    peer::HttpTransport transport({.timeout = config_.peers.timeout});
    auto gathered = peer::gather(transport, *endpoints, cursors,
                                 {.cluster = config_.node.cluster,
                                  .rules_digest = rules().digest(),
                                  .own_url = endpoints->front().to_string(),
                                  .min_cycle_age = config_.scan.min_cycle_age,
                                  .trust_new_peers = config_.scan.new_peers == config::NewPeers::trust,
                                  .read_only = flags_.dry_run});
    const bool is_enough = config_.scan.require == config::Require::all
                               ? gathered.complete()
                               : flags_.full || gathered.any_answered() || !gathered.gaps.empty();
    if (is_enough) return gathered;
    std::string why = config_.scan.require == config::Require::all
                          ? "not every peer answered (scan.require is \"all\")"
                          : "no peer answered, not even this node's daemon";
    for (const auto& peer : gathered.peers) {
      if (!peer.ok) why += fmt::format("\n  {}: {}", peer.name, peer.error);
    }
    return base::Error(std::make_error_code(std::errc::host_unreachable), why);
  }

  base::Result<scanner::ScanReport> walk(scanner::UsageDatabase& database, const peer::Gathered& gathered,
                                         base::WallTime started_at) const {
    scanner::ScanOptions options;
    options.drives = drives();
    options.rules = rules();
    options.full = flags_.full;
    options.max_dirs_per_second = config_.scan.max_dirs_per_second;

    const bool on_terminal = !flags_.json && ::isatty(STDERR_FILENO) == 1;
    const StopOnSignal stop;
    raise_descriptor_limit();
    scanner::SystemWaiter waiter;
    const scanner::PosixDirectoryReader reader;
    auto report = scanner::run_scan(database, options,
                                    {.marks = gathered.marks,
                                     .next_cursors = gathered.cursors,
                                     .started_at = started_at,
                                     .cycle = gathered.cycle,
                                     .partial = !gathered.complete(),
                                     .everything = fmt::format("{}", fmt::join(gathered.gaps, "; "))},
                                    {.reader = reader,
                                     .clock = clock_,
                                     .waiter = waiter,
                                     .stop = stop.token(),
                                     .progress = on_terminal ? show_progress : nullptr});
    if (on_terminal) fmt::print(stderr, "\r\x1b[K");
    return report;
  }

  // A drive that is not the one the daemon knows by its path is left alone.
  std::vector<scanner::Drive> drives() const {
    base::PosixFileSystem files;
    tracker::DriveRegistry registry(files, config_.node.data_dir);
    // What it says of a damaged registry the daemon says too; drives without a word of their own are refused.
    static_cast<void>(registry.load(config_.drives));
    std::vector<scanner::Drive> drives;
    drives.reserve(config_.drives.size());
    for (const auto& path : config_.drives) {
      drives.push_back({path, registry.check(path).error, registry.id_of(path)});
    }
    return drives;
  }

  const GlobalOptions& global_;
  const ScanFlags& flags_;
  const config::Config& config_;
  const base::SystemClock clock_;
};

int run(const GlobalOptions& global, const ScanFlags& flags) {
  const auto config = global.load_config();
  if (!config) return fail(exit_usage, config.error().message);
  return ScanCommand(global, flags, *config).run();
}

}  // namespace

void add_scan_command(CLI::App& program, const GlobalOptions& options, int& code) {
  auto flags = std::make_shared<ScanFlags>();
  CLI::App* command =
      program.add_subcommand("scan", "Walks what changed on this node's drives, in the whole cluster's view");
  command->footer(
      "Exit codes: 0 done; 1 failed; 2 wrong usage or configuration; 3 done in part, the rest is left\n"
      "for the next scan; 75 another scan is running.");
  command->add_flag("--full", flags->full, "Walks everything, marked or not");
  command->add_flag("--dry-run", flags->dry_run,
                    "Only asks the cluster: walks and stores nothing, opens no cycle");
  command->add_flag("--json", flags->json, "Prints one JSON object");
  command->callback([flags, &options, &code] { code = run(options, *flags); });
}

}  // namespace spoor::cli
