#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "cli/doctor.h"
#include "cli/program/format.h"

namespace spoor::cli {
namespace {

constexpr std::size_t text_bytes_max = 1'000;
constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

std::vector<Check> all_checks() {
  std::vector<Check> checks;
  for (const auto& some : {file_checks(), daemon_checks(), cluster_checks()})
    checks.insert(checks.end(), some.begin(), some.end());
  return checks;
}

std::string_view name_of(Severity severity) { return severity == Severity::error ? "error" : "warning"; }

// A line for each reason.
std::string not_checked_text(const Examination& examination) {
  std::map<std::string, std::string> checks_by_reason;
  for (const auto& [check, reason] : examination.not_checked) {
    std::string& names = checks_by_reason[reason];
    names += names.empty() ? check : ", " + check;
  }
  std::string text;
  for (const auto& [reason, names] : checks_by_reason)
    text += fmt::format("not checked: {}: {}\n", names, reason);
  return text;
}

}  // namespace

void Findings::add(Severity severity, std::string_view what, std::string_view why, std::string_view fix) {
  examination_.problems.push_back({check_, severity, base::printable(what, text_bytes_max),
                                   base::printable(why, text_bytes_max), base::printable(fix, all)});
}

void Findings::not_checked(std::string_view reason) {
  examination_.not_checked.emplace_back(check_, base::printable(reason, text_bytes_max));
}

bool Examination::is_whole() const { return checks.size() == all_checks().size(); }

Examination examine(const Facts& facts) {
  Examination examination;
  for (const Check& check : all_checks()) {
    Findings findings(check.name, examination);
    if (check.needs_status && !facts.daemon.status.is_ok()) {
      findings.not_checked("the daemon gives no status");
      continue;
    }
    try {
      check.run(facts, findings);
      examination.checks.emplace_back(check.name);
    } catch (const nlohmann::json::exception& error) {
      findings.not_checked(fmt::format("the daemon's response is not of the expected form: {}",
                                       base::printable(error.what())));
    }
  }
  return examination;
}

std::string examination_text(const Examination& examination) {
  std::string text;
  std::size_t errors = 0;
  for (const Problem& problem : examination.problems) {
    if (problem.severity == Severity::error) ++errors;
    text += fmt::format("{:<7}  {}: {}\n         why: {}\n         fix: {}\n", name_of(problem.severity),
                        problem.check, problem.what, problem.why, problem.fix);
  }
  text += not_checked_text(examination);
  if (examination.problems.empty()) {
    if (examination.is_whole()) return text + "no problem found\n";
    const std::size_t count = all_checks().size();
    return text + fmt::format("no problem found, but {} of {} checks did not run\n",
                              count - examination.checks.size(), count);
  }
  return text + fmt::format("{}, {}\n", counted(errors, "error"),
                            counted(examination.problems.size() - errors, "warning"));
}

nlohmann::ordered_json examination_json(const Examination& examination) {
  auto problems = nlohmann::ordered_json::array();
  for (const Problem& problem : examination.problems) {
    problems.push_back({{"check", problem.check},
                        {"severity", name_of(problem.severity)},
                        {"what", problem.what},
                        {"why", problem.why},
                        {"fix", problem.fix}});
  }
  auto not_checked = nlohmann::ordered_json::array();
  for (const auto& [check, reason] : examination.not_checked)
    not_checked.push_back({{"check", check}, {"reason", reason}});
  return {{"problems", std::move(problems)},
          {"checks", examination.checks},
          {"not_checked", std::move(not_checked)}};
}

}  // namespace spoor::cli
