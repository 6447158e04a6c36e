#include "cli/program/options.h"

#include <fmt/core.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "cli/program/commands.h"
#include "cli/program/format.h"
#include "config/derived.h"
#include "config/load.h"
#include "config/secret_file.h"

namespace spoor::cli {

base::Result<config::Config> GlobalOptions::load_config() const {
  return config::load(config_file, overrides);
}

base::Result<base::Endpoint> GlobalOptions::own_endpoint() const {
  if (url) return base::parse_endpoint(*url);
  const auto config = load_config();
  if (!config) return config.error();
  return config::own_endpoint(*config);
}

base::Result<peer::Credentials> GlobalOptions::own_credentials(const base::Endpoint& endpoint) const {
  config::Config::Peers peers;
  const auto config = load_config();
  if (config && !endpoint.is_unix()) peers = config->peers;
  if (!token_file.empty()) peers.token_file = token_file;
  if (!ca.empty() && !endpoint.is_unix()) {
    if (!peers.tls) peers.tls.emplace();
    peers.tls->ca = ca;
  }
  auto credentials = peer_credentials(peers);
  if (!credentials || config || endpoint.is_unix() || !token_file.empty()) return credentials;
  const auto readable = check_readable(config_file.value_or(config::default_file));
  credentials->absence =
      fmt::format("it requires a token, and none was sent: {}; or give a token by --token-file",
                  readable ? config.error().message : readable.error().message);
  return credentials;
}

base::Result<peer::Credentials> peer_credentials(const config::Config::Peers& peers) {
  const auto secrets = config::peer_secrets(peers);
  if (!secrets) return secrets.error();
  return peer::make_credentials(secrets->secret, secrets->tls);
}

bool is_permitted(const std::filesystem::path& path, int mode) {
  return ::access(path.c_str(), mode) == 0 || errno != EACCES;
}

std::string access_advice(std::filesystem::path path) {
  struct stat found{};
  while (::stat(path.c_str(), &found) != 0 && path.has_relative_path()) path = path.parent_path();
  const group* const entry = found.st_gid == 0 ? nullptr : ::getgrgid(found.st_gid);
  if (entry == nullptr || ::group_member(found.st_gid) != 0) return "; run it as root";
  return fmt::format("; run it as root, or join the group {0}: usermod -aG {0} USER, and log in again",
                     entry->gr_name);
}

base::Result<> check_readable(const std::filesystem::path& file) {
  if (is_permitted(file, R_OK)) return {};
  return base::Error(std::make_error_code(std::errc::permission_denied),
                     fmt::format("cannot read {}: permission denied{}", file.native(), access_advice(file)));
}

scanner::UsageDatabase open_database(const config::Config& config) {
  const auto file = scanner::UsageDatabase::file_in(config.node.data_dir);
  or_fail(check_readable(file));
  return or_fail(scanner::UsageDatabase::open_read_only(file));
}

void refuse_url(const GlobalOptions& global, std::string_view command) {
  if (!global.url) return;
  throw_failure(exit_usage, "--url: 'spoor {}' does not ask a daemon: run it on that machine, without --url",
                command);
}

void refuse_empty_values(const CLI::App& command) {
  for (const CLI::Option* const option : command.get_options()) {
    if (option->get_positional() || option->count() == 0) continue;
    for (const std::string& value : option->results()) {
      if (value.empty()) throw_failure(exit_usage, "{}: its value is empty", option->get_name());
    }
  }
}

int fail(int code, std::string_view message) {
  print_error(message);
  return code;
}

}  // namespace spoor::cli
