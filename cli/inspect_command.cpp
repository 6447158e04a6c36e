#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/printable.h"
#include "cli/program/commands.h"
#include "cli/program/format.h"
#include "tracker/errors.h"
#include "tracker/storage/minio_snapshot.h"
#include "tracker/storage/snapshot.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;

struct InspectOptions {
  std::string file;
  std::vector<std::string> contains;
  std::string contains_from;
  bool json = false;
};

// A span of cycles, or one.
struct InspectedCycle {
  tracker::CycleId first;
  tracker::CycleId last;
  tracker::MarkSet marks;
};

// The content of a `.tracker.bin` of either format.
struct Inspected {
  std::string format;  // "spoor" or "minio"
  unsigned version = 0;
  base::WallTime saved_at{};
  std::string owner;                   // node and cluster, where the format names them
  std::vector<InspectedCycle> cycles;  // oldest first

  bool is_minio() const { return format == "minio"; }
};

Inspected from_minio(const tracker::MinioSnapshot& snapshot) {
  Inspected inspected{"minio", tracker::minio_snapshot_version, snapshot.saved_at, {}, {}};
  for (const tracker::MinioCycle& cycle : snapshot.cycles) {
    tracker::MarkSet marks;
    marks.add_filter(cycle.filter);
    inspected.cycles.push_back({cycle.id, cycle.id, std::move(marks)});
  }
  return inspected;
}

Inspected from_spoor(const tracker::Snapshot& snapshot) {
  Inspected inspected{
      "spoor",
      tracker::snapshot_version,
      snapshot.saved_at,
      fmt::format("node '{}' of cluster '{}', instance {}, generation {}", snapshot.owner.node,
                  snapshot.owner.cluster, snapshot.state.instance.to_string(), snapshot.generation),
      {}};
  const tracker::TrackerState& state = snapshot.state;
  tracker::CycleId first = state.oldest_kept;
  for (const tracker::ClosedSpan& span : state.history) {
    inspected.cycles.push_back({first, span.last, *span.marks});
    first = next(span.last);
  }
  inspected.cycles.push_back({state.current, state.current, *state.current_marks});
  return inspected;
}

Inspected inspect(const std::string& file) {
  base::PosixFileSystem files;
  const auto bytes = or_fail(files.read(file, tracker::snapshot_bytes_max));
  if (!bytes.empty() && static_cast<std::uint8_t>(bytes.front()) == tracker::minio_snapshot_version) {
    const auto snapshot = tracker::decode_minio_snapshot(bytes);
    if (!snapshot) throw Failure{exit_failed, base::wrap(file, snapshot.error()).message};
    return from_minio(*snapshot);
  }
  const auto snapshot = tracker::decode_snapshot(bytes);
  if (!snapshot) throw Failure{exit_failed, base::wrap(file, snapshot.error()).message};
  return from_spoor(*snapshot);
}

// Of the spans that may contain the path, the last cycles.
base::Result<std::vector<std::uint64_t>> cycles_with(const Inspected& inspected, const std::string& raw) {
  const auto path = tracker::normalise_path(raw);
  if (!path) return path.error();
  const std::string key(inspected.is_minio() ? tracker::minio_key(*path) : std::string_view(*path));
  const tracker::PathHash hash = tracker::hash_path(key);
  std::vector<std::uint64_t> cycles;
  for (const InspectedCycle& cycle : inspected.cycles) {
    if (cycle.marks.may_contain(key, hash)) cycles.push_back(cycle.last.value);
  }
  return cycles;
}

ordered_json level_json(const tracker::BloomFilter& filter) {
  const auto figures = tracker::FilterFigures::of(filter);
  return {{"m", filter.shape().bits},
          {"k", filter.shape().hashes},
          {"items", std::llround(figures.items)},
          {"density", figures.density}};
}

// `m` and `k` are those of the first level, the other figures those of all.
ordered_json cycle_json(const InspectedCycle& cycle) {
  const auto figures = tracker::MarkSetFigures::of(cycle.marks);
  const auto& filters = cycle.marks.filters();
  const tracker::BloomShape shape = filters.empty() ? tracker::BloomShape{} : filters.front().shape();
  ordered_json json{{"first_cycle", cycle.first.value},
                    {"cycle", cycle.last.value},
                    {"m", shape.bits},
                    {"k", shape.hashes},
                    {"items", figures.whole_items()},
                    {"density", figures.density},
                    {"tree_marks", cycle.marks.tree_marks().size()}};
  json["levels"] = ordered_json::array();
  for (const tracker::BloomFilter& filter : filters) json["levels"].push_back(level_json(filter));
  return json;
}

int print_as_json(const Inspected& inspected, const std::vector<std::string>& paths) {
  int code = exit_done;
  ordered_json json{{"format", inspected.format},
                    {"version", inspected.version},
                    {"saved_at", base::iso_time(inspected.saved_at)},
                    {"cycles", ordered_json::array()},
                    {"contains", ordered_json::array()}};
  for (const InspectedCycle& cycle : inspected.cycles) json["cycles"].push_back(cycle_json(cycle));
  for (const std::string& path : paths) {
    const auto cycles = cycles_with(inspected, path);
    ordered_json entry{{"path", path}, {"cycles", cycles ? *cycles : std::vector<std::uint64_t>{}}};
    if (!cycles) {
      entry["error"] = cycles.error().message;
      code = exit_failed;
    }
    json["contains"].push_back(std::move(entry));
  }
  print_json(json);
  return code;
}

// The number of hashes of each level.
std::string hashes_text(const tracker::MarkSet& marks) {
  std::vector<std::uint64_t> hashes;
  for (const tracker::BloomFilter& filter : marks.filters()) hashes.push_back(filter.shape().hashes);
  return hashes.empty() ? "0" : fmt::format("{}", fmt::join(hashes, " "));
}

int print_report(const Inspected& inspected, const std::vector<std::string>& paths) {
  int code = exit_done;
  print_text(fmt::format("{} snapshot, version {}, saved {}\n", inspected.is_minio() ? "MinIO" : "Spoor",
                         inspected.version, base::iso_time(inspected.saved_at)));
  if (!inspected.owner.empty()) print_text(base::printable(inspected.owner) + '\n');
  Table table({"cycle", "levels", "bits", "hashes", "items", "density", "false positives", "tree marks"});
  for (const InspectedCycle& cycle : inspected.cycles) {
    const auto figures = tracker::MarkSetFigures::of(cycle.marks);
    table.add({span_text(with_commas(cycle.first.value), with_commas(cycle.last.value)),
               std::to_string(cycle.marks.filters().size()), with_commas(figures.bits),
               hashes_text(cycle.marks), with_commas(figures.whole_items()), percent(figures.density),
               percent(figures.fp_rate), with_commas(cycle.marks.tree_marks().size())});
  }
  print_text('\n' + table.to_string());
  if (!paths.empty()) print_text("\n");
  for (const std::string& path : paths) {
    const auto cycles = cycles_with(inspected, path);
    if (!cycles)
      code = fail(exit_failed, cycles.error().message);
    else if (cycles->empty())
      print_text(fmt::format("{}: in no cycle\n", base::printable(path)));
    else
      print_text(fmt::format("{}: may be in {}\n", base::printable(path), fmt::join(*cycles, " ")));
  }
  return code;
}

int run(const InspectOptions& options) {
  std::vector<std::string> paths = options.contains;
  if (!options.contains_from.empty()) {
    std::ifstream lines(options.contains_from);
    if (!lines) throw_failure(exit_failed, "cannot read {}", options.contains_from);
    for (std::string line; std::getline(lines, line);) paths.push_back(line);
  }
  const auto inspected = inspect(options.file);
  return options.json ? print_as_json(inspected, paths) : print_report(inspected, paths);
}

}  // namespace

void add_inspect_command(CLI::App& program, const GlobalOptions& global, int& code) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command =
      program.add_subcommand("inspect", "Shows what is in a .tracker.bin, Spoor's or MinIO's (version 7)");
  add_value(*command, "FILE", options->file, "FILE", "The file")->required();
  add_value(*command, "--contains", options->contains, "PATH",
            "Shows which cycles may contain this path; repeatable")
      ->allow_extra_args(false);
  add_value(*command, "--contains-from", options->contains_from, "FILE", "The same for each line of a file");
  command->add_flag("--json", options->json, "Prints JSON");
  command->callback([options, &global, &code] {
    refuse_url(global, "inspect");
    code = run(*options);
  });
}

}  // namespace spoor::cli
