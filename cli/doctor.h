// `spoor doctor`: the facts about a node, and what is wrong by them, why that matters, and what fixes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/data_dir.h"
#include "cli/program/options.h"
#include "cli/setup/node_files.h"
#include "config/config.h"
#include "scanner/feed/publish_record.h"

namespace spoor::cli {

// In node.data_dir. The daemon writes it at each start: its owner is the user of the daemon, unless all of
// node.data_dir was given to root.
inline constexpr const char* instance_file = base::data_dir::instance;

struct FileFacts {
  int error = 0;  // of stat(2); if not 0, the rest is not known
  bool is_directory = false;
  std::uint32_t user = 0;
  std::uint32_t mode = 0;  // the permission bits
};

struct SpaceFacts {
  int error = 0;                 // of statvfs(2)
  std::uint64_t bytes_free = 0;  // for users other than root
  std::uint64_t inodes = 0;      // 0: the file system has no fixed number
  std::uint64_t inodes_free = 0;
};

// What is at the path of a drive, compared with the identity in drives.json.
enum class DriveMatch { unknown, known, fresh, missing, foreign };

struct DriveFacts {
  FileFacts root = {};
  FileFacts spoor_directory = {};
  SpaceFacts space = {};
  DriveMatch match = DriveMatch::unknown;
  bool is_mount_point = false;
  bool is_in_fstab = false;
};

struct DataDirFacts {
  FileFacts directory = {};
  SpaceFacts space = {};
  int list_error = 0;                           // why `files` is incomplete
  std::map<std::string, FileFacts> files = {};  // by name; the first of them if there are very many
};

// A file that a setting names.
struct SecretFacts {
  std::string setting;
  std::filesystem::path path;
  FileFacts file;
};

struct CertificateFacts {
  std::string setting;
  std::filesystem::path path = {};
  std::string error = {};                          // why it can't be used
  std::optional<base::WallTime> valid_until = {};  // nothing: it can't be used
};

// A response of the own daemon.
struct Answer {
  unsigned status = 0;     // 0: no response
  std::string error = {};  // why there is no success
  nlohmann::ordered_json body = {};

  bool is_ok() const { return error.empty() && body.is_object(); }
};

struct DaemonFacts {
  std::string endpoint = {};
  bool is_down = false;    // else a failure may be due to the rights of this user
  std::string error = {};  // why it is down, or can't be asked
  Answer ready = {};
  Answer status = {};
  Answer drives = {};
  Answer scans = {};
};

struct PeerFacts {
  std::string url;
  std::string node = {};   // empty: not known
  std::string error = {};  // why it does not respond
  bool is_down = false;
  bool is_of_other_cluster = false;
  std::string not_asked = {};  // why some of the rest is not known
  std::optional<std::uint64_t> run = {};
  std::optional<std::uint64_t> rules_digest = {};
  std::string version = {};
  std::map<std::string, std::string> peers = {};         // its peers that respond: the URL of each node
  std::optional<std::uint64_t> accepted = {};            // the marks since its start
  std::optional<std::chrono::seconds> clock_ahead = {};  // of the clock of this node
};

struct Facts {
  config::Config config;
  std::string config_file;
  std::string spoor;                   // the command `spoor` with the options of this call, for a shell
  base::WallTime now{};                // after all responses
  std::uint64_t own_rules_digest = 0;  // of the configuration
  bool is_daemon_user = false;         // this user runs the daemon, too
  std::optional<std::uint32_t> service_user_id = {};

  std::optional<std::vector<std::string>> overlaps;  // nothing: a drive hangs
  bool is_set_up = true;                             // the configuration is not that of the package
  std::vector<std::string> config_errors;
  std::vector<std::string> not_checked;  // why some settings could not be
  std::vector<SecretFacts> secrets;
  std::vector<CertificateFacts> certificates;
  bool is_watch_enabled = false;                  // its unit starts with the machine
  FileFacts config_path = {};                     // config_file
  std::optional<scanner::PublishRecord> publish;  // nothing: spoor-publish never ran, or it can't be read
  std::optional<DataDirFacts> data_dir;           // nothing: it hangs
  std::vector<std::optional<DriveFacts>> drives;  // as in the configuration; nothing: it hangs
  DaemonFacts daemon;
  std::optional<std::uint64_t> own_run;           // of the daemon
  std::optional<std::uint64_t> own_daemon_rules;  // with which the daemon runs
  std::vector<PeerFacts> peers;
};

// These complete the facts, from `config` on, in this order. Each takes some seconds at most, whatever hangs,
// and writes nothing.

// Reads the drives and node.data_dir, and the files that settings name (doctor_files.cpp). The process must
// have one thread only.
void collect_files(Facts& facts);
void collect_settings(Facts& facts);

// Sends requests to the daemon and then to the peers (doctor_requests.cpp). Fails if the configuration names
// no daemon.
base::Result<> ask_daemon(const GlobalOptions& global, Facts& facts);
void ask_peers(const GlobalOptions& global, Facts& facts);

// `text` as one word of a shell, without control characters.
std::string shell_quoted(std::string_view text);

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

// Judges the facts. No I/O.
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

struct Check {
  std::string_view name;
  bool needs_status;                                    // of the daemon
  void (*run)(const Facts& facts, Findings& findings);  // with it, may throw a json::exception
};

// Of files, drives and settings (doctor_file_checks.cpp); of what the daemon responds
// (doctor_daemon_checks.cpp); of the clock and of other nodes (doctor_cluster_checks.cpp).
std::span<const Check> file_checks();
std::span<const Check> daemon_checks();
std::span<const Check> cluster_checks();

}  // namespace spoor::cli
