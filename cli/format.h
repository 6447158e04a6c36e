// Figures for people.
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

// "512 B", "1.2 MiB": at most four digits.
std::string human_bytes(std::uint64_t bytes);

// "12 ms", "3.4 s", "5 min", "2 h 10 min", "3 d 4 h".
std::string human_duration(std::chrono::nanoseconds time);

// "0.12 %"
std::string percent(double share);

// Text for people, of any number of lines, to standard output; control characters are escaped. A line break
// that stands in a name from outside has to be escaped by base::printable() before.
void print_text(std::string_view text);

// The same to standard error, as a message of this program.
void print_error(std::string_view message);

// JSON, and what other programs read, as it is.
void print_exact(std::string_view text);

// The text, or the other one where the value is something else, as null is.
std::string text_or(const nlohmann::ordered_json& value, const std::string& other);

// Columns as wide as what is in them; the first one flush left, the others flush right, unless
// `left` names them. Cells are made printable.
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
