#include "cli/usage/usage_report.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/printable.h"
#include "cli/program/format.h"
#include "scanner/report_json.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;
using scanner::Usage;
using scanner::UsageEntry;
using scanner::UsageGrowth;
using scanner::UsageOrder;

constexpr std::size_t bar_columns_max = 40;
constexpr std::size_t columns_for_bars = 72;  // narrower output has no bars

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Whether it is the directory `above` or below it.
bool is_within(std::string_view path, std::string_view above) {
  if (!path.starts_with(above)) return false;
  return above.empty() || path.size() == above.size() || path[above.size()] == '/';
}

std::string change_note(const std::optional<UsageGrowth>& growth) {
  if (!growth || growth->change == UsageGrowth::Change::grown) return {};
  if (growth->from.empty()) return fmt::format("  ({})", scanner::name_of(growth->change));
  return fmt::format("  ({} from {})", scanner::name_of(growth->change), base::printable(growth->from));
}

// With `columns`, the share of the whole and a bar precede the name.
class UsageText {
 public:
  UsageText(const Usage& usage, UsageOrder order, std::optional<std::size_t> columns, UsageScope scope)
      : usage_(usage),
        order_(order),
        scope_(scope),
        is_tree_(columns.has_value()),
        bar_columns_(bar_columns(columns)) {}

  std::string to_string() const {
    std::vector<std::string> header{"size", "on disk", "files", "directories"};
    if (usage_.since) header.emplace_back("growth");
    if (bar_columns_ > 0) header.insert(header.end(), {"share", ""});
    header.emplace_back("path");
    const std::size_t last = header.size() - 1;
    std::vector<std::size_t> left{last};
    if (bar_columns_ > 0) left.push_back(last - 1);
    Table table(std::move(header), std::move(left));
    add(table, usage_.total);
    return table.to_string();
  }

 private:
  static std::size_t bar_columns(std::optional<std::size_t> columns) {
    if (columns.value_or(0) < columns_for_bars) return 0;
    return std::min(*columns / 5, bar_columns_max);
  }

  void add(Table& table, const UsageEntry& entry) const {
    std::string path = path_text(entry.path);
    if (is_tree_ && entry.depth > 0) path = base::printable(name_of(entry.path));
    add_row(table, entry, indented(path, entry.depth));
    for (const UsageEntry& child : entry.children) add(table, child);
    if (entry.rest.count > 0) add_rest(table, entry);
  }

  void add_rest(Table& table, const UsageEntry& entry) const {
    std::string text = fmt::format("({} more", with_commas(entry.rest.count));
    if (!is_tree_ && !entry.path.empty()) text += fmt::format(" in {}", base::printable(entry.path));
    add_row(table, entry.rest, indented(text + ")", entry.depth + 1));
  }

  std::string indented(const std::string& text, std::uint64_t depth) const {
    return is_tree_ ? std::string(2 * depth, ' ') + text : text;
  }

  template <class Figures>
  void add_row(Table& table, const Figures& figures, std::string name) const {
    std::vector<std::string> row{human_bytes(figures.bytes), human_bytes(figures.allocated),
                                 with_commas(figures.files), with_commas(figures.dirs)};
    if (usage_.since) row.push_back(growth_text(figures));
    if (bar_columns_ > 0) {
      const double share = share_of_all(figures);
      row.push_back(fmt::format("{:.1f} %", share * 100));
      const auto filled = static_cast<std::size_t>(std::lround(share * static_cast<double>(bar_columns_)));
      row.push_back(std::string(filled, '#') + std::string(bar_columns_ - filled, '.'));
    }
    name += change_note(figures.growth);
    if (!figures.complete) {
      name += scope_ == UsageScope::node ? "  (a part was left for the next scan)" : "  (incomplete)";
    } else if (figures.growth && !figures.growth->complete) {
      name += "  (incomplete then)";
    }
    row.push_back(std::move(name));
    table.add(std::move(row));
  }

  // A node that does not respond may have grown or shrunk.
  template <class Figures>
  std::string growth_text(const Figures& figures) const {
    if (!figures.growth) return "-";
    const bool is_exact = scope_ == UsageScope::node || (figures.complete && figures.growth->complete);
    return (is_exact ? "" : "about ") + human_growth(figures.growth->bytes);
  }

  template <class Figures>
  double share_of_all(const Figures& figures) const {
    const bool by_files = order_ == UsageOrder::files;
    const std::uint64_t part = by_files ? figures.files : figures.bytes;
    const std::uint64_t whole = by_files ? usage_.total.files : usage_.total.bytes;
    return whole == 0 ? 0 : std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
  }

  const Usage& usage_;
  const UsageOrder order_;
  const UsageScope scope_;
  const bool is_tree_;
  const std::size_t bar_columns_;  // 0: no bars
};

bool is_unicode_output() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    return locale.find("UTF-8") != std::string_view::npos || locale.find("utf8") != std::string_view::npos;
  }
  return false;
}

// A column for each of the newest sizes, between the smallest and the largest of them.
std::string curve_of(std::vector<std::uint64_t> sizes, std::size_t columns) {
  constexpr std::array<std::string_view, 8> heights{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (sizes.size() > columns) sizes.erase(sizes.begin(), sizes.end() - static_cast<std::ptrdiff_t>(columns));
  const auto [least, most] = std::ranges::minmax(sizes);
  std::string curve;
  for (const std::uint64_t size : sizes) {
    const double share =
        most == least ? 0 : static_cast<double>(size - least) / static_cast<double>(most - least);
    curve += heights[static_cast<std::size_t>(std::lround(share * (heights.size() - 1)))];
  }
  return curve;
}

std::string as_of_text(const Usage& usage, std::optional<base::WallTime> now = {}) {
  const bool is_past = now && usage.as_of && *usage.as_of <= *now;
  return fmt::format("as of {}{}{}{}\n", usage.as_of ? base::iso_time(*usage.as_of) : "no complete scan yet",
                     is_past ? fmt::format(", {} ago", human_duration(*now - *usage.as_of)) : "",
                     usage.is_complete(usage.total) ? "" : "; newer changes are pending",
                     usage.is_scanning ? "; a scan that has not ended has updated some" : "");
}

// The number for one without a name.
std::string user_name(std::uint32_t uid) {
  const passwd* const found = ::getpwuid(uid);
  return found == nullptr ? std::to_string(uid) : base::printable(found->pw_name);
}

std::string group_name(std::uint32_t gid) {
  const group* const found = ::getgrgid(gid);
  return found == nullptr ? std::to_string(gid) : base::printable(found->gr_name);
}

std::string csv_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char character : text) {
    if (character == '"') quoted += '"';
    quoted += character;
  }
  return quoted + '"';
}

std::string csv_growth(const std::optional<UsageGrowth>& growth, bool now_is_complete, bool for_terminal) {
  if (!growth) return std::string(8, ',');
  return fmt::format(",{},{},{},{},{},{},{},{}", growth->files, growth->dirs, growth->bytes,
                     growth->allocated, base::iso_time(growth->since), scanner::name_of(growth->change),
                     csv_quoted(for_terminal ? base::printable(growth->from) : growth->from),
                     growth->complete && now_is_complete);
}

}  // namespace

std::string owners_text(const Usage& usage) {
  Table table({"size", "on disk", "files", "user", "group"}, {3, 4});
  const auto add = [&](const scanner::OwnedTotals& totals, std::string user, std::string group) {
    table.add({human_bytes(totals.bytes), human_bytes(totals.allocated), with_commas(totals.files),
               std::move(user), std::move(group)});
  };
  for (const auto& [owner, totals] : usage.owners->list) {
    if (owner == scanner::other_owners) {
      add(totals, "(others)", "");
    } else {
      add(totals, user_name(owner.uid), group_name(owner.gid));
    }
  }
  if (usage.owners->rest_count > 0)
    add(usage.owners->rest, fmt::format("({} more)", with_commas(usage.owners->rest_count)), "");
  const bool is_complete = usage.is_complete(*usage.owners);
  return table.to_string() + (is_complete ? "" : "(incomplete)\n") + as_of_text(usage);
}

std::string owners_csv(const Usage& usage, bool with_header) {
  const std::string end = fmt::format(",{},{}\r\n", usage.as_of ? base::iso_time(*usage.as_of) : "",
                                      usage.is_complete(*usage.owners));
  std::string csv = with_header ? "uid,gid,files,bytes,allocated,as_of,complete\r\n" : "";
  const auto add = [&](const std::string& ids, const scanner::OwnedTotals& totals) {
    csv += fmt::format("{},{},{},{}{}", ids, totals.files, totals.bytes, totals.allocated, end);
  };
  for (const auto& [owner, totals] : usage.owners->list)
    add(owner == scanner::other_owners ? "," : fmt::format("{},{}", owner.uid, owner.gid), totals);
  if (usage.owners->rest_count > 0) add(",", usage.owners->rest);
  return csv;
}

std::string usage_text(const Usage& usage, UsageOrder order, std::optional<std::size_t> columns,
                       UsageScope scope, std::optional<base::WallTime> now) {
  const char* const full =
      usage.history_is_full ? "the history has reached its bounds: some directories have none\n" : "";
  const std::string begins = usage.since && usage.history_since && *usage.history_since > *usage.since
                                 ? fmt::format("the history begins at {}: growth is since then\n",
                                               base::iso_time(*usage.history_since))
                                 : "";
  return UsageText(usage, order, columns, scope).to_string() + full + begins + as_of_text(usage, now) +
         (usage.has_copy_rules ? fmt::format("{} with each declared copy counted once\n",
                                             human_bytes(usage.total.logical_bytes()))
                               : "");
}

std::string usage_csv_header(const Usage& usage) {
  std::string csv = "path,depth,files,dirs,bytes,allocated,as_of,complete";
  if (usage.since)
    csv += ",files_grown,dirs_grown,bytes_grown,allocated_grown,since,change,from,growth_complete";
  return csv + "\r\n";
}

std::string usage_csv_line(const Usage& usage, const UsageEntry& entry, bool for_terminal) {
  return fmt::format("{},{},{},{},{},{},{},{}{}\r\n",
                     csv_quoted(for_terminal ? base::printable(entry.path) : entry.path), entry.depth,
                     entry.files, entry.dirs, entry.bytes, entry.allocated,
                     usage.as_of ? base::iso_time(*usage.as_of) : "", usage.is_complete(entry),
                     usage.since ? csv_growth(entry.growth, usage.is_complete(entry), for_terminal) : "");
}

std::string usage_csv(const Usage& usage, bool for_terminal, bool with_header) {
  std::string csv = with_header ? usage_csv_header(usage) : "";
  scanner::for_each_entry(
      usage.total, [&](const UsageEntry& entry) { csv += usage_csv_line(usage, entry, for_terminal); });
  return csv;
}

std::string history_text(const ordered_json& history, std::optional<std::size_t> columns) {
  Table table({"since", "size", "on disk", "files", "directories", ""}, {0, 5});
  std::vector<std::uint64_t> sizes;
  for (const auto& point : history.at("points")) {
    sizes.push_back(point.at("bytes").get<std::uint64_t>());
    std::string remark = text_or(point.at("event"), "");
    if (point.contains("from")) remark += " from " + base::printable(text_or(point["from"], ""));
    if (!point.at("complete").get<bool>()) remark += remark.empty() ? "incomplete" : ", incomplete";
    table.add({text_or(point.at("at"), ""), human_bytes(sizes.back()),
               human_bytes(point.at("allocated").get<std::uint64_t>()),
               with_commas(point.at("files").get<std::uint64_t>()),
               with_commas(point.at("dirs").get<std::uint64_t>()), remark});
  }
  const std::string curve = columns && is_unicode_output() ? curve_of(sizes, *columns) + '\n' : "";
  return curve + table.to_string();
}

std::string exceeded_limit(const scanner::LimitState& state) {
  std::vector<std::string> reasons;
  const scanner::UsageLimit& limit = state.limit;
  if (state.exceeds_bytes())
    reasons.push_back(fmt::format("{} (limit {})", human_bytes(state.bytes), human_bytes(limit.bytes)));
  if (state.exceeds_files())
    reasons.push_back(fmt::format("{} files (limit {})", with_commas(state.files), with_commas(limit.files)));
  if (state.exceeds_growth()) {
    reasons.push_back(fmt::format("grew {} in 24 h (limit {})",
                                  human_bytes(static_cast<std::uint64_t>(*state.growth_per_day)),
                                  human_bytes(limit.growth_per_day)));
  }
  if (reasons.empty()) return {};
  return fmt::format("{} exceeds its limit{}: {}", path_text(limit.path),
                     limit.of_cluster ? " in the cluster" : "", fmt::join(reasons, ", "));
}

std::string exceeded_limits(const std::vector<scanner::LimitState>& states, std::string_view path,
                            bool of_cluster) {
  std::string lines;
  for (const scanner::LimitState& state : states) {
    const std::string_view limited = state.limit.path;
    const bool is_related = is_within(limited, path) || is_within(path, limited);
    if (state.limit.of_cluster == of_cluster && is_related && state.is_exceeded())
      lines += exceeded_limit(state) + '\n';
  }
  return lines;
}

}  // namespace spoor::cli
