#include "config/validate.h"

#include <utility>

#include "base/directory_overlap.h"
#include "base/printable.h"
#include "config/check.h"

namespace spoor::config {
namespace {

// Enough for two paths and the text around them.
constexpr std::size_t overlap_bytes_max = 10'000;

}  // namespace

Problems find_problems(const Config& config) {
  Problems problems;
  check_names_and_paths(config, problems);
  check_ranges(config, problems);
  check_endpoints(config, problems);
  check_peers_and_auth(config, problems);
  check_publish(config, problems);
  return problems;
}

std::vector<std::string> validate(const Config& config) {
  std::vector<std::string> texts;
  for (Problem& problem : find_problems(config)) texts.push_back(std::move(problem.text));
  return texts;
}

std::vector<std::string> find_drive_overlaps(const Config& config) {
  std::vector<std::string> texts;
  for (const base::DirectoryOverlap& overlap : base::find_overlaps(config.drives)) {
    texts.push_back("drives: " +
                    base::printable(base::overlap_text(overlap, config.drives), overlap_bytes_max));
  }
  return texts;
}

}  // namespace spoor::config
