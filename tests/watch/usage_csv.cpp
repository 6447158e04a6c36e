#include "tests/watch/usage_csv.h"

#include <cstddef>
#include <vector>

namespace spoor::watch {
namespace {

// The records of RFC 4180: a field in quotes may have commas, line breaks and doubled quotes.
std::vector<std::vector<std::string>> read_records(const std::string& text) {
  std::vector<std::vector<std::string>> records(1, std::vector<std::string>(1));
  bool is_quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string& field = records.back().back();
    if (text[at] == '"' && is_quoted && at + 1 < text.size() && text[at + 1] == '"') {
      field += text[at++];
    } else if (text[at] == '"') {
      is_quoted = !is_quoted;
    } else if (text[at] == ',' && !is_quoted) {
      records.back().emplace_back();
    } else if (text[at] == '\n' && !is_quoted) {
      records.emplace_back(1);
    } else if (text[at] != '\r' || is_quoted) {
      field += text[at];
    }
  }
  records.pop_back();  // what follows the last line break
  return records;
}

}  // namespace

std::map<std::string, support::TreeTotals> read_usage_csv(const std::string& text) {
  // path,depth,files,dirs,bytes,...
  std::map<std::string, support::TreeTotals> totals;
  auto records = read_records(text);
  for (std::size_t line = 1; line < records.size(); ++line) {
    const auto& record = records[line];
    if (record.size() < 5) continue;
    totals[record[0]] = {std::stoull(record[2]), std::stoull(record[3]), std::stoull(record[4])};
  }
  return totals;
}

}  // namespace spoor::watch
