#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/printable.h"
#include "cli/program/commands.h"
#include "cli/program/format.h"
#include "cli/program/places.h"
#include "cli/rsync_lines.h"
#include "client/mark_queue.h"
#include "peer/http/http_transport.h"
#include "peer/http/send_marks.h"
#include "tracker/paths/path.h"

namespace spoor::cli {
namespace {

using std::chrono::milliseconds;

constexpr double timeout_max_s = 1e9;
constexpr double attempt_max_s = 10;  // of one exchange with the daemon

struct MarkOptions {
  std::string kind = "dir";
  std::string prefix;
  std::string from;  // "rsync", or empty: paths
  bool nul_separated = false;
  bool json = false;
  double timeout_s = 60;
  std::vector<std::string> paths;
};

// Of all attempts, and at least one.
milliseconds timeout_of(const MarkOptions& options, double max_s = timeout_max_s) {
  const std::chrono::duration<double> timeout(std::clamp(options.timeout_s, 0.1, max_s));
  return std::chrono::duration_cast<milliseconds>(timeout);
}

// Sends marks in batches, and repeats each until the daemon has acknowledged it.
class Marker {
 public:
  Marker(const GlobalOptions& global, base::Endpoint endpoint, peer::Credentials credentials,
         const MarkOptions& options)
      : global_(global),
        endpoint_(std::move(endpoint)),
        options_(options),
        transport_({.credentials = std::move(credentials), .timeout = timeout_of(options, attempt_max_s)}),
        queue_(
            {},
            [this](const client::MarkBatch& batch, client::Deadline) {
              return peer::send_marks(transport_, endpoint_, client::kind_name(batch.kind), batch.paths);
            },
            [](const std::string& problem) { print_refusal(problem); }) {}

  // Reports and skips an invalid path.
  base::Result<> add(std::string_view raw) { return add(raw, *tracker::parse_mark_kind(options_.kind)); }

  // Adds an item of standard input, without its separator; `is_whole`: the separator was read.
  base::Result<> add_input(std::string_view line, bool is_whole) {
    if (options_.from.empty()) return add(line);
    const auto mark = read_rsync_line(line);
    if (!mark || !is_whole) {
      refuse(fmt::format("'{}' is no whole line of rsync --out-format='%i %n'", base::printable(line)));
      return {};
    }
    // Changes in the top directory have lines of their own.
    if (mark->path == "./" && options_.prefix.empty()) return {};
    return add(mark->path, mark->kind);
  }

  // The timeout is that of each batch.
  base::Result<> flush() {
    for (;;) {
      const std::uint64_t before = queue_.figures().held;
      const auto outcome = queue_.flush(deadline());
      if (outcome != client::Outcome::timed_out || queue_.figures().held == before) return result_of(outcome);
    }
  }

  client::QueueFigures totals() const {
    auto totals = queue_.figures();
    totals.refused += refused_;
    return totals;
  }

 private:
  base::Result<> add(std::string_view raw, tracker::MarkKind kind) {
    const std::string full =
        options_.prefix.empty() ? std::string(raw) : fmt::format("{}/{}", options_.prefix, raw);
    // "./x" may be what is here, or, as "find" prints it elsewhere, a logical path: both are marked.
    const auto here = Places::is_from_here(full) ? path_from_here(full) : std::nullopt;
    if (here) {
      if (auto added = result_of(queue_.add(kind, *here, deadline())); !added) return added;
    }
    auto path = tracker::normalise_path(full);
    if (!path) {
      if (!here) refuse(path.error().message);
      return {};
    }
    if (here && *here == *path) return {};
    if (full.starts_with('/')) path->insert(0, 1, '/');  // the daemon marks the path below its drive
    return result_of(queue_.add(kind, *path, deadline()));
  }

  std::optional<std::string> path_from_here(const std::string& given) {
    if (!places_) places_.emplace(global_);
    const auto place = places_->logical_path(given);
    const auto path = tracker::normalise_path(place.value_or(""));
    return path ? std::optional(*path) : std::nullopt;
  }

  client::Deadline deadline() const { return std::chrono::steady_clock::now() + timeout_of(options_); }

  base::Result<> result_of(client::Outcome outcome) const {
    if (outcome == client::Outcome::done || outcome == client::Outcome::refused) return {};
    const bool is_closed = endpoint_.is_unix() && !is_permitted(endpoint_.unix_path, W_OK);
    return base::Error(
        std::make_error_code(std::errc::io_error),
        "not marked: " + queue_.problem() + (is_closed ? access_advice(endpoint_.unix_path) : ""));
  }

  static void print_refusal(std::string_view problem) { print_error(fmt::format("not marked: {}", problem)); }

  void refuse(std::string_view problem) {
    print_refusal(problem);
    ++refused_;
  }

  const GlobalOptions& global_;
  base::Endpoint endpoint_;
  const MarkOptions& options_;
  std::optional<Places> places_;
  peer::HttpTransport transport_;
  client::MarkQueue queue_;
  std::uint64_t refused_ = 0;  // here, not by the daemon
};

// Marks the paths of standard input as they arrive: the daemon acknowledges each read before the next one, so
// that a program that writes one path at a time has each path marked immediately.
base::Result<> mark_input(Marker& marker, char separator) {
  std::string pending;
  std::string chunk(std::size_t{64} << 10U, '\0');
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::system_error(errno, "cannot read standard input");
    if (got == 0) break;
    pending.append(chunk, 0, static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end; (end = pending.find(separator, begin)) != std::string::npos; begin = end + 1) {
      const auto path = std::string_view(pending).substr(begin, end - begin);
      if (path.empty()) continue;
      if (auto done = marker.add_input(path, true); !done) return done;
    }
    pending.erase(0, begin);
    if (auto done = marker.flush(); !done) return done;
  }
  if (!pending.empty()) {
    if (auto done = marker.add_input(pending, false); !done) return done;
  }
  return marker.flush();
}

base::Result<> mark_all(Marker& marker, const MarkOptions& options) {
  const char separator = options.nul_separated ? '\0' : '\n';
  if (options.paths.empty()) return mark_input(marker, separator);
  for (const std::string& path : options.paths) {
    auto done = path == "-" ? mark_input(marker, separator) : marker.add(path);
    if (!done) return done;
  }
  return marker.flush();
}

int run(const GlobalOptions& global, const MarkOptions& options) {
  const auto endpoint = or_fail(global.own_endpoint(), exit_usage);
  const auto credentials = or_fail(global.own_credentials(endpoint), exit_usage);
  Marker marker(global, endpoint, credentials, options);
  const auto done = mark_all(marker, options);
  const client::QueueFigures totals = marker.totals();
  const std::uint64_t marked = totals.acknowledged - totals.ignored;
  if (options.json) {
    print_json({{"marked", marked},
                {"ignored", totals.ignored},
                {"refused", totals.refused},
                {"cycle", totals.cycle}},
               -1);
  } else if (done) {
    const std::string cycle = totals.cycle == 0 ? "" : fmt::format(", cycle {}", totals.cycle);
    print_text(fmt::format("{} marked, {} ignored{}\n", marked, totals.ignored, cycle));
  }
  if (!done) return fail(exit_failed, done.error().message);
  return totals.refused == 0 ? exit_done : exit_failed;
}

}  // namespace

void add_mark_command(CLI::App& program, const GlobalOptions& global, int& code) {
  auto options = std::make_shared<MarkOptions>();
  CLI::App* command = program.add_subcommand("mark", "Marks paths as changed");
  command->footer(
      "Paths are relative to the top of a drive, bucket/prefix/object, or absolute: /mnt/disk1/bucket/... .\n"
      "Mark after the change is visible, and before its completion is reported.");
  CLI::Option* const kind =
      command
          ->add_option("--kind", options->kind,
                       "dir: the path and its parents; file: its parents; tree: all below it")
          ->check(CLI::IsMember({"dir", "file", "tree"}))
          ->capture_default_str();
  CLI::Option* const nul = command->add_flag("-0,--null", options->nul_separated,
                                             "Standard input is separated by NUL, not by newlines");
  add_value(*command, "--prefix", options->prefix, "PATH", "Prepended to every path");
  add_value(*command, "--timeout", options->timeout_s, "SECONDS", "Seconds to retry until acknowledged")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "Prints the counters as JSON");
  CLI::Option* const paths =
      add_value(*command, "PATH", options->paths, "PATH", "Changed paths; - or none reads standard input");
  command->add_option("--from", options->from, "Standard input is what rsync --out-format='%i %n' printed")
      ->check(CLI::IsMember({"rsync"}))
      ->excludes(kind, nul, paths);
  command->callback([options, &global, &code] { code = run(global, *options); });
}

}  // namespace spoor::cli
