#pragma once

#include <fmt/core.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/endpoint.h"
#include "base/error.h"
#include "config/config.h"
#include "peer/http/credentials.h"
#include "scanner/store/usage_database.h"

namespace spoor::cli {

// The exit codes of `spoor` (docs/cli.md).
enum ExitCode : int {
  exit_done = 0,
  exit_failed = 1,
  exit_usage = 2,          // wrong usage or configuration
  exit_in_part = 3,        // a peer or a directory was left for the next scan
  exit_start_over = 4,     // the changes since then are not kept: copy everything once
  exit_scan_running = 75,  // EX_TEMPFAIL: another scan of this node is running
};

// Thrown by a command to end it: main() prints the message and returns the exit code.
struct Failure {
  int code = exit_failed;
  std::string message;
};

// Throws a Failure with a message of this format.
template <class... Args>
[[noreturn]] void throw_failure(int code, fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{code, fmt::format(format, std::forward<Args>(args)...)};
}

// Returns the value, or throws a Failure with the message of the error.
template <class T>
T or_fail(base::Result<T> result, int code = exit_failed) {
  if (!result) throw Failure{code, result.error().message};
  return *std::move(result);
}
inline void or_fail(const base::Result<>& result, int code = exit_failed) {
  if (!result) throw Failure{code, result.error().message};
}

// Of what a user or another machine has given (std::errc::invalid_argument).
inline base::Error invalid(const std::string& why) {
  return {std::make_error_code(std::errc::invalid_argument), why};
}

// The options that every command has.
struct GlobalOptions {
  std::optional<std::filesystem::path> config_file;
  std::vector<std::string> overrides;
  std::optional<std::string> url;
  std::filesystem::path token_file;  // empty: peers.token_file
  std::filesystem::path ca;          // empty: peers.tls.ca

  base::Result<config::Config> load_config() const;

  // The endpoint of the local daemon: --url, or else that of the configuration.
  base::Result<base::Endpoint> own_endpoint() const;

  // The credentials for the daemon there: --token-file and --ca, or else those of the configuration. For a
  // Unix socket, where the kernel identifies the user, only --token-file. With a configuration that can't be
  // read, there are none, and a refused request has that as its reason.
  base::Result<peer::Credentials> own_credentials(const base::Endpoint& endpoint) const;
};

// The credentials for peers.
base::Result<peer::Credentials> peer_credentials(const config::Config::Peers& peers);

// Whether this user may use `path` in this way (access(2)); true if that is unknown.
bool is_permitted(const std::filesystem::path& path, int mode);

// How a user that may not use `path`, a socket or a file of the daemon, gets there: "; join the group ...".
std::string access_advice(std::filesystem::path path);

// Fails if this user may not read `file`.
base::Result<> check_readable(const std::filesystem::path& file);

// The database of the last scan, to read. Throws a Failure.
scanner::UsageDatabase open_database(const config::Config& config);

// Throws a Failure if --url is set, for a command that reads files of this machine.
void refuse_url(const GlobalOptions& global, std::string_view command);

// Prints "spoor: MESSAGE" to standard error and returns `code`.
int fail(int code, std::string_view message);

}  // namespace spoor::cli
