// Judges the facts about a node: what is wrong, why it matters, and what fixes it. No I/O.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/doctor_facts.h"

namespace spoor::cli {

enum class Severity { warning, error };

// All of it is printable.
struct Problem {
  std::string check;
  Severity severity = Severity::error;
  std::string what;
  std::string why;
  std::string fix;  // a command; or what to do, and then a command
};

struct Examination {
  std::vector<Problem> problems;
  std::vector<std::string> checks;                               // those that ran
  std::vector<std::pair<std::string, std::string>> not_checked;  // a check or a part of it, and the reason

  bool is_whole() const;  // whether all checks ran
};

Examination examine(const Facts& facts);

std::string examination_text(const Examination& examination);
nlohmann::ordered_json examination_json(const Examination& examination);

// The problems that one check finds.
class Findings {
 public:
  Findings(std::string_view check, Examination& examination) : check_(check), examination_(examination) {}

  void error(std::string_view what, std::string_view why, std::string_view fix) {
    add(Severity::error, what, why, fix);
  }
  void warning(std::string_view what, std::string_view why, std::string_view fix) {
    add(Severity::warning, what, why, fix);
  }
  void add(Severity severity, std::string_view what, std::string_view why, std::string_view fix);
  void not_checked(std::string_view reason);

 private:
  const std::string check_;
  Examination& examination_;
};

// The names of files in node.data_dir that the daemon or a scan opens, by the other user whose they are.
std::map<std::uint32_t, std::vector<std::string>> files_of_others(const Facts& facts);

using Check = void (*)(const Facts& facts, Findings& findings);

// Of files, drives and settings (doctor_file_checks.cpp).
void check_configuration(const Facts& facts, Findings& findings);
void check_permissions(const Facts& facts, Findings& findings);
void check_secrets(const Facts& facts, Findings& findings);
void check_space(const Facts& facts, Findings& findings);
void check_tls(const Facts& facts, Findings& findings);
void check_drives(const Facts& facts, Findings& findings);
void check_publish(const Facts& facts, Findings& findings);

// Of what the daemon responds (doctor_daemon_checks.cpp). They may throw a json::exception.
void check_daemon(const Facts& facts, Findings& findings);
void check_ready(const Facts& facts, Findings& findings);
void check_journal(const Facts& facts, Findings& findings);
void check_snapshot(const Facts& facts, Findings& findings);
void check_filters(const Facts& facts, Findings& findings);
void check_watch(const Facts& facts, Findings& findings);
void check_marks(const Facts& facts, Findings& findings);
void check_scan(const Facts& facts, Findings& findings);
void check_limits(const Facts& facts, Findings& findings);

// Of the clock and of other nodes (doctor_cluster_checks.cpp). The same.
void check_clock(const Facts& facts, Findings& findings);
void check_peers(const Facts& facts, Findings& findings);
void check_members(const Facts& facts, Findings& findings);
void check_names(const Facts& facts, Findings& findings);
void check_rules(const Facts& facts, Findings& findings);
void check_versions(const Facts& facts, Findings& findings);
void check_etcd(const Facts& facts, Findings& findings);
void check_dns(const Facts& facts, Findings& findings);

}  // namespace spoor::cli
