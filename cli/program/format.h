// Human-readable numbers, and output of text.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::cli {

// "1,234,567"
std::string with_commas(std::uint64_t number);

// "1 drive", "1,200 drives"
std::string counted(std::uint64_t number, std::string_view noun);

// "12 to 19", or "19" for a span of one cycle.
std::string span_text(const std::string& first, const std::string& last);

// "512 B", "1.2 MiB": at most four digits.
std::string human_bytes(std::uint64_t bytes);

// "+1.2 MiB", "-512 B", "0 B"
std::string human_growth(std::int64_t bytes);

// "12 ms", "3.4 s", "5 min", "2 h 10 min", "3 d 4 h".
std::string human_duration(std::chrono::nanoseconds time);

// "0.12 %"
std::string percent(double share);

// A logical path as it is printed: "(all)" for the root.
std::string path_text(std::string_view path);

// Prints human-readable text of any number of lines to standard output; escapes control characters. The
// caller escapes line breaks in names from outside with base::printable(). On a terminal, without NO_COLOR,
// lines that begin as an error or a warning do have a colour.
void print_text(std::string_view text);

// Prints a message of this program to standard error; escapes control characters.
void print_error(std::string_view message);

// Prints machine-readable output unchanged.
void print_exact(std::string_view text);

// Prints JSON and a line break; replaces bytes that are not UTF-8. With -1 it is a single line.
void print_json(const nlohmann::ordered_json& json, int indent = 2);

// Returns the string in `value`, or `other` if it is not a string, such as null.
std::string text_or(const nlohmann::ordered_json& value, const std::string& other);

// Columns as wide as their content. The first column and those in `left` are left-aligned, the others
// right-aligned. Control characters in cells are escaped.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::vector<std::size_t> left = {});
  void add(std::vector<std::string> row);
  std::string to_string() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> left_;
};

}  // namespace spoor::cli
