#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/data_dir.h"
#include "base/file_system.h"
#include "cli/program/commands.h"
#include "cli/program/format.h"
#include "cli/scan/after_scan.h"
#include "cli/scan/scan_gather.h"
#include "cli/scan/scan_report.h"
#include "cli/scan/scan_walk.h"
#include "cli/usage/usage_report.h"
#include "config/config.h"
#include "scanner/errors.h"
#include "scanner/report_json.h"
#include "scanner/scan.h"
#include "scanner/store/usage_database.h"
#include "scanner/usage/usage_query.h"
#include "tracker/filter/level_schedule.h"

namespace spoor::cli {
namespace {

struct ScanFlags {
  bool full = false;
  bool rebuild = false;
  bool dry_run = false;
  bool verbose = false;
  bool json = false;
  std::optional<std::string> exec;
};

std::string joined(std::string note, const std::string& also) {
  if (!note.empty() && !also.empty()) note += "; ";
  return note + also;
}

std::string joined(std::string note, const base::Result<>& also) {
  return joined(std::move(note), also ? std::string() : also.error().message);
}

// Writes the totals of the root and of its direct children to usage.json in the data directory, for programs
// that read files. If the new file cannot be written, the old one stays. Not synced: the next scan repeats
// it.
base::Result<> write_usage_file(const config::Config& config, scanner::UsageDatabase& database,
                                std::uint64_t scan) {
  constexpr int version = 1;
  scanner::UsageOptions options;
  options.children_max = 10'000;
  options.copies = tracker::CopyRules(config.usage.copies);
  const auto usage = scanner::query_usage(database, "", options);
  if (!usage) return usage.error();
  nlohmann::ordered_json json{{"version", version}, {"scan", scan}};
  // Before any drive could be read, there is no root.
  json.update(scanner::usage_json(usage->value_or(scanner::Usage())));
  base::PosixFileSystem files;
  return base::replace_file_unsynced(
      files, config.node.data_dir / base::data_dir::usage,
      json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
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
      throw Failure{is_running ? exit_scan_running : exit_failed, lock.error().message};
    }
    return flags_.dry_run ? run_dry() : run_and_rebuild();
  }

 private:
  // Creates no database, not even an empty one.
  int run_dry() const {
    const auto stored = or_fail(read_stored());
    const auto answer = or_fail(ask(stored, clock_.wall_now()));
    print({.gathered = answer.gathered,
           .levels = levels_,
           .start_level = stored.start_level,
           .full = flags_.full || !stored.started_at,
           .note = answer.note});
    return answer.gathered.complete() ? exit_done : exit_in_part;
  }

  static base::Result<StoredScan> read_stored(scanner::UsageDatabase& database) {
    auto peers = database.peers();
    if (!peers) return peers.error();
    const auto start_level = database.start_level();
    if (!start_level) return start_level.error();
    const auto last = database.scans(1);
    if (!last) return last.error();
    return StoredScan{std::move(*peers), *start_level,
                      last->empty() ? std::nullopt : std::optional(last->front().started_at)};
  }

  base::Result<StoredScan> read_stored() const {
    auto database = scanner::UsageDatabase::open_read_only(database_file());
    if (database) return read_stored(*database);
    if (database.error().code == std::errc::no_such_file_or_directory) return StoredScan();
    return database.error();
  }

  // A database that is found damaged, even during the scan, is replaced by one that a full scan builds.
  int run_and_rebuild() const {
    auto begun = or_fail(scanner::UsageDatabase::resume_rebuild(database_file()));
    if (flags_.rebuild) {
      begun.reset();  // closed
      return rebuild("a rebuild of the scan database was asked for");
    }
    if (begun) return go_on_with_rebuild(*std::move(begun));
    const auto code = run_incremental();
    if (!code && code.error().code == scanner::Errc::database_damaged) return rebuild(code.error().message);
    return or_fail(code);
  }

  // Changes nothing before the cluster has responded: the existing database stays in use until then.
  int rebuild(std::string_view why) const {
    const auto answer = or_fail(ask({}, clock_.wall_now()));
    auto database = or_fail(scanner::UsageDatabase::begin_rebuild(database_file(), why));
    const auto code = [&] {
      Target target{std::move(database), true};
      ScanWalk walk(global_, config_, clock_, target.database, flags_.full, progress_form());
      if (const auto done = walk.synchronise(); !done) return base::Result<int>(done.error());
      return scan(walk, target, {}, answer, nullptr);
    }();
    return rebuilt(code);
  }

  // It was begun by a scan that was killed, or that could not gather the marks.
  int go_on_with_rebuild(scanner::UsageDatabase database) const {
    bool has_asked = false;
    const auto code = run_scan({std::move(database), true}, has_asked);
    return has_asked ? rebuilt(code) : or_fail(code);
  }

  // A rebuild that failed is dropped, and the existing database stays in use. One that a stop interrupted is
  // resumed by the next scan.
  int rebuilt(const base::Result<int>& code) const {
    if (code) return *code;
    const std::string message = code.error().message;
    if (code.error().code == scanner::Errc::interrupted) throw Failure{exit_failed, message};
    throw Failure{exit_failed, joined(message, scanner::UsageDatabase::drop_rebuild(database_file()))};
  }

  base::Result<int> run_incremental() const {
    auto database = scanner::UsageDatabase::open(database_file());
    if (!database) return database.error();
    bool has_asked = false;
    return run_scan({*std::move(database), false}, has_asked);
  }

  // The database that a scan commits to.
  struct Target {
    scanner::UsageDatabase database;
    bool is_rebuild = false;  // replaces the existing database once it is complete
  };

  base::Result<int> run_scan(Target target, bool& has_asked) const {
    ScanWalk walk(global_, config_, clock_, target.database, flags_.full, progress_form());
    base::WallTime started_at = clock_.wall_now();  // what changed before is in the scan
    const auto resumed = end_unfinished(walk, target);
    if (!resumed) {
      has_asked = true;
      return resumed.error();
    }
    // A scan that was resumed may have taken hours.
    if (*resumed) {
      started_at = clock_.wall_now();
      if (const auto done = walk.synchronise(); !done) return done.error();
    }
    const auto stored = read_stored(target.database);
    if (!stored) return stored.error();
    const auto answer = ask(*stored, started_at);
    if (!answer) return answer.error();
    has_asked = true;
    return scan(walk, target, *stored, *answer, *resumed ? &**resumed : nullptr);
  }

  base::Result<int> scan(ScanWalk& walk, Target& target, const StoredScan& stored,
                         const GatheredMarks& answer, const scanner::ScanReport* resumed) const {
    scanner::ScanInput input = input_of(answer, stored);
    input.partial = input.partial || !walk.unwatched().empty();
    auto report = commit(walk, target, input);
    if (!report) return report.error();
    const peer::Gathered& gathered = answer.gathered;
    const auto written = write_usage_file(config_, target.database, report->record.id);
    auto unfinished = check_cluster_limits(global_, target.database, report->record.id, report->limits);
    print({.gathered = gathered,
           .levels = levels_,
           .report = &*report,
           .resumed = resumed,
           .start_level = input.start_level,
           .full = flags_.full,
           .unwatched = walk.unwatched(),
           .note = joined(joined(answer.note, walk.note()), written)});
    for (const scanner::LimitState& state : report->limits) {
      if (state.is_exceeded()) print_error(exceeded_limit(state));
    }
    static_cast<void>(target.database.merge_rows());  // after a failure, the next scan does it
    const auto commands = run_limit_commands(config_, target.database, report->limits);
    unfinished.insert(unfinished.end(), commands.failures.begin(), commands.failures.end());
    for (const std::string& failure : unfinished) print_error(failure);
    if (commands.was_stopped) return exit_in_part;
    if (const auto hook = run_hook(target.database, report->record.id); !hook) {
      return fail(exit_in_part, hook.error().message);
    }
    const bool is_done = !input.partial && !report->left_something() && unfinished.empty();
    return static_cast<int>(is_done ? exit_done : exit_in_part);
  }

  base::Result<scanner::ScanReport> commit(ScanWalk& walk, Target& target,
                                           const scanner::ScanInput& input) const {
    auto report = walk.run(input);
    if (!report || !target.is_rebuild) return report;
    auto placed = scanner::UsageDatabase::finish_rebuild(database_file(), std::move(target.database));
    if (!placed) return placed.error();
    target = {*std::move(placed), false};
    return report;
  }

  // Synchronises with spoor-watch, and resumes the scan that was killed last time, if there is one, and
  // commits it. Marks made since then are gathered by the scan that follows.
  base::Result<std::optional<scanner::ScanReport>> end_unfinished(ScanWalk& walk, Target& target) const {
    if (const auto done = walk.synchronise(); !done) return done.error();
    const auto input = walk.find_unfinished();
    if (!input) return input.error();
    if (!*input) return std::optional<scanner::ScanReport>();
    auto report = commit(walk, target, **input);
    if (!report) return report.error();
    // The scan that follows writes the file again, and reports a failure.
    static_cast<void>(write_usage_file(config_, target.database, report->record.id));
    if (walk.was_stopped()) return scanner::interrupted_error();
    return std::optional<scanner::ScanReport>(*std::move(report));
  }

  base::Result<GatheredMarks> ask(const StoredScan& stored, base::WallTime started_at) const {
    return gather_marks(global_, config_, stored, started_at, flags_.dry_run, flags_.full);
  }

  scanner::ScanInput input_of(const GatheredMarks& answer, const StoredScan& stored) const {
    const peer::Gathered& gathered = answer.gathered;
    return {
        .marks = gathered.marks,
        .book = gathered.book,
        // Without any response there is no new estimate.
        .start_level = gathered.any_answered() ? levels_.start_level_for(gathered.items) : stored.start_level,
        .started_at = answer.started_at,
        .cycle = gathered.cycle,
        .partial = !gathered.complete(),
        .everything = fmt::format("{}", fmt::join(gathered.gaps, "; "))};
  }

  base::Result<> run_hook(scanner::UsageDatabase& database, std::uint64_t scan) const {
    if (!flags_.exec) return {};
    std::fflush(stdout);  // prints the report before the output of the hook
    return run_scan_hook(*flags_.exec, config_.node.data_dir, database, scan, clock_);
  }

  std::optional<ScanProgress::Form> progress_form() const {
    if (flags_.json) return std::nullopt;
    return ::isatty(STDERR_FILENO) == 1 ? ScanProgress::Form::terminal : ScanProgress::Form::log;
  }

  std::filesystem::path database_file() const {
    return scanner::UsageDatabase::file_in(config_.node.data_dir);
  }

  void print(const ScanOutcome& outcome) const {
    if (flags_.json) return print_json(scan_json(outcome));
    print_text(scan_text(outcome, flags_.verbose));
  }

  const GlobalOptions& global_;
  const ScanFlags& flags_;
  const config::Config& config_;
  const tracker::LevelSchedule levels_;
  const base::SystemClock clock_;
};

int run(const GlobalOptions& global, const ScanFlags& flags) {
  if (flags.exec && flags.exec->find_first_not_of(" \t\n") == std::string::npos) {
    throw Failure{exit_usage, "--exec needs a command"};
  }
  const auto config = or_fail(global.load_config(), exit_usage);
  return ScanCommand(global, flags, config).run();
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
  CLI::Option* const rebuild =
      command->add_flag("--rebuild", flags->rebuild,
                        "Builds the scan database anew, by a full walk; the old one is kept aside");
  CLI::Option* const dry_run =
      command
          ->add_flag("--dry-run", flags->dry_run,
                     "Only gathers the marks: walks and stores nothing, opens no cycle")
          ->excludes(rebuild);
  command->add_flag("-v,--verbose", flags->verbose, "Also prints the figures of the audit and of the filter");
  command->add_flag("--json", flags->json, "Prints one JSON object");
  add_value(*command, "--exec", flags->exec, "COMMAND",
            "Runs this shell command after the scan, with the changed directories as arguments")
      ->excludes(dry_run);
  command->callback([flags, &options, &code] { code = run(options, *flags); });
}

}  // namespace spoor::cli
