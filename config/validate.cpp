#include "config/validate.h"

#include <utility>

#include "config/check.h"

namespace spoor::config {

Problems find_problems(const Config& config) {
  Problems problems;
  check_names_and_paths(config, problems);
  check_ranges(config, problems);
  check_endpoints(config, problems);
  check_dns(config, problems);
  check_etcd(config, problems);
  check_auth(config, problems);
  return problems;
}

std::vector<std::string> validate(const Config& config) {
  std::vector<std::string> texts;
  for (Problem& problem : find_problems(config)) texts.push_back(std::move(problem.text));
  return texts;
}

}  // namespace spoor::config
