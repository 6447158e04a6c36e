// A real spoord on loopback with drives and a data_dir of its own.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "peer/http/http_transport.h"
#include "tests/support/loopback.h"
#include "tests/support/process.h"
#include "tests/support/temp_directory.h"

namespace spoor::daemon {

class Spoord {
 public:
  Spoord() {
    std::filesystem::create_directory(directory_ / "drive");
    config_ = {{"node", {{"name", "n1"}, {"data_dir", directory_ / "data"}}},
               {"drives", {directory_ / "drive"}},
               {"listen", {{{"address", support::own_loopback()}, {"port", 0}}}},
               {"limits", {{"threads", 2}}}};  // harder than one, which most other tests have
  }

  void start() { start_by({}); }

  // Started by a program that becomes it in the end, and with sockets that listen already.
  void start_by(std::vector<std::string> command, const std::vector<int>& sockets = {}) {
    write_config();
    command.insert(command.end(), {SPOORD, "--config", config_file()});
    daemon_ = std::make_unique<support::Daemon>(command, sockets);
    url_ = daemon_->wait_for("listening on ");
    ASSERT_FALSE(url_.empty()) << daemon_->log();
  }

  // Without `auth`, a test may send any request over TCP.
  void write_config() {
    nlohmann::json config = config_;
    for (nlohmann::json& listener : config["listen"]) {
      if (listener.contains("address") && !config.contains("auth")) listener["insecure"] = true;
    }
    std::ofstream(config_file()) << config;
  }
  std::string config_file() const { return directory_ / "spoor.json"; }

  // Tokens for all roles, each in a file with the name of its role.
  void give_tokens() {
    nlohmann::json tokens = nlohmann::json::array();
    for (const std::string role : {"mark", "read", "peer", "admin"}) {
      std::ofstream(directory_ / role) << token_of(role) << '\n';
      tokens.push_back({{"name", role}, {"role", role}, {"file", directory_ / role}});
    }
    config_["auth"]["tokens"] = tokens;
  }
  static std::string token_of(const std::string& role) { return "token-for-the-role-" + role; }

  // A run of spoord to its end: with --check, or one that does not start.
  support::CommandResult run_spoord(const std::vector<std::string>& options = {}) const {
    return run({SPOORD, "--config", config_file()}, options);
  }

  // `spoor`, with the URL of the daemon where the command takes one.
  support::CommandResult spoor(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command{SPOOR, "--config", config_file()};
    if (arguments.front() != "changes") command.insert(command.end(), {"--url", url_});
    return run(std::move(command), arguments);
  }

  int stop() {
    daemon_->signal(SIGTERM);
    return daemon_->wait();
  }

  peer::HttpResponse request(const std::string& method, const std::string& target,
                             const std::string& body = {}, const std::string& type = "application/json") {
    peer::HttpTransport transport({.timeout = std::chrono::minutes(2)});  // a busy machine takes its time
    const auto endpoint = base::parse_endpoint(url_).value();
    return peer::exchange(transport, {endpoint, method, target, body.empty() ? "" : type, body}).value();
  }

  nlohmann::json get(const std::string& target) { return nlohmann::json::parse(request("GET", target).body); }

  std::uint16_t port() const { return base::parse_endpoint(url_).value().port; }

  static support::CommandResult run(std::vector<std::string> command, const std::vector<std::string>& more) {
    command.insert(command.end(), more.begin(), more.end());
    return support::run_command(command);
  }

  support::TempDirectory directory_;
  nlohmann::json config_;
  std::unique_ptr<support::Daemon> daemon_;
  std::string url_;
};

class SpoordTest : public testing::Test, protected Spoord {};

}  // namespace spoor::daemon
