#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>

#include "base/clock.h"
#include "base/number.h"
#include "base/printable.h"
#include "base/standard_streams.h"
#include "cli/program/commands.h"
#include "cli/program/format.h"
#include "config/units.h"
#include "scanner/feed/change_feed.h"
#include "scanner/feed/consumers.h"
#include "scanner/report_json.h"
#include "tracker/paths/path.h"
#include "tracker/storage/drive_registry.h"

namespace spoor::cli {
namespace {

using scanner::FeedEntry;

// Entries in memory at once. Each page costs a query over all remaining changes.
constexpr std::size_t page_bytes = std::size_t{32} << 20U;

struct ChangesFlags {
  std::string since;
  std::optional<base::WallTime> since_time;
  std::optional<std::uint64_t> after;  // a scan
  std::optional<std::uint64_t> until;
  std::string consumer;
  std::string drive;
  bool everything = false;
  bool commit = false;
  bool forget = false;
  bool latest = false;
  bool consumers = false;
  bool quiet = false;
  bool deleted = false;
  bool files = false;
  bool nul = false;
  bool json = false;
};

class Printer {
 public:
  explicit Printer(const ChangesFlags& flags) : flags_(flags) {}

  // Returns false after a failure; error() describes it.
  bool print(const FeedEntry& entry) {
    if (flags_.json) {
      for (const auto& change : scanner::changes_json(entry)) print_json(change, -1);
    } else if (is_listed(entry)) {
      print_line(entry);
    }
    if (std::ferror(stdout) != 0) error_ = "cannot write to standard output";
    return error_.empty();
  }

  const std::string& error() const { return error_; }

 private:
  // With --files, files alone list all there is to copy. Deleted entries include directories.
  bool is_listed(const FeedEntry& entry) const {
    if (flags_.deleted) return entry.is_deleted;
    return entry.is_there && entry.is_file == flags_.files;
  }

  void print_line(const FeedEntry& entry) {
    const std::string& path = entry.path;
    if (!flags_.nul && path.find('\n') != std::string::npos) {
      error_ = fmt::format("'{}' has a line break in its name: use -0", base::printable(path));
      return;
    }
    std::string line = entry.is_file ? path : path + '/';
    // The root. rsync treats a line that starts with '#' or ';' as a comment, even with NUL separators.
    if (path.empty()) line = "./";
    if (path.starts_with('#') || path.starts_with(';')) line.insert(0, "./");
    if (flags_.nul) return print_exact(line + '\0');
    // Programs read exact names; on a terminal a name must not control it.
    if (is_terminal_) line = base::printable_lines(line);
    print_exact(line + '\n');
  }

  const ChangesFlags& flags_;
  const bool is_terminal_ = ::isatty(STDOUT_FILENO) == 1;
  std::string error_;
};

class ChangesCommand {
 public:
  ChangesCommand(const ChangesFlags& flags, const config::Config& config)
      : flags_(flags),
        data_dir_(config.node.data_dir),
        database_(open_database(config)),
        latest_(or_fail(scanner::latest_scan(database_))) {}

  void run() {
    if (flags_.latest) return print_latest();
    if (flags_.consumers) return print_consumers();
    if (flags_.quiet) return move();
    const auto since = find_since();
    if (!since) return start_over();
    Printer printer(flags_);
    const scanner::FeedRange range{.since = *since,
                                   .until = flags_.until,
                                   .after = {},
                                   .files = flags_.files,
                                   .drive = flags_.drive,
                                   .everything = flags_.everything};
    const auto until = or_fail(scanner::read_changes_in_pages(
        database_, range, page_bytes, [&](const FeedEntry& entry) { return printer.print(entry); }));
    if (!until) return start_over();
    if (!printer.error().empty()) throw Failure{exit_failed, printer.error()};
    // Changes that were not printed must not be committed.
    base::flush_standard_output();
    if (flags_.commit) commit(*until);
  }

 private:
  scanner::Consumers open_consumers() const { return or_fail(scanner::Consumers::open(data_dir_)); }
  std::string feed_id() { return or_fail(scanner::feed_id(database_)); }

  void print_latest() {
    if (!flags_.json) return print_exact(fmt::format("{}\n", latest_));
    print_json({{"feed", feed_id()}, {"scan", latest_}}, -1);
  }

  // How many scans a consumer has still to read; nothing if it has to start over.
  std::optional<std::uint64_t> lag_of(const scanner::Consumer& consumer, bool starts_over) {
    if (starts_over || consumer.feed_id != feed_id() || consumer.scan > latest_) return std::nullopt;
    const auto until = or_fail(
        scanner::read_changes(database_, {.since = consumer.scan}, [](const FeedEntry&) { return false; }));
    return until ? std::optional(latest_ - consumer.scan) : std::nullopt;
  }

  void print_consumers() {
    auto consumers = open_consumers();
    const auto list = or_fail(consumers.list());
    auto json = nlohmann::ordered_json{{"latest", latest_}, {"consumers", nlohmann::ordered_json::array()}};
    Table table({"consumer", "scan", "behind", "committed", ""}, {3, 4});
    for (const scanner::Consumer& consumer : list) {
      const auto found = or_fail(consumers.find(consumer.name));
      const bool starts_over = found && found->progress && !found->progress->start_over_id.empty();
      const auto behind = lag_of(consumer, starts_over);
      const std::string committed = base::iso_time(consumer.committed_at);
      json["consumers"].push_back({{"consumer", consumer.name},
                                   {"scan", consumer.scan},
                                   {"behind", behind ? nlohmann::ordered_json(*behind) : nullptr},
                                   {"committed_at", committed}});
      table.add({consumer.name, std::to_string(consumer.scan), behind ? with_commas(*behind) : "-", committed,
                 behind        ? ""
                 : starts_over ? "starts over: reads everything"
                               : "starts over: its changes are no longer kept"});
    }
    if (flags_.json) return print_json(json);
    print_text(list.empty() ? "no consumer has committed yet\n" : table.to_string());
  }

  void move() {
    const std::uint64_t until = flags_.until.value_or(latest_);
    if (until <= latest_) return commit(until);
    throw_failure(exit_failed, "--until: the last scan is {}, so there is no scan {} yet", latest_, until);
  }

  // The scan before the first one that ended after this time. By number: where the clock was set back, a
  // later scan has an earlier time.
  std::uint64_t scan_before(base::WallTime time) {
    constexpr std::size_t all = 1'000'000;
    constexpr std::size_t no_reasons = 0;
    std::uint64_t before = latest_;
    for (const scanner::ScanRecord& scan : or_fail(database_.scans(all, no_reasons))) {
      if (scan.finished_at > time) before = scan.id - 1;
    }
    return before;
  }

  // Nothing for a consumer that has no position yet.
  std::optional<std::uint64_t> find_since() {
    const std::uint64_t until = flags_.until.value_or(latest_);
    if (flags_.after) return flags_.after;
    if (flags_.since_time) return std::min(scan_before(*flags_.since_time), until);
    if (flags_.everything) return 0;
    if (!flags_.consumer.empty()) return or_fail(open_consumers().position(flags_.consumer, feed_id()));
    const std::uint64_t last = std::min(latest_, until);
    return last - std::min<std::uint64_t>(last, 1);
  }

  // The consumer has to read everything. With --commit it continues after the last scan, or after --until.
  void start_over() {
    if (!flags_.commit) {
      const bool is_new = !flags_.consumer.empty() && !or_fail(open_consumers().find(flags_.consumer));
      const std::string why = is_new ? fmt::format("consumer '{}' is new", flags_.consumer)
                                     : "the changes since then are not kept";
      throw Failure{exit_start_over, why +
                                         ": copy everything once (with --consumer NAME --commit first, so "
                                         "that nothing is missed)"};
    }
    const std::uint64_t last = std::min(latest_, flags_.until.value_or(latest_));
    commit(last);
    throw_failure(exit_start_over, "copy everything once; '{}' continues from scan {}", flags_.consumer,
                  last);
  }

  void commit(std::uint64_t scan) {
    or_fail(open_consumers().commit({flags_.consumer, feed_id(), scan, base::SystemClock().wall_now()}));
  }

  const ChangesFlags& flags_;
  const std::filesystem::path data_dir_;
  scanner::UsageDatabase database_;
  const std::uint64_t latest_;
};

void forget(const std::string& consumer, const config::Config& config) {
  if (!or_fail(or_fail(scanner::Consumers::open(config.node.data_dir)).forget(consumer)))
    throw_failure(exit_failed, "there is no consumer '{}'", consumer);
}

// The path of the drive as in the configuration.
std::string find_drive(const config::Config& config, const std::string& path) {
  std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  if (!normal.has_filename()) normal = normal.parent_path();
  const auto drive = std::ranges::find(config.drives, normal);
  if (drive != config.drives.end()) return drive->native();
  throw_failure(exit_usage, "--drive: '{}' is not among the drives in the configuration",
                base::printable(path));
}

void run(const GlobalOptions& global, ChangesFlags& flags) {
  refuse_url(global, "changes");
  const int sources = int{!flags.since.empty()} + int{flags.after.has_value()} +
                      int{!flags.consumer.empty()} + int{flags.everything};
  if (!flags.latest && !flags.consumers && sources > 1) {
    throw Failure{exit_usage, "give one of --since TIME, --after SCAN, --consumer NAME and --everything"};
  }
  if (const auto scan = base::parse_number<std::uint64_t>(flags.since)) {
    flags.after = scan;  // as in 1.0.0
  } else if (!flags.since.empty()) {
    flags.since_time = or_fail(config::parse_since(flags.since, base::SystemClock().wall_now()), exit_usage);
  }
  if ((flags.commit || flags.forget) && flags.consumer.empty()) {
    throw Failure{exit_usage, "--commit and --forget need --consumer NAME"};
  }
  if (flags.quiet && !flags.commit) throw Failure{exit_usage, "--quiet needs --commit"};
  const auto config = or_fail(global.load_config(), exit_usage);
  if (flags.files && !config.scan.file_feed) {
    throw Failure{
        exit_usage,
        "--files: the scans of this node do not keep the names of files; set scan.file_feed to true in "
        "its configuration, then run 'spoor scan'"};
  }
  if (!flags.drive.empty()) {
    flags.drive = find_drive(config, flags.drive);
    base::PosixFileSystem files;
    tracker::DriveRegistry registry(files, config.node.data_dir);
    static_cast<void>(registry.load(config.drives));
    or_fail(registry.check(flags.drive));
  }
  if (flags.forget) return forget(flags.consumer, config);
  ChangesCommand(flags, config).run();
}

}  // namespace

void add_changes_command(CLI::App& program, const GlobalOptions& options) {
  auto flags = std::make_shared<ChangesFlags>();
  CLI::App* command = program.add_subcommand("changes", "Lists the directories that scans found changed");
  command->footer(
      "One directory a line, with a / at the end, for `rsync -a --delete --files-from=-`, which then copies\n"
      "each one's own entries; with --files, each file that is new or changed instead. Exit codes: 0 done; 1 "
      "failed; 2 wrong usage or configuration; 4 what changed\n"
      "since then is not kept: nothing is printed, copy everything once.");
  add_value(*command, "--since", flags->since, "TIME",
            "Lists what scans found since then: 2d, yesterday, 2026-11-21 or 2026-11-21T04:05:06Z "
            "(default: what the last scan found)");
  add_value(*command, "--after", flags->after, "SCAN", "Lists the changes after this scan");
  add_value(*command, "--until", flags->until, "SCAN", "The last scan to list (default: the latest scan)");
  add_value(*command, "--consumer", flags->consumer, "NAME", "Lists what this consumer has not read yet");
  command->add_flag("--everything", flags->everything,
                    "Lists all that the last scan found, not only what changed");
  add_value(*command, "--drive", flags->drive, "DIR", "Lists only changes on this drive");
  command->add_flag("--latest", flags->latest,
                    "Prints only the number of the last scan (--json: also the id of the feed)");
  command->add_flag("--consumers", flags->consumers,
                    "Lists the consumers instead: the last scan each has read, and how many it is behind");
  command->add_flag("--commit", flags->commit, "After printing, stores the position of the consumer");
  command->add_flag("-q,--quiet", flags->quiet,
                    "With --commit: prints nothing, only sets the position of the consumer to --until");
  command->add_flag("--forget", flags->forget, "Removes the consumer, and lists nothing");
  command->add_flag("--deleted", flags->deleted, "Lists deleted directories instead, each with all below it");
  command->add_flag("--files", flags->files,
                    "Lists files instead (with --deleted or --json: files, too); needs scan.file_feed");
  command->add_flag("-0", flags->nul, "Ends each path with a NUL instead of a line break");
  command->add_flag("--json", flags->json, "Prints one JSON object per line, deletions included");
  command->callback([flags, &options, command] {
    refuse_empty_values(*command);
    run(options, *flags);
  });
}

}  // namespace spoor::cli
