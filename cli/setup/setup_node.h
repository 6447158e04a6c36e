// What `spoor setup` does on this machine: questions, the configuration, the drives, the units.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/endpoint.h"
#include "cli/program/options.h"
#include "cli/setup/node_files.h"

namespace spoor::cli {

struct SetupOptions {
  std::string name;
  std::string cluster = "default";
  std::vector<std::string> drives;
  std::vector<std::string> peers;
  std::string address;  // the IP address at which other nodes reach this one
  bool tls = false;
  bool no_watch = false;
  bool no_start = false;
  bool force = false;
  bool invite = false;
  bool renew = false;
  std::string join;
  std::string token;
  std::string add_peer;
  std::string add_token;
};

// What the nodes of a cluster have in common.
struct SharedSettings {
  std::string cluster;
  std::vector<std::string> peers;
  nlohmann::ordered_json rules;  // "namespace"; null: the default
};

// Each of these may throw a Failure.

// Asks on standard output, and reads a line.
std::string ask(const std::string& question, const std::string& proposed);

std::string read_text(const std::filesystem::path& file);

// Of an IP address. Of an address, with or without a port, or a URL.
std::string url_of(const std::string& address, std::uint16_t port = base::spoor_port);
std::string peer_url(const std::string& peer);

void add_once(std::vector<std::string>& urls, const std::string& url);

// Reloads the daemon of the units, if it runs; otherwise prints what to do.
void reload_daemon(const NodeFiles& files);

// Completes the options. Fails, before anything is written or sent, if this node cannot be set up.
void check_new(SetupOptions& options, const NodeFiles& files);

// Fails if it is no address of this machine by which others could reach it.
void check_reachable(const std::string& address);

// The configuration, which is valid, and for whose drives .spoor is made: to be called before any other file
// is written, and before a token is used.
nlohmann::ordered_json checked_config(const SetupOptions& options, const NodeFiles& files,
                                      const SharedSettings& common, const GlobalOptions& global);

// Adds the URL to peers.static, once; only this returns its error.
base::Result<> list_peer(const NodeFiles& files, const std::string& url);

// Writes the configuration, and starts the units.
void write_node(const SetupOptions& options, const NodeFiles& files, const nlohmann::ordered_json& json);

}  // namespace spoor::cli
