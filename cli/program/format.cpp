#include "cli/program/format.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/printable.h"

namespace spoor::cli {
namespace {

constexpr std::size_t cell_bytes_max = 4096;

// Beginnings of lines that an operator has to see.
constexpr std::string_view red_lines[] = {"error ",
                                          "  changed without a mark: ", "           marks are NOT "};
constexpr std::string_view yellow_lines[] = {
    "warning ", "partial ", "saturated ", "limit ", "  left for next time: ", "  walked in full: "};

// https://no-color.org
bool is_coloured() {
  const char* const refused = std::getenv("NO_COLOR");
  return (refused == nullptr || *refused == '\0') && ::isatty(STDOUT_FILENO) == 1;
}

std::string coloured(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    const auto begins = [&](std::string_view beginning) { return line.starts_with(beginning); };
    const bool is_red = std::ranges::any_of(red_lines, begins);
    if (is_red || std::ranges::any_of(yellow_lines, begins)) {
      text += fmt::format("\x1b[{}m{}\x1b[0m", is_red ? 31 : 33, line);
    } else {
      text += line;
    }
    if (line.size() < lines.size()) text += '\n';
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
  }
  return text;
}

}  // namespace

std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string counted(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", with_commas(number), noun, number == 1 ? "" : "s");
}

std::string span_text(const std::string& first, const std::string& last) {
  return first == last ? last : first + " to " + last;
}

std::string human_bytes(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 7> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1023.5 && unit + 1 < units.size(); ++unit) value /= 1024;
  if (unit == 0) return fmt::format("{} B", bytes);
  if (bytes == std::numeric_limits<std::uint64_t>::max()) return "16 EiB or more";  // sums saturate here
  return value < 9.95 ? fmt::format("{:.1f} {}", value, units[unit])
                      : fmt::format("{:.0f} {}", value, units[unit]);
}

std::string human_growth(std::int64_t bytes) {
  if (bytes == 0) return human_bytes(0);
  const auto magnitude =
      bytes < 0 ? 0 - static_cast<std::uint64_t>(bytes) : static_cast<std::uint64_t>(bytes);
  return (bytes < 0 ? '-' : '+') + human_bytes(magnitude);
}

std::string human_duration(std::chrono::nanoseconds time) {
  using namespace std::chrono;
  if (time < 1s) return fmt::format("{} ms", duration_cast<milliseconds>(time).count());
  if (time < 1min) return fmt::format("{:.1f} s", duration<double>(time).count());
  if (time < 1h) return fmt::format("{} min", duration_cast<minutes>(time).count());
  const auto whole_hours = duration_cast<hours>(time).count();
  if (time < 24h) return fmt::format("{} h {} min", whole_hours, duration_cast<minutes>(time).count() % 60);
  return fmt::format("{} d {} h", whole_hours / 24, whole_hours % 24);
}

std::string percent(double share) { return fmt::format("{:.2f} %", share * 100); }

void print_text(std::string_view text) {
  const std::string lines = base::printable_lines(text);
  print_exact(is_coloured() ? coloured(lines) : lines);
}

std::string path_text(std::string_view path) { return path.empty() ? "(all)" : base::printable(path); }

void print_error(std::string_view message) {
  const std::string line = fmt::format("spoor: {}\n", base::printable_lines(message));
  std::fwrite(line.data(), 1, line.size(), stderr);  // may fail: the command continues
}

void print_exact(std::string_view text) { fmt::print("{}", text); }

void print_json(const nlohmann::ordered_json& json, int indent) {
  print_exact(json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
}

std::string text_or(const nlohmann::ordered_json& value, const std::string& other) {
  return value.is_string() ? value.get<std::string>() : other;
}

Table::Table(std::vector<std::string> header, std::vector<std::size_t> left)
    : rows_{std::move(header)}, left_(std::move(left)) {
  left_.push_back(0);
}

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = base::printable(cell, cell_bytes_max);
  rows_.push_back(std::move(row));
}

std::string Table::to_string() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t column = 0; column < widths.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t column = 0; column < widths.size(); ++column) {
      const bool is_left = std::find(left_.begin(), left_.end(), column) != left_.end();
      line += is_left ? fmt::format("{:<{}}  ", row[column], widths[column])
                      : fmt::format("{:>{}}  ", row[column], widths[column]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace spoor::cli
