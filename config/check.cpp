#include "config/check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/derived.h"
#include "config/settings.h"
#include "config/units.h"
#include "tracker/filter/bloom_filter.h"
#include "tracker/paths/path.h"

namespace spoor::config {
namespace {

namespace fs = std::filesystem;

// The bounds of responses to peers and of snapshots are in peer/ and tracker/.
constexpr double filter_bytes_max = 128.0 * 1024 * 1024;

void check_name(std::string_view key, const std::string& name, Problems& problems) {
  if (name.empty()) {
    problems.push_back({std::string(key), fmt::format("{} is required", key)});
  } else if (!is_name(name)) {
    add(problems, key, "{} is wrong: expected 1 to 64 of A-Z a-z 0-9 . _ -", in_quotes(name));
  }
}

// Adds a problem unless `path` is absolute and without "..". Returns whether it is valid.
bool check_absolute(std::string_view key, const fs::path& path, Problems& problems) {
  std::string_view why;
  if (path.native().find('\0') != std::string::npos) {
    why = "it contains a NUL byte";
  } else if (!path.is_absolute()) {
    why = "expected an absolute path, such as \"/srv/data\"";
  } else if (std::ranges::find(path, "..") != path.end()) {
    why = "write it without \"..\", which changes its meaning with every symbolic link";
  }
  if (why.empty()) return true;
  add(problems, key, "{} is wrong: {}", in_quotes(path.native()), why);
  return false;
}

bool is_inside(const fs::path& inner, const fs::path& outer) {
  return std::ranges::mismatch(outer, inner).in1 == outer.end();
}

void check_drives(const Config& config, Problems& problems) {
  if (config.drives.empty())
    add(problems, "drives", "at least one is required, such as \"drives\": [\"/srv/data\"]");
  std::vector<fs::path> sorted;
  check_each("drives", config.drives, [&](const std::string& key, const fs::path& drive) {
    if (check_absolute(key, drive, problems)) sorted.push_back(drive.lexically_normal());
  });
  // In the order by component, a path directly precedes the first path inside it.
  std::ranges::sort(sorted);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const fs::path& outer = sorted[i - 1];
    const fs::path& inner = sorted[i];
    if (inner == outer) {
      add(problems, "drives", "{} is listed twice", in_quotes(inner.native()));
    } else if (is_inside(inner, outer)) {
      add(problems, "drives", "{} is inside {}: every file must be on one drive only",
          in_quotes(inner.native()), in_quotes(outer.native()));
    }
  }
}

void check_watch(const Config& config, Problems& problems) {
  if (config.watch.batch > std::chrono::seconds(10))
    add(problems, "watch.batch", "is out of range: expected a duration from 1ms to 10s");
  if (config.watch.timeout > std::chrono::hours(1))
    add(problems, "watch.timeout", "is out of range: expected a duration from 1ms to 1h");
  const auto& drives = config.watch.drives;
  check_each("watch.drives", drives, [&](const std::string& key, const fs::path& drive) {
    if (&*std::ranges::find(drives, drive) != &drive)
      add(problems, key, "{} is listed twice", in_quotes(drive.native()));
    if (std::ranges::find(config.drives, drive) == config.drives.end())
      add(problems, key, "{} is not one of \"drives\": name a drive of this node", in_quotes(drive.native()));
  });
  // Otherwise a change of an unwatched drive may be marked on another node alone.
  if (config.scan.daemons != Daemons::own) return;
  for (const fs::path& drive : unwatched_drives(config)) {
    add(problems, "scan.daemons",
        "\"own\" needs spoor-watch on all drives, and {} is not watched: set \"watch.drives\" to \"all\", or "
        "this to \"all\"",
        in_quotes(drive.native()));
  }
}

void check_exclude(const std::string& key, const std::string& glob, Problems& problems) {
  std::string_view why;
  if (glob.empty()) {
    why = "expected a glob, such as \"*/tmp/*\"";
  } else if (glob.find('\0') != std::string::npos) {
    why = "it contains a NUL byte";
  } else if (glob.starts_with('/')) {
    why = "paths are relative to the namespace root: remove the leading '/'";
  } else if (glob.ends_with('/')) {
    why = "a match is excluded with everything below it: remove the trailing '/'";
  } else if (glob.find("//") != std::string::npos) {
    why = "no path has an empty component: write one '/' instead of two";
  }
  if (!why.empty()) add(problems, key, "{} is wrong: {}", in_quotes(glob), why);
}

// The paths that scans find are normal: another one would never match.
void check_logical_path(const std::string& key, const std::string& path, Problems& problems) {
  const auto normal = tracker::normalise_path(path);
  if (normal && *normal == path) return;
  add(problems, key, "{} is wrong: expected a path below the drives, such as \"bucket/prefix\"",
      in_quotes(path));
}

bool has_history(const Config& config, const std::string& path) {
  const auto depth = static_cast<std::uint64_t>(std::ranges::count(path, '/')) + (path.empty() ? 0 : 1);
  const auto& prefixes = config.history.prefixes;
  return config.history.keep &&
         (depth <= config.history.depth || std::ranges::find(prefixes, path) != prefixes.end());
}

void check_limit(const std::string& key, const UsageLimit& limit, const Config& config, Problems& problems) {
  constexpr std::uint64_t most = 1ULL << 62U;
  if (!limit.path.empty()) check_logical_path(key + ".path", limit.path, problems);
  const auto is_same = [&](const UsageLimit& other) {
    return other.path == limit.path && other.cluster == limit.cluster;
  };
  if (&*std::ranges::find_if(config.usage.limits, is_same) != &limit)
    add(problems, key + ".path", "{} has a limit already", in_quotes(limit.path));
  if (limit.bytes > most || limit.files > most || limit.growth_per_day_bytes > most)
    add(problems, key, "is out of range: expected limits of at most 2^62");
  if (limit.bytes == 0 && limit.files == 0 && limit.growth_per_day_bytes == 0)
    add(problems, key, "sets no limit: give bytes, files or growth_per_day");
  if (limit.growth_per_day_bytes == 0 || has_history(config, limit.path)) return;
  add(problems, key + ".growth_per_day",
      "no history is kept of {}: set history.keep to true, and raise history.depth or add the path to "
      "history.prefixes",
      in_quotes(limit.path));
}

void check_usage(const Config& config, Problems& problems) {
  check_each("usage.copies", config.usage.copies, [&](const std::string& key, const UsageCopies& copies) {
    constexpr double factor_max = 1'000;
    check_logical_path(key + ".path", copies.path, problems);
    if (copies.factor >= 1 && copies.factor <= factor_max) return;
    add(problems, key + ".factor", "{} is out of range: expected a number from 1 to {}, such as 3",
        copies.factor, factor_max);
  });
  check_each("usage.limits", config.usage.limits, [&](const std::string& key, const UsageLimit& limit) {
    check_limit(key, limit, config, problems);
  });
  check_each("history.prefixes", config.history.prefixes,
             [&](const std::string& key, const auto& path) { check_logical_path(key, path, problems); });
}

std::string text_of(Unit unit, std::uint64_t number) {
  if (unit == Unit::none) return std::to_string(number);
  return unit == Unit::bytes ? format_size(number) : format_duration(std::chrono::milliseconds(number));
}

std::uint64_t count_of(std::uint64_t number) { return number; }
std::int64_t count_of(std::chrono::milliseconds duration) { return duration.count(); }

// Most settings have no range.
template <class T>
void check_range(std::string_view /*key*/, const T& /*setting*/, Problems& /*problems*/) {}

template <class T>
void check_range(std::string_view key, Number<T> number, Problems& problems) {
  const auto count = count_of(number.value);
  if (std::cmp_greater_equal(count, number.least) && std::cmp_less_equal(count, number.most)) return;
  std::string shown;
  if (std::cmp_less(count, 0)) {
    shown = fmt::format("{}ms", count);
  } else {
    shown = text_of(number.unit, static_cast<std::uint64_t>(count));
    if (number.unit != Unit::none) shown = in_quotes(shown);
  }
  const char* const noun = number.unit == Unit::none    ? "whole number"
                           : number.unit == Unit::bytes ? "size"
                                                        : "duration";
  add(problems, key, "{} is out of range: expected a {} from {} to {}", shown, noun,
      text_of(number.unit, number.least), text_of(number.unit, number.most));
}

void check_range(std::string_view key, const std::optional<Etcd>& setting, Problems& problems) {
  if (!setting) return;
  Etcd etcd = *setting;
  visit_parts(etcd, [&](std::string_view name, auto&& part) {
    check_range(fmt::format("{}.{}", key, name), part, problems);
  });
}

void check_range(std::string_view key, const std::vector<Sink>& sinks, Problems& problems) {
  check_each(key, sinks, [&](const std::string& sink_key, Sink sink) {
    visit_parts(sink, [&](std::string_view name, auto&& part) {
      check_range(fmt::format("{}.{}", sink_key, name), part, problems);
    });
  });
}

void check_memory(const Config::Tracker& settings, Problems& problems) {
  const auto shape = tracker::BloomShape::for_items(settings.items, settings.fp_rate);
  const double one = std::ceil(static_cast<double>(shape.bits) / 8);
  if (one > filter_bytes_max) {
    return add(
        problems, "tracker.items",
        "{} at fp_rate {} need a filter of over 128MiB per cycle, which is too large for a response to "
        "a peer; lower it",
        settings.items, settings.fp_rate);
  }
  const double needed = (static_cast<double>(settings.history) + 1) * one;
  if (needed <= static_cast<double>(settings.memory_limit_bytes)) return;
  constexpr double mebibyte = 1024.0 * 1024;
  add(problems, "tracker.memory_limit",
      "{} is too small: {} cycles of {} items at fp_rate {} need at least {:.0f}MiB; raise it, or lower "
      "tracker.items or tracker.history",
      in_quotes(format_size(settings.memory_limit_bytes)), settings.history + 1, settings.items,
      settings.fp_rate, std::ceil(needed / mebibyte));
}

void check_ranges(Config config, Problems& problems) {
  const std::size_t before = problems.size();
  visit_settings(config, [&](std::string_view key, auto&& setting) { check_range(key, setting, problems); });
  const double rate = config.tracker.fp_rate;
  if (!(rate > 0 && rate < 1)) {
    add(problems, "tracker.fp_rate", "{} is out of range: expected a number between 0 and 1, such as 0.1",
        rate);
  }
  // check_memory() requires numbers within their ranges.
  if (problems.size() == before) check_memory(config.tracker, problems);
}

}  // namespace

bool is_name(std::string_view text, std::size_t bytes_max, std::string_view others) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !text.empty() && text.size() <= bytes_max && std::ranges::all_of(text, [&](char each) {
    return allowed.find(each) != std::string_view::npos || others.find(each) != std::string_view::npos;
  });
}

Problems find_problems(const Config& config) {
  Problems problems;
  check_name("node.name", config.node.name, problems);
  check_name("node.cluster", config.node.cluster, problems);
  check_absolute("node.data_dir", config.node.data_dir, problems);
  check_drives(config, problems);
  check_watch(config, problems);
  check_each("namespace.exclude", config.name_space.exclude,
             [&](const std::string& key, const std::string& glob) { check_exclude(key, glob, problems); });
  check_usage(config, problems);
  check_ranges(config, problems);
  check_network(config, problems);
  return problems;
}

std::vector<std::string> validate(const Config& config) {
  std::vector<std::string> texts;
  for (Problem& problem : find_problems(config)) texts.push_back(std::move(problem.text));
  return texts;
}

}  // namespace spoor::config
