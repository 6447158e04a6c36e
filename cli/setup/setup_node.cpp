#include "cli/setup/setup_node.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <boost/algorithm/string/split.hpp>
#include <cerrno>
#include <climits>
#include <initializer_list>
#include <iostream>
#include <string_view>
#include <system_error>

#include "base/file_system.h"
#include "base/printable.h"
#include "base/standard_streams.h"
#include "cli/program/format.h"
#include "cli/setup/authority.h"
#include "cli/setup/invitation.h"
#include "config/load.h"

namespace spoor::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::uint64_t file_bytes_max = 1U << 20U;
constexpr const char* socket_path = "/run/spoor/spoor.sock";

// Whether the program ends with 0; its output is that of this one.
bool run_program(std::vector<std::string> words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  if (::posix_spawnp(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) return false;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The units have the default configuration.
bool has_units(const NodeFiles& files) {
  return files.config == config::default_file && fs::exists("/run/systemd/system") && ::geteuid() == 0;
}

// spoor-watch is a package of its own.
bool is_watched(const SetupOptions& options) {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  return !options.no_watch && fs::exists(own.parent_path() / "spoor-watch", error);
}

// The unit of the daemon hides or protects these places, where it has to write .spoor on a drive.
void write_drop_in(const std::vector<fs::path>& drives) {
  const auto any_in = [&](std::initializer_list<std::string_view> folders) {
    return std::ranges::any_of(drives,
                               [&](const fs::path& drive) { return is_in_one_of(drive.native(), folders); });
  };
  std::string settings;
  if (any_in({"/home", "/root", "/run/user"})) settings += "ProtectHome=false\n";
  if (any_in({"/tmp", "/var/tmp"})) settings += "PrivateTmp=false\n";
  if (settings.empty()) return;
  const fs::path folder = "/etc/systemd/system/spoord.service.d";
  fs::create_directories(folder);
  or_fail(install_file(folder / "spoor-setup.conf", "# Made by spoor setup.\n[Service]\n" + settings,
                       Readers::all));
  run_program({"systemctl", "daemon-reload"});
}

void start_units(const SetupOptions& options, const NodeFiles& files, const std::vector<fs::path>& drives) {
  std::vector<std::string> units{"spoord.service", "spoor-scan.timer", "spoor-scan.path"};
  if (is_watched(options)) units.insert(units.begin() + 1, "spoor-watch.service");
  const std::string all = fmt::format("{}", fmt::join(units, " "));
  if (options.no_start || !has_units(files)) {
    print_text(fmt::format("next: systemctl enable --now {}\n", all));
    return;
  }
  write_drop_in(drives);
  const auto systemctl = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "systemctl");
    words.insert(words.end(), units.begin(), units.end());
    if (!run_program(words))
      throw_failure(exit_failed, "cannot start {}: see journalctl -u spoord, and spoor doctor", all);
  };
  systemctl({"enable", "--quiet"});
  systemctl({"restart"});  // those that run have another configuration
  run_program({"systemctl", "start", "--no-block", "spoor-scan.service"});
  print_text(fmt::format("started {}, and the first scan\n", all));
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  const std::string full = name.data();
  return full.substr(0, full.find('.'));
}

std::vector<std::string> ask_for_words(const std::string& question, const std::string& proposed) {
  std::vector<std::string> words;
  boost::split(words, ask(question, proposed), boost::is_any_of(" "), boost::token_compress_on);
  std::erase(words, "");
  return words;
}

void ask_for_missing(SetupOptions& options) {
  if (!options.drives.empty() || ::isatty(STDIN_FILENO) != 1) return;
  if (options.name.empty()) options.name = ask("Name of this node, unique in the cluster", host_name());
  base::PosixFileSystem files;
  const auto mounts = files.read("/proc/self/mounts", file_bytes_max);
  const std::string proposed = mounts ? fmt::format("{}", fmt::join(drives_in(*mounts), " ")) : "";
  options.drives = ask_for_words("Directories with the data, separated by spaces", proposed);
  if (!options.join.empty() || options.tls || !options.peers.empty()) return;
  options.peers = ask_for_words("Addresses of other nodes, separated by spaces; empty: none", "");
  if (!options.peers.empty() && options.address.empty())
    options.address = ask("The IP address of this machine by which they reach it", "");
}

ordered_json make_config(const SetupOptions& options, const NodeFiles& files, const SharedSettings& common) {
  ordered_json json = {{"node", {{"name", options.name}, {"cluster", common.cluster}}},
                       {"drives", options.drives}};
  if (is_watched(options)) json["watch"] = {{"drives", "all"}};
  if (!common.rules.is_null()) json["namespace"] = common.rules;
  if (options.tls) {
    ordered_json listen = ordered_json::array({{{"unix", socket_path}}});
    ordered_json tls = {{"certificate", files.certificate.native()},
                        {"key", files.certificate.native()},
                        {"client_ca", files.ca.native()}};
    listen.push_back({{"address", "127.0.0.1"}, {"port", base::spoor_port}});
    listen.push_back({{"address", options.address}, {"port", base::spoor_port}, {"tls", tls}});
    json["listen"] = listen;
    tls.erase("client_ca");
    tls["ca"] = files.ca.native();
    json["peers"] = {{"static", common.peers}, {"tls", tls}};
    ordered_json of_nodes = {{"name", fmt::format("*.{}", node_domain)}, {"role", "peer"}};
    json["auth"] = {{"certificates", ordered_json::array({of_nodes})}};
  }
  return json;
}

// --set, as spoord has it, for the file.
void set_overrides(const GlobalOptions& global, ordered_json& json) {
  for (const std::string& each : global.overrides) {
    const auto equals = each.find('=');
    if (equals == std::string::npos || equals == 0)
      throw_failure(exit_usage, "--set {}: expected KEY=VALUE", base::printable(each));
    const std::string key = '/' + boost::replace_all_copy(each.substr(0, equals), ".", "/");
    const std::string text = each.substr(equals + 1);
    auto value = ordered_json::parse(text, nullptr, false);
    try {
      json[ordered_json::json_pointer(key)] = value.is_discarded() ? ordered_json(text) : value;
    } catch (const ordered_json::exception&) {
      throw_failure(exit_usage, "--set {}: there is no such setting", base::printable(each));
    }
  }
}

void check_drives(SetupOptions& options) {
  if (options.drives.empty())
    throw Failure{exit_usage, "which directories hold the data? Give --drive PATH, once for each"};
  for (std::string& drive : options.drives) {
    std::error_code error;
    if (!fs::is_directory(drive, error))
      throw_failure(exit_usage, "--drive {}: there is no such directory", base::printable(drive));
    drive = fs::canonical(drive).native();
  }
}

// A disk that is mounted later would hide what is written now.
void warn_of_mount_points(const std::vector<fs::path>& drives) {
  for (const fs::path& drive : drives) {
    struct stat own{};
    struct stat above{};
    if (::stat(drive.c_str(), &own) != 0 || ::stat(drive.parent_path().c_str(), &above) != 0) continue;
    if (own.st_dev != above.st_dev) continue;
    print_text(
        fmt::format("warning    {} is a directory of the file system of {}: if a disk belongs there, "
                    "mount it, and run this again with --force\n",
                    base::printable(drive.native()), base::printable(drive.parent_path().native())));
  }
}

}  // namespace

void reload_daemon(const NodeFiles& files) {
  if (has_units(files) && run_program({"systemctl", "is-active", "--quiet", "spoord.service"})) {
    if (run_program({"systemctl", "reload", "spoord.service"})) return;
  }
  print_text("next, if the daemon runs: systemctl reload spoord\n");
}

std::string read_text(const fs::path& file) {
  base::PosixFileSystem files;
  return or_fail(files.read(file, file_bytes_max));
}

std::string ask(const std::string& question, const std::string& proposed) {
  print_text(proposed.empty() ? question + ": " : fmt::format("{} [{}]: ", question, proposed));
  base::flush_standard_output();
  std::string line;
  if (!std::getline(std::cin, line))
    throw Failure{exit_usage, "no answer; 'spoor setup --help' lists the options"};
  return line.empty() ? proposed : line;
}

std::string url_of(const std::string& address, std::uint16_t port) {
  return base::Endpoint{.host = address, .port = port, .unix_path = {}, .is_tls = true}.to_string();
}

std::string peer_url(const std::string& peer) {
  if (base::is_ip_address(peer)) return url_of(peer);
  const bool is_url = peer.find("://") != std::string::npos || peer.starts_with("unix:");
  return or_fail(base::parse_endpoint(is_url ? peer : "https://" + peer), exit_usage).to_string();
}

void add_once(std::vector<std::string>& urls, const std::string& url) {
  if (std::ranges::find(urls, url) == urls.end()) urls.push_back(url);
}

void check_new(SetupOptions& options, const NodeFiles& files) {
  if (is_configured(files.config) && !options.force) {
    throw_failure(exit_failed,
                  "{} is there: this node has been set up; --force replaces it, and keeps "
                  "it as {}.old",
                  base::printable(files.config.native()), files.config.filename().native());
  }
  ask_for_missing(options);
  if (options.name.empty()) options.name = host_name();
  check_drives(options);
}

void check_reachable(const std::string& address) {
  if (address.empty()) {
    throw Failure{
        exit_usage,
        "other nodes need an address to reach this one: give --address, an IP address of this machine"};
  }
  if (!is_of_network(address) || !is_own_address(address)) {
    throw_failure(exit_usage,
                  "--address {}: it is not an address of this machine by which others "
                  "could reach it",
                  base::printable(address));
  }
}

ordered_json checked_config(const SetupOptions& options, const NodeFiles& files, const SharedSettings& common,
                            const GlobalOptions& global) {
  ordered_json json = make_config(options, files, common);
  set_overrides(global, json);
  const auto config = or_fail(check_config(files.config, json), exit_usage);
  or_fail(prepare_drives(config.drives));
  return json;
}

base::Result<> list_peer(const NodeFiles& files, const std::string& url) {
  return edit_config(files.config, fmt::format("\"{}\" to peers.static", url), [&](ordered_json& json) {
    ordered_json& listed = json["peers"]["static"];
    if (std::find(listed.begin(), listed.end(), url) == listed.end()) listed.push_back(url);
  });
}

void write_node(const SetupOptions& options, const NodeFiles& files, const ordered_json& json) {
  const auto config = or_fail(write_config(files.config, json), exit_usage);
  print_text(fmt::format("wrote {}: node '{}', {}\n", files.config.native(), config.node.name,
                         counted(config.drives.size(), "drive")));
  warn_of_mount_points(config.drives);
  start_units(options, files, config.drives);
  if (!is_watched(options)) {
    print_text(
        "nothing marks what changes on these drives yet: install spoor-watch and set \"watch\", or let the "
        "writers mark (spoor-mark(1), spoor-http(7))\n");
  }
  print_text("then: spoor doctor\n");
}

}  // namespace spoor::cli
