#include <fmt/format.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/format.h"
#include "cli/setup_cluster.h"
#include "config/load.h"

namespace spoor::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::size_t token_bytes = 32;

void set_up(SetupOptions options, const NodeFiles& files, const GlobalOptions& global) {
  check_new(options, files);
  options.tls = options.tls || !options.peers.empty();
  SharedSettings common{options.cluster, {}, nullptr};
  if (!options.tls && !options.address.empty())
    throw Failure{exit_usage, "--address has no effect without --tls or --peer"};
  if (options.tls) {
    check_reachable(options.address);
    for (const std::string& peer : options.peers) add_once(common.peers, peer_url(peer));
  }
  const ordered_json json = checked_config(options, files, common, global);
  options.name = json.at("node").at("name").get<std::string>();
  if (options.tls) {
    // The configuration comes last: it is what says that a node has been set up.
    const auto now = base::SystemClock().wall_now();
    // Another authority would shut out the nodes that have joined.
    const KeyAndCertificate authority =
        fs::exists(files.ca_key) ? read_authority(files) : make_authority(options.cluster, now);
    const std::string key = make_key();
    const std::string certificate =
        or_fail(issue(authority, make_request(key), {options.name, options.address}, now));
    or_fail(install_file(files.ca_key, authority.key, Readers::root));
    install_certificate(files, key, {{"authority", authority.certificate}, {"certificate", certificate}});
  }
  write_node(options, files, json);
  if (options.tls) print_text("for each other node: spoor setup --invite\n");
}

void add_peer(const std::string& peer, const NodeFiles& files) {
  or_fail(list_peer(files, peer_url(peer)));
  reload_daemon(files);
}

// Prints the new token, of which the configuration has the hash.
void add_token(const std::string& name_and_role, const NodeFiles& files, const GlobalOptions& global) {
  const auto colon = name_and_role.find(':');
  if (colon == std::string::npos)
    throw Failure{exit_usage, "--add-token: expected NAME:ROLE, such as page:read; see spoor-setup(1)"};
  const std::string name = name_and_role.substr(0, colon);
  const auto known = or_fail(global.load_config(), exit_usage).auth.tokens;
  if (std::ranges::find(known, name, &config::Token::name) != known.end()) {
    throw Failure{exit_usage,
                  fmt::format("there is a token '{}': remove it from auth.tokens, or give another name",
                              base::printable(name))};
  }
  std::array<unsigned char, token_bytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) throw std::bad_alloc();
  const std::string token = fmt::format("{:02x}", fmt::join(bytes, ""));
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  const ordered_json entry = {{"name", name},
                              {"role", name_and_role.substr(colon + 1)},
                              {"sha256", fmt::format("{:02x}", fmt::join(digest, ""))}};
  or_fail(edit_config(files.config, fmt::format("{} to auth.tokens, for the token {},", entry.dump(), token),
                      [&](ordered_json& json) { json["auth"]["tokens"].push_back(entry); }),
          exit_usage);
  if (known.empty()) print_error("from now on, clients at a loopback address need a token, also to mark");
  reload_daemon(files);
  print_text(token + '\n');
}

void run_setup(const SetupOptions& options, const GlobalOptions& global) {
  const NodeFiles files(fs::absolute(global.config_file.value_or(fs::path(config::default_file))));
  std::error_code error;
  fs::create_directories(files.config.parent_path(), error);
  if (::access(files.config.parent_path().c_str(), W_OK) != 0) {
    throw Failure{exit_failed, fmt::format("cannot write to {}: run this as root",
                                           base::printable(files.config.parent_path().native()))};
  }
  if (options.renew) return renew(options, files, global);
  if (options.invite) return invite_node(options, files, global);
  if (!options.join.empty()) return join_cluster(options, files, global);
  if (!options.add_peer.empty()) return add_peer(options.add_peer, files);
  if (!options.add_token.empty()) return add_token(options.add_token, files, global);
  set_up(options, files, global);
}

// What each use of the command has no use for would be ignored in silence.
void refuse_other_options(const CLI::App& command) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> uses = {
      {"--renew", {"--join", "--token", "--address"}},
      {"--invite", {"--address"}},
      {"--join", {"--token", "--name", "--drive", "--address", "--no-watch", "--no-start", "--force"}},
      {"--add-peer", {}},
      {"--add-token", {}},
      {"",
       {"--name", "--cluster", "--drive", "--tls", "--address", "--peer", "--no-watch", "--no-start",
        "--force"}},
  };
  const auto use = std::ranges::find_if(
      uses, [&](const auto& each) { return each.first.empty() || command.count(each.first) > 0; });
  for (const CLI::Option* const option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || name == use->first ||
        std::ranges::find(use->second, name) != use->second.end())
      continue;
    throw Failure{exit_usage, fmt::format("{} has no effect {}", name,
                                          use->first.empty() ? "without --join" : "with " + use->first)};
  }
}

}  // namespace

void add_setup_command(CLI::App& program, const GlobalOptions& global) {
  CLI::App* command =
      program.add_subcommand("setup", "Makes this machine a node: configuration, certificates, units");
  auto options = std::make_shared<SetupOptions>();
  command->add_option("--name", options->name, "Name of the node (default: the host name)")
      ->type_name("NAME");
  command->add_option("--drive", options->drives, "A directory with data; repeatable")
      ->type_name("DIRECTORY")
      ->allow_extra_args(false);
  command->add_option("--cluster", options->cluster, "Name of the cluster (default: default)")
      ->type_name("NAME");
  command->add_flag("--tls", options->tls, "Makes a certificate authority, so that other nodes can join");
  command
      ->add_option("--address", options->address,
                   "The IP address at which other nodes reach this one (with --join: that of the connection)")
      ->type_name("IP");
  command
      ->add_option("--peer", options->peers, "Address of a node that will join; includes --tls; repeatable")
      ->type_name("ADDRESS")
      ->allow_extra_args(false);
  command->add_flag("--no-watch", options->no_watch,
                    "Without spoor-watch: the writers mark what they change");
  command->add_flag("--no-start", options->no_start, "Starts no units");
  command->add_flag("--force", options->force, "Replaces a configuration, and keeps it as FILE.old");
  command->add_flag("--invite", options->invite, "Prints a token, and waits for a node that joins with it");
  command->add_option("--join", options->join, "Joins the cluster of the node that invites this one")
      ->type_name("HOST");
  command->add_option("--token", options->token, "The token of --invite (default: it is asked for)")
      ->type_name("TOKEN");
  command->add_flag("--renew", options->renew, "Makes a new certificate for this node, alone or with --join");
  command->add_option("--add-peer", options->add_peer, "Adds a node to peers.static")->type_name("ADDRESS");
  command
      ->add_option("--add-token", options->add_token,
                   "Adds a token, and prints it: mark, read, peer or admin")
      ->type_name("NAME:ROLE");
  command->callback([command, options, &global] {
    refuse_url(global, "setup");
    refuse_empty_values(*command);
    refuse_other_options(*command);
    run_setup(*options, global);
  });
}

}  // namespace spoor::cli
