#include "tests/bench/scan_node.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "scanner/database/sqlite.h"
#include "scanner/store/directory_names.h"
#include "tests/support/loopback.h"

namespace spoor::bench {
namespace {

namespace fs = std::filesystem;

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double memory_mib(const rusage& usage) { return static_cast<double>(usage.ru_maxrss) / 1024; }

Cost cost_of(const support::CommandResult& result) {
  return {result.took.count(), seconds(result.usage.ru_utime) + seconds(result.usage.ru_stime),
          memory_mib(result.usage), 0};
}

// The database, and what SQLite keeps beside it.
std::vector<fs::path> database_files(const fs::path& data_dir) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(data_dir)) {
    if (entry.path().filename().native().starts_with("scan.db")) files.push_back(entry.path());
  }
  return files;
}

support::CommandResult run_well(const std::vector<std::string>& command, const std::string& input = {}) {
  auto result = support::run_command(command, input);
  if (result.code == 0) return result;
  throw std::runtime_error(
      fmt::format("{} ended with {}: {}", fmt::join(command, " "), result.code, result.err));
}

}  // namespace

Cost cost_of(const std::vector<std::string>& command) {
  // The names of a million files would fill this process's memory.
  std::vector<std::string> silent{"sh", "-c", "exec \"$@\" >/dev/null", "sh"};
  silent.insert(silent.end(), command.begin(), command.end());
  return cost_of(run_well(silent));
}

double own_memory_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return memory_mib(usage);
}

double DatabaseFigures::bytes_each() const {
  return static_cast<double>(bytes) / static_cast<double>(directories);
}

double DatabaseFigures::bytes_each_beyond_names() const {
  return static_cast<double>(bytes - name_bytes) / static_cast<double>(directories);
}

ScanNode::ScanNode(fs::path folder, const fs::path& drive) : folder_(std::move(folder)) {
  fs::remove_all(drive / ".spoor");
  fs::remove_all(folder_);
  fs::create_directories(folder_ / "data");
  const fs::path config = folder_ / "spoor.json";
  // Each scan opens a cycle, and so reads what was marked since the last one and nothing else; no audit.
  std::ofstream(config) << fmt::format(
      R"({{"node":{{"name":"bench","data_dir":"{}"}},"drives":["{}"],)"
      R"("scan":{{"min_cycle_age":"0s","audit_period":"0s"}},"listen":[{{"address":"{}","port":0,"insecure":true}}]}})",
      (folder_ / "data").native(), drive.native(), support::own_loopback());
  daemon_ = std::make_unique<support::Daemon>(std::vector<std::string>{SPOORD, "--config", config.native()});
  const std::string at = daemon_->wait_for("listening on http://");
  if (at.empty()) throw std::runtime_error(daemon_->log());
  url_ = "http://" + at;
}

std::vector<std::string> ScanNode::spoor(const std::vector<std::string>& arguments) const {
  std::vector<std::string> command{SPOOR, "--config", (folder_ / "spoor.json").native(), "--url", url_};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

ScanRun ScanNode::scan(Mode mode) const {
  std::vector<std::string> arguments{"scan", "--json"};
  if (mode == Mode::full) arguments.emplace_back("--full");
  const auto result = run_well(spoor(arguments));
  const auto told = nlohmann::json::parse(result.out);
  return {cost_of(result), told.at("dirs_walked"), told.at("dirs_changed")};
}

void ScanNode::mark(const std::vector<std::string>& paths) const {
  run_well(spoor({"mark", "-"}), fmt::format("{}\n", fmt::join(paths, "\n")));
}

void ScanNode::forget_scans() const {
  for (const fs::path& file : database_files(folder_ / "data")) fs::remove(file);
}

DatabaseFigures ScanNode::database() const {
  DatabaseFigures figures;
  for (const fs::path& file : database_files(folder_ / "data")) figures.bytes += fs::file_size(file);
  scanner::SqliteDatabase database(folder_ / "data" / "scan.db", SQLITE_OPEN_READONLY);
  figures.directories = static_cast<std::uint64_t>(database.number("SELECT count(*) FROM directories"));
  scanner::SqliteStatement query(database, "SELECT entries FROM names");
  while (query.step()) {
    const std::string entries = std::string(query.blob(0));
    scanner::NameChunkReader names(entries);
    while (names.next()) figures.name_bytes += names.name().size();
  }
  return figures;
}

}  // namespace spoor::bench
