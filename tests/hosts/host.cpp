#include "tests/hosts/host.h"

#include <csignal>
#include <fstream>
#include <stdexcept>

namespace spoor::hosts {

namespace fs = std::filesystem;
using nlohmann::json;

Host::Host(const Network& network, std::size_t index, std::size_t hosts, const fs::path& directory,
           std::size_t drives, support::Random& random)
    : network_(network),
      index_(index),
      name_("n" + std::to_string(index)),
      config_(directory / (name_ + ".json")),
      data_dir_(directory / (name_ + "-data")),
      socket_(directory / (name_ + ".sock")),
      random_(random.fork()) {
  for (std::size_t drive = 0; drive < drives; ++drive) {
    drives_.push_back(directory / (name_ + "-drive" + std::to_string(drive)));
    fs::create_directory(drives_.back());
    writers_.emplace_back(random_, drives_.back()).fill(40);
  }
  write_config(hosts);
}

void Host::write_config(std::size_t hosts) const {
  json peers = json::array();
  for (std::size_t other = 0; other < hosts; ++other) {
    if (other != index_) peers.push_back("http://" + Network::address(other) + ":7420");
  }
  const json config{
      {"node", {{"name", name_}, {"cluster", "hosts"}, {"data_dir", data_dir_}}},
      {"drives", drives_},
      {"listen",
       {{{"address", Network::address(index_)}, {"port", 7420}, {"insecure", true}}, {{"unix", socket_}}}},
      {"peers", {{"static", peers}, {"timeout", "1s"}}},
      {"scan", {{"min_cycle_age", "1ms"}}}};
  std::ofstream(config_) << config;
}

void Host::start() {
  daemon_ =
      std::make_unique<support::Daemon>(network_.inside(index_, {SPOORD, "--config", config_.native()}));
  if (daemon_->wait_for("listening on unix:").empty()) {
    throw std::runtime_error("spoord of " + name_ + " did not start:\n" + daemon_->log());
  }
}

int Host::stop() {
  daemon_->signal(SIGTERM);
  return daemon_->wait();
}

void Host::kill() {
  daemon_->signal(SIGKILL);
  daemon_->wait();
}

void Host::lose(Loss loss) {
  for (const auto& entry : fs::directory_iterator(data_dir_)) fs::remove_all(entry.path());
  for (const fs::path& drive : drives_) {
    if (loss == Loss::data_dir_and_all_on_drives) fs::remove_all(drive / ".spoor");
    if (loss == Loss::data_dir_and_snapshots) fs::remove(drive / ".spoor/.tracker.bin");
  }
}

support::CommandResult Host::spoor(std::vector<std::string> arguments, const std::string& input) const {
  std::vector<std::string> command{SPOOR, "--config", config_.native()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return support::run_command(network_.inside(index_, command), input);
}

bool Host::has_scan() const {
  std::error_code failure;
  const auto bytes = std::filesystem::file_size(data_dir_ / "scan.db", failure);
  if (failure || bytes == 0) return false;  // a scan was killed while it created the file
  const auto result = spoor({"scans", "--json"});
  const auto scans = json::parse(result.out, nullptr, false);
  if (!scans.is_object()) throw std::runtime_error("spoor scans of " + name_ + ": " + result.err);
  return !scans["scans"].empty();
}

support::TreeTotals Host::stored_totals() const {
  const auto result = spoor({"usage", "--json"});
  const auto usage = json::parse(result.out, nullptr, false);
  if (!usage.is_object()) throw std::runtime_error("spoor usage of " + name_ + ": " + result.err);
  return {usage["files"], usage["dirs"], usage["bytes"]};
}

}  // namespace spoor::hosts
