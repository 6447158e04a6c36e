#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "config/check.h"
#include "config/derived.h"
#include "tracker/paths/path.h"

namespace spoor::config {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t name_bytes_max = 64;
constexpr std::chrono::seconds watch_batch_max{10};
constexpr std::chrono::hours watch_timeout_max{1};

void check_name(const std::string& key, const std::string& name, Problems& problems) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  if (name.empty()) {
    problems.push_back({key, key + " is required"});
  } else if (name.size() > name_bytes_max || name.find_first_not_of(allowed) != std::string::npos) {
    add(problems, key,
        fmt::format("{} is wrong: expected 1 to {} of A-Z a-z 0-9 . _ -", in_quotes(name), name_bytes_max));
  }
}

// Adds a problem unless `path` is absolute and without "..". Returns whether it is valid.
bool check_absolute(const std::string& key, const fs::path& path, Problems& problems) {
  std::string_view why;
  if (path.native().find('\0') != std::string::npos) {
    why = "it contains a NUL byte";
  } else if (!path.is_absolute()) {
    why = "expected an absolute path, such as \"/srv/data\"";
  } else if (std::ranges::find(path, "..") != path.end()) {
    why = "write it without \"..\", which changes its meaning with every symbolic link";
  }
  if (why.empty()) return true;
  add(problems, key, fmt::format("{} is wrong: {}", in_quotes(path.native()), why));
  return false;
}

bool is_inside(const fs::path& inner, const fs::path& outer) {
  return std::ranges::mismatch(outer, inner).in1 == outer.end();
}

void check_drives(const Config& config, Problems& problems) {
  if (config.drives.empty()) {
    add(problems, "drives", "at least one is required, such as \"drives\": [\"/srv/data\"]");
  }
  std::vector<fs::path> sorted;
  for (std::size_t i = 0; i < config.drives.size(); ++i) {
    if (check_absolute(fmt::format("drives[{}]", i), config.drives[i], problems)) {
      sorted.push_back(config.drives[i].lexically_normal());
    }
  }
  // In the order by component, a path directly precedes the first path inside it.
  std::ranges::sort(sorted);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const fs::path& outer = sorted[i - 1];
    const fs::path& inner = sorted[i];
    if (inner == outer) {
      add(problems, "drives", fmt::format("{} is listed twice", in_quotes(inner.native())));
    } else if (is_inside(inner, outer)) {
      add(problems, "drives",
          fmt::format("{} is inside {}: every file must be on one drive only", in_quotes(inner.native()),
                      in_quotes(outer.native())));
    }
  }
}

void check_watch(const Config& config, Problems& problems) {
  if (config.watch.batch > watch_batch_max)
    add(problems, "watch.batch", "is out of range: expected a duration from 1ms to 10s");
  if (config.watch.timeout > watch_timeout_max)
    add(problems, "watch.timeout", "is out of range: expected a duration from 1ms to 1h");
  for (std::size_t i = 0; i < config.watch.drives.size(); ++i) {
    const fs::path& drive = config.watch.drives[i];
    const std::string key = fmt::format("watch.drives[{}]", i);
    const auto first = std::ranges::find(config.watch.drives, drive) - config.watch.drives.begin();
    if (static_cast<std::size_t>(first) != i)
      add(problems, key, fmt::format("{} is listed twice", in_quotes(drive.native())));
    if (std::ranges::find(config.drives, drive) != config.drives.end()) continue;
    add(problems, key,
        fmt::format("{} is not one of \"drives\": name a drive of this node", in_quotes(drive.native())));
  }
}

// Otherwise a change of an unwatched drive may be marked on another node alone.
void check_daemons(const Config& config, Problems& problems) {
  if (config.scan.daemons != Daemons::own) return;
  for (const fs::path& drive : unwatched_drives(config)) {
    add(problems, "scan.daemons",
        fmt::format("\"own\" needs spoor-watch on all drives, and {} is not watched: set \"watch.drives\" to "
                    "\"all\", or this to \"all\"",
                    in_quotes(drive.native())));
  }
}

void check_exclude(const Config& config, Problems& problems) {
  for (std::size_t i = 0; i < config.name_space.exclude.size(); ++i) {
    const std::string& glob = config.name_space.exclude[i];
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
    if (why.empty()) continue;
    add(problems, fmt::format("namespace.exclude[{}]", i),
        fmt::format("{} is wrong: {}", in_quotes(glob), why));
  }
}

// The paths that scans find are normal: another one would never match.
void check_logical_path(const std::string& key, const std::string& path, Problems& problems) {
  const auto normal = tracker::normalise_path(path);
  if (normal && *normal == path) return;
  add(problems, key,
      fmt::format("{} is wrong: expected a path below the drives, such as \"bucket/prefix\"",
                  in_quotes(path)));
}

void check_copies(const Config& config, Problems& problems) {
  constexpr double factor_max = 1'000;
  for (std::size_t i = 0; i < config.usage.copies.size(); ++i) {
    const UsageCopies& copies = config.usage.copies[i];
    check_logical_path(fmt::format("usage.copies[{}].path", i), copies.path, problems);
    if (copies.factor >= 1 && copies.factor <= factor_max) continue;
    add(problems, fmt::format("usage.copies[{}].factor", i),
        fmt::format("{} is out of range: expected a number from 1 to {}, such as 3", copies.factor,
                    factor_max));
  }
}

void check_limits(const Config& config, Problems& problems) {
  constexpr std::uint64_t most = 1ULL << 62U;
  for (std::size_t i = 0; i < config.usage.limits.size(); ++i) {
    const UsageLimit& limit = config.usage.limits[i];
    const std::string key = fmt::format("usage.limits[{}]", i);
    if (!limit.path.empty()) check_logical_path(key + ".path", limit.path, problems);
    const auto is_same = [&](const UsageLimit& other) {
      return other.path == limit.path && other.cluster == limit.cluster;
    };
    const auto first = std::ranges::find_if(config.usage.limits, is_same) - config.usage.limits.begin();
    if (static_cast<std::size_t>(first) != i)
      add(problems, key + ".path", fmt::format("{} has a limit already", in_quotes(limit.path)));
    if (limit.bytes > most || limit.files > most || limit.growth_per_day_bytes > most)
      add(problems, key, "is out of range: expected limits of at most 2^62");
    if (limit.bytes == 0 && limit.files == 0 && limit.growth_per_day_bytes == 0)
      add(problems, key, "sets no limit: give bytes, files or growth_per_day");
  }
}

bool has_history(const Config& config, const std::string& path) {
  const auto depth = static_cast<std::uint64_t>(std::ranges::count(path, '/')) + (path.empty() ? 0 : 1);
  return config.history.keep &&
         (depth <= config.history.depth ||
          std::ranges::find(config.history.prefixes, path) != config.history.prefixes.end());
}

void check_growth(const Config& config, Problems& problems) {
  for (std::size_t i = 0; i < config.usage.limits.size(); ++i) {
    const UsageLimit& limit = config.usage.limits[i];
    if (limit.growth_per_day_bytes == 0 || has_history(config, limit.path)) continue;
    add(problems, fmt::format("usage.limits[{}].growth_per_day", i),
        fmt::format("no history is kept of {}: set history.keep to true, and raise history.depth or add the "
                    "path to history.prefixes",
                    in_quotes(limit.path)));
  }
}

void check_history(const Config& config, Problems& problems) {
  for (std::size_t i = 0; i < config.history.prefixes.size(); ++i)
    check_logical_path(fmt::format("history.prefixes[{}]", i), config.history.prefixes[i], problems);
}

}  // namespace

void check_names_and_paths(const Config& config, Problems& problems) {
  check_name("node.name", config.node.name, problems);
  check_name("node.cluster", config.node.cluster, problems);
  check_absolute("node.data_dir", config.node.data_dir, problems);
  check_drives(config, problems);
  check_watch(config, problems);
  check_daemons(config, problems);
  check_exclude(config, problems);
  check_copies(config, problems);
  check_limits(config, problems);
  check_growth(config, problems);
  check_history(config, problems);
}

}  // namespace spoor::config
