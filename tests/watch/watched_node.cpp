#include "tests/watch/watched_node.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <utility>

#include "peer/http/http_transport.h"
#include "tests/watch/eventually.h"

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The form in which a snapshot has the path of a directory: without "./" before and "/" behind.
std::string plain_path(std::string listed) {
  if (listed.starts_with("./")) listed.erase(0, 2);
  if (listed.ends_with('/')) listed.pop_back();
  return listed;
}

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

WatchedNode::WatchedNode(fs::path drive, FdStore* manager, const json& settings)
    : drive_(std::move(drive)), manager_(manager) {
  json all{{"node", {{"name", "n0"}, {"data_dir", directory_ / "data"}}},
           {"drives", json::array({drive_})},
           {"listen", json::array({json{{"unix", socket()}}})},
           {"scan", {{"min_cycle_age", "1ms"}, {"audit_period", "0s"}}},
           {"watch", {{"drives", "all"}, {"timeout", "60s"}}}};
  all.merge_patch(settings);
  std::ofstream(config()) << all;
}

void WatchedNode::start_daemon() {
  const std::vector<std::string> command{SPOORD, "--config", config().native()};
  daemon_ = std::make_unique<support::Daemon>(command);
  ASSERT_FALSE(daemon_->wait_for("listening on unix:").empty()) << daemon_->log();
}

void WatchedNode::start_watch(const std::string& watched) {
  const std::vector<std::string> command{SPOOR_WATCH, "--config", config().native()};
  const std::size_t ready_before = manager_ == nullptr ? 0 : manager_->ready_count();
  watch_ = manager_ == nullptr ? std::make_unique<support::Daemon>(command) : manager_->start(command);
  ASSERT_EQ(watch_->wait_for("watching ").substr(0, 6), watched) << watch_->log();
  if (manager_ == nullptr) return;
  ASSERT_TRUE(eventually([&] { return manager_->ready_count() > ready_before; })) << watch_->log();
}

int WatchedNode::stop_watch() {
  watch_->signal(SIGTERM);
  return watch_->wait();
}

int WatchedNode::stop_daemon() {
  daemon_->signal(SIGTERM);
  return daemon_->wait();
}

void WatchedNode::kill_watch() {
  watch_->signal(SIGKILL);
  EXPECT_EQ(watch_->wait(), 128 + SIGKILL) << watch_->log();
}

void WatchedNode::kill_daemon() {
  daemon_->signal(SIGKILL);
  EXPECT_EQ(daemon_->wait(), 128 + SIGKILL) << daemon_->log();
}

support::CommandResult WatchedNode::run_watch(const std::vector<std::string>& arguments,
                                              const std::vector<std::string>& before) const {
  std::vector<std::string> command = before;
  command.insert(command.end(), {SPOOR_WATCH, "--config", config().native()});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return support::run_command(command);
}

peer::DriveSync WatchedNode::synchronise() {
  constexpr std::chrono::seconds timeout{60};
  peer::HttpTransport transport({.timeout = 2 * timeout});
  base::Endpoint endpoint;
  endpoint.unix_path = socket().native();
  const peer::SyncRequest request{
      .cluster = "default", .node = "n0", .drives = {drive_.native()}, .timeout = timeout};
  peer::DriveSync sync;
  EXPECT_TRUE(eventually([&] {
    sync = peer::synchronise(transport, endpoint, request).front();
    return sync.error.empty();
  })) << sync.error
      << watch_->log() << daemon_->log();
  return sync;
}

support::CommandResult WatchedNode::spoor(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), {SPOOR, "--config", config().native()});
  return support::run_command(arguments);
}

json WatchedNode::scan(const std::string& patience) {
  const auto result = run_scan(patience);
  EXPECT_EQ(result.code, 0) << result.err << result.out;
  return json::parse(result.out, nullptr, false);
}

void WatchedNode::scan_while_changing() {
  const auto result = spoor({"scan", "--json"});
  EXPECT_TRUE(result.code == 0 || result.code == 3) << result.code << ' ' << result.err << result.out;
}

std::set<std::string> WatchedNode::changes_since(std::uint64_t scan, bool deleted) {
  std::vector<std::string> arguments{"changes", "--since", std::to_string(scan), "-0"};
  if (deleted) arguments.emplace_back("--deleted");
  const auto result = spoor(arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  std::set<std::string> directories;
  std::istringstream listed(result.out);
  for (std::string path; std::getline(listed, path, '\0');) directories.insert(plain_path(path));
  return directories;
}

support::TreeTotals WatchedNode::usage() {
  const auto result = spoor({"usage", "--json"});
  EXPECT_EQ(result.code, 0) << result.err;
  const auto usage = json::parse(result.out, nullptr, false);
  if (!usage.is_object()) return {};
  return {usage["files"], usage["dirs"], usage["bytes"]};
}

std::map<std::string, support::TreeTotals> WatchedNode::directory_usage() {
  const auto result = spoor({"usage", "--csv", "--depth", "1000"});
  EXPECT_EQ(result.code, 0) << result.err;
  // path,depth,files,dirs,bytes,...
  std::map<std::string, support::TreeTotals> totals;
  const auto records = read_records(result.out);
  for (std::size_t line = 1; line < records.size(); ++line) {
    const auto& record = records[line];
    if (record.size() < 5) continue;
    totals[record[0]] = {std::stoull(record[2]), std::stoull(record[3]), std::stoull(record[4])};
  }
  return totals;
}

json drive_gaps(const json& scan) { return scan.value("drive_gaps", json::array()); }

}  // namespace spoor::watch
