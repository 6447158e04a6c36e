#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "cli/scan_etcd.h"
#include "cli/scan_members.h"
#include "cli/scan_report.h"
#include "peer/gather.h"
#include "peer/http_transport.h"
#include "scanner/errors.h"
#include "scanner/scan.h"
#include "scanner/scan_lock.h"
#include "scanner/usage_database.h"
#include "tracker/drive_registry.h"
#include "tracker/level_schedule.h"
#include "tracker/namespace_rules.h"

namespace spoor::cli {
namespace {

constexpr unsigned attempts_max = 3;  // to reach a peer: it may just be starting again
constexpr int round_timeouts = 6;     // all peers together have so many times what each of them has

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

// A line on a terminal that is written over and over.
void show_progress(const scanner::Progress& progress) {
  fmt::print(stderr, "\r{} directories read  ", with_commas(progress.figures.dirs_walked));
}

class ScanCommand {
 public:
  ScanCommand(const GlobalOptions& global, const ScanFlags& flags, const config::Config& config)
      : global_(global),
        flags_(flags),
        config_(config),
        levels_(config.tracker.items, config.tracker.fp_rate) {}

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
    const auto stored = read_stored();
    if (!stored) return fail(exit_failed, stored.error().message);
    const auto asked = gather(*stored);
    if (!asked) return fail(exit_failed, asked.error().message);
    print({.gathered = asked->gathered,
           .levels = levels_,
           .start_level = stored->start_level,
           .full = flags_.full});
    return asked->gathered.complete() ? exit_done : exit_in_part;
  }

  // What the last scan left for this one.
  struct Stored {
    tracker::Cursors cursors;
    std::size_t start_level = 0;
    std::string roll_position;
  };

  static base::Result<Stored> read_stored(scanner::UsageDatabase& database) {
    auto cursors = database.cursors();
    if (!cursors) return cursors.error();
    const auto start_level = database.start_level();
    if (!start_level) return start_level.error();
    auto roll_position = database.roll_position();
    if (!roll_position) return roll_position.error();
    return Stored{std::move(*cursors), *start_level, *std::move(roll_position)};
  }

  base::Result<Stored> read_stored() const {
    auto database = scanner::UsageDatabase::open_read_only(database_file());
    if (database) return read_stored(*database);
    if (database.error().code == std::errc::no_such_file_or_directory) return Stored();
    return database.error();
  }

  int run_in_earnest() const {
    auto database = scanner::UsageDatabase::open(database_file());
    if (!database) return fail(exit_failed, database.error().message);
    const auto started_at = clock_.wall_now();
    const auto stored = read_stored(*database);
    if (!stored) return fail(exit_failed, stored.error().message);
    const auto asked = gather(*stored);
    if (!asked) return fail(exit_failed, asked.error().message);
    const peer::Gathered& gathered = asked->gathered;
    // Who heard nobody has nothing new to say.
    const std::size_t start_level =
        gathered.any_answered() ? levels_.start_level_for(gathered.items) : stored->start_level;
    const auto report = walk(*database, *asked, started_at, start_level);
    if (!report) return fail(exit_failed, report.error().message);
    print({.gathered = gathered,
           .levels = levels_,
           .report = &*report,
           .start_level = start_level,
           .full = flags_.full,
           .note = asked->note});
    return gathered.complete() && !report->left_something() ? exit_done : exit_in_part;
  }

  std::filesystem::path database_file() const {
    return scanner::UsageDatabase::file_in(config_.node.data_dir);
  }

  tracker::NamespaceRules rules() const {
    return tracker::NamespaceRules(
        {config_.name_space.exclude, config_.name_space.bucket_names == config::BucketNames::s3});
  }

  void print(const ScanOutcome& outcome) const {
    fmt::print("{}", flags_.json ? scan_json(outcome) : scan_text(outcome));
  }

  struct Asked {
    peer::Gathered gathered;
    std::string roll_position;
    std::string note;  // for the report
  };

  base::Result<Asked> gather(const Stored& stored) const {
    ScanEtcd etcd(config_, clock_);
    auto members =
        find_scan_members(global_, config_, clock_, stored.cursors, etcd.registry(), flags_.dry_run);
    if (!members) return members.error();
    etcd.put_dead_last(members->endpoints);
    const bool may_open_cycle = flags_.dry_run || etcd.take_turn();
    peer::HttpTransport transport({.timeout = config_.peers.timeout,
                                   .total_timeout = round_timeouts * config_.peers.timeout,
                                   .attempts_max = attempts_max});
    auto gathered = peer::gather(transport, members->endpoints, stored.cursors,
                                 {.cluster = config_.node.cluster,
                                  .rules_digest = rules().digest(),
                                  .own_url = members->endpoints.front().to_string(),
                                  .min_cycle_age = config_.scan.min_cycle_age,
                                  .may_open_cycle = may_open_cycle,
                                  .trust_new_peers = config_.scan.new_peers == config::NewPeers::trust,
                                  .start_level = stored.start_level,
                                  .read_only = flags_.dry_run,
                                  .lingering = members->lingering,
                                  .expected = etcd.expected(),
                                  .known_gaps = etcd.gaps(stored.roll_position, stored.cursors),
                                  .unknown_sources = members->unknown});
    etcd.give_back();
    const auto settled = settle_scan_members(config_, clock_, stored.cursors, *members, gathered.addresses);
    std::string note = settled ? "" : settled.error().message;
    const bool is_enough = config_.scan.require == config::Require::all
                               ? gathered.complete()
                               : flags_.full || gathered.any_answered() || !gathered.gaps.empty();
    if (is_enough) return Asked{std::move(gathered), etcd.position(stored.roll_position), std::move(note)};
    std::string why = config_.scan.require == config::Require::all
                          ? "not every peer answered (scan.require is \"all\")"
                          : "no peer answered, not even this node's daemon";
    for (const auto& peer : gathered.peers) {
      if (!peer.ok) why += fmt::format("\n  {}: {}", peer.name, peer.error);
    }
    if (!note.empty()) why += "\n  " + note;
    return base::Error(std::make_error_code(std::errc::host_unreachable), why);
  }

  base::Result<scanner::ScanReport> walk(scanner::UsageDatabase& database, const Asked& asked,
                                         base::WallTime started_at, std::size_t start_level) const {
    scanner::ScanOptions options;
    options.drives = drives();
    options.rules = rules();
    options.full = flags_.full;
    options.max_dirs_per_second = config_.scan.max_dirs_per_second;

    const peer::Gathered& gathered = asked.gathered;
    const bool on_terminal = !flags_.json && ::isatty(STDERR_FILENO) == 1;
    const StopOnSignal stop;
    raise_descriptor_limit();
    scanner::SystemWaiter waiter;
    const scanner::PosixDirectoryReader reader;
    auto report = scanner::run_scan(database, options,
                                    {.marks = gathered.marks,
                                     .next_cursors = gathered.cursors,
                                     .start_level = start_level,
                                     .roll_position = asked.roll_position,
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
  const tracker::LevelSchedule levels_;
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
