#include <fmt/format.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/predicate.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <boost/algorithm/string/split.hpp>
#include <climits>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/endpoint.h"
#include "base/file_system.h"
#include "base/printable.h"
#include "base/standard_streams.h"
#include "cli/commands.h"
#include "cli/daemon_client.h"
#include "cli/format.h"
#include "cli/setup/authority.h"
#include "cli/setup/invitation.h"
#include "cli/setup/node_files.h"
#include "config/load.h"
#include "config/print.h"

namespace spoor::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::uint64_t file_bytes_max = 1U << 20U;
constexpr const char* socket_path = "/run/spoor/spoor.sock";
constexpr std::size_t token_bytes = 32;

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

// ---- this machine -----------------------------------------------------------------------------

// Whether the program ends with 0; its output is that of this one.
bool run_program(std::vector<std::string> words) {
  std::vector<char*> arguments;
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

void reload_daemon(const NodeFiles& files) {
  if (has_units(files) && run_program({"systemctl", "is-active", "--quiet", "spoord.service"})) {
    if (run_program({"systemctl", "reload", "spoord.service"})) return;
  }
  print_text("next, if the daemon runs: systemctl reload spoord\n");
}

// spoor-watch is a package of its own.
bool is_watched(const SetupOptions& options) {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  return !options.no_watch && fs::exists(own.parent_path() / "spoor-watch", error);
}

// The unit of the daemon hides or protects these places, where it has to write .spoor on a drive.
void write_drop_in(const std::vector<fs::path>& drives) {
  const auto is_below = [&](std::initializer_list<std::string_view> folders) {
    return std::ranges::any_of(drives, [&](const fs::path& drive) {
      return std::ranges::any_of(folders,
                                 [&](std::string_view folder) { return drive.native().starts_with(folder); });
    });
  };
  std::string settings;
  if (is_below({"/home", "/root", "/run/user"})) settings += "ProtectHome=false\n";
  if (is_below({"/tmp", "/var/tmp"})) settings += "PrivateTmp=false\n";
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
      throw Failure{exit_failed,
                    fmt::format("cannot start {}: see journalctl -u spoord, and spoor doctor", all)};
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

std::string read_text(const fs::path& file) {
  base::PosixFileSystem files;
  return or_fail(files.read(file, file_bytes_max));
}

// ---- questions --------------------------------------------------------------------------------

std::string ask(const std::string& question, const std::string& proposed) {
  print_text(proposed.empty() ? question + ": " : fmt::format("{} [{}]: ", question, proposed));
  base::flush_standard_output();
  std::string line;
  if (!std::getline(std::cin, line))
    throw Failure{exit_usage, "no answer; 'spoor setup --help' lists the options"};
  return line.empty() ? proposed : line;
}

void ask_for_missing(SetupOptions& options) {
  if (!options.drives.empty() || ::isatty(STDIN_FILENO) != 1) return;
  if (options.name.empty()) options.name = ask("Name of this node, unique in the cluster", host_name());
  base::PosixFileSystem files;
  const auto mounts = files.read("/proc/self/mounts", file_bytes_max);
  const std::string proposed = mounts ? fmt::format("{}", fmt::join(drives_in(*mounts), " ")) : "";
  const std::string drives = ask("Directories with the data, separated by spaces", proposed);
  boost::split(options.drives, drives, boost::is_any_of(" "), boost::token_compress_on);
  std::erase(options.drives, "");
  if (!options.join.empty() || options.tls || !options.peers.empty()) return;
  const std::string peers = ask("Addresses of other nodes, separated by spaces; empty: none", "");
  boost::split(options.peers, peers, boost::is_any_of(" "), boost::token_compress_on);
  std::erase(options.peers, "");
  if (!options.peers.empty() && options.address.empty())
    options.address = ask("The IP address of this machine by which they reach it", "");
}

// ---- the configuration ------------------------------------------------------------------------

std::string url_of(const std::string& address, std::uint16_t port = base::spoor_port) {
  return base::Endpoint{.host = address, .port = port, .unix_path = {}, .is_tls = true}.to_string();
}

// Of an address, with or without a port, or a URL.
std::string peer_url(const std::string& peer) {
  if (base::is_ip_address(peer)) return url_of(peer);
  const bool is_url = peer.find("://") != std::string::npos || peer.starts_with("unix:");
  return or_fail(base::parse_endpoint(is_url ? peer : "https://" + peer), exit_usage).to_string();
}

void add_once(std::vector<std::string>& urls, const std::string& url) {
  if (std::ranges::find(urls, url) == urls.end()) urls.push_back(url);
}

// What the nodes of a cluster have in common.
struct Common {
  std::string cluster;
  std::vector<std::string> peers;
  ordered_json rules;  // "namespace"; null: the default
};

ordered_json make_config(const SetupOptions& options, const NodeFiles& files, const Common& common) {
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
      throw Failure{exit_usage, fmt::format("--set {}: expected KEY=VALUE", base::printable(each))};
    const std::string key = '/' + boost::replace_all_copy(each.substr(0, equals), ".", "/");
    const std::string text = each.substr(equals + 1);
    auto value = ordered_json::parse(text, nullptr, false);
    try {
      json[ordered_json::json_pointer(key)] = value.is_discarded() ? ordered_json(text) : value;
    } catch (const ordered_json::exception&) {
      throw Failure{exit_usage, fmt::format("--set {}: there is no such setting", base::printable(each))};
    }
  }
}

void check_drives(SetupOptions& options) {
  if (options.drives.empty())
    throw Failure{exit_usage, "which directories hold the data? Give --drive PATH, once for each"};
  for (std::string& drive : options.drives) {
    std::error_code error;
    if (!fs::is_directory(drive, error))
      throw Failure{exit_usage,
                    fmt::format("--drive {}: there is no such directory", base::printable(drive))};
    drive = fs::canonical(drive).native();
  }
}

// Fails before anything is written or sent, if this node cannot be set up.
void check_new(SetupOptions& options, const NodeFiles& files) {
  if (is_configured(files.config) && !options.force) {
    throw Failure{exit_failed,
                  fmt::format("{} is there: this node has been set up; --force replaces it, and keeps "
                              "it as {}.old",
                              base::printable(files.config.native()), files.config.filename().native())};
  }
  ask_for_missing(options);
  if (options.name.empty()) options.name = host_name();
  check_drives(options);
  or_fail(prepare_drives({options.drives.begin(), options.drives.end()}));
}

// Of a node with TLS.
void check_reachable(const std::string& address) {
  if (address.empty()) {
    throw Failure{
        exit_usage,
        "other nodes need an address to reach this one: give --address, an IP address of this machine"};
  }
  if (!is_of_network(address) || !is_own_address(address)) {
    throw Failure{exit_usage,
                  fmt::format("--address {}: it is not an address of this machine by which others "
                              "could reach it",
                              base::printable(address))};
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

// Which is valid: it is checked before any file is written, and before a token is used.
ordered_json checked_config(const SetupOptions& options, const NodeFiles& files, const Common& common,
                            const GlobalOptions& global) {
  ordered_json json = make_config(options, files, common);
  set_overrides(global, json);
  or_fail(check_config(files.config, json), exit_usage);
  return json;
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
        "writers "
        "mark (spoor-mark(1), spoor-http(7))\n");
  }
  print_text("then: spoor doctor\n");
}

// ---- what the options ask for -----------------------------------------------------------------

// Fails if this node has none, or it cannot issue.
KeyAndCertificate read_authority(const NodeFiles& files) {
  if (!fs::exists(files.ca_key)) {
    throw Failure{exit_usage, fmt::format("{} is not here: run this on the node that made the authority",
                                          base::printable(files.ca_key.native()))};
  }
  KeyAndCertificate authority{read_text(files.ca_key), read_text(files.ca)};
  or_fail(issue(authority, make_request(make_key()), {"check", "0.0.0.0"}, base::SystemClock().wall_now()));
  return authority;
}

void install_certificate(const NodeFiles& files, const std::string& key, const ordered_json& response) {
  or_fail(install_file(files.ca, response.at("authority").get<std::string>(), Readers::all));
  or_fail(
      install_file(files.certificate, response.at("certificate").get<std::string>() + key, Readers::daemon));
}

void set_up(SetupOptions options, const NodeFiles& files, const GlobalOptions& global) {
  check_new(options, files);
  options.tls = options.tls || !options.peers.empty();
  Common common{options.cluster, {}, nullptr};
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

const config::Listener& listener_of(const config::Config& config) {
  const auto found =
      std::ranges::find_if(config.listen, [](const auto& each) { return each.tls.has_value(); });
  if (found == config.listen.end() || !config.peers.tls)
    throw Failure{exit_usage, "this node has no TLS, by which others could join it: see spoor-setup(1)"};
  return *found;
}

// The answer to a node that joins, which the configuration of this one then lists.
class Admission {
 public:
  Admission(const GlobalOptions& global, const NodeFiles& files, const config::Config& config,
            std::string address)
      : global_(global),
        files_(files),
        config_(config),
        address_(std::move(address)),
        authority_(read_authority(files)) {
    static_cast<void>(peers_of_daemon());  // it has to run
  }

  base::Result<ordered_json> admit(const ordered_json& request, const std::string& from) {
    const auto text = [&](const char* name) {
      const auto found = request.find(name);
      return found != request.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    const NodeNames names{text("name"), text("address")};
    if (const auto why = why_not(names, from); !why.empty())
      return base::Error(std::make_error_code(std::errc::invalid_argument), why);
    auto certificate = issue(authority_, text("request"), names, base::SystemClock().wall_now());
    if (!certificate) return certificate.error();
    name_ = names.name;
    url_ = url_of(names.address);
    std::vector<std::string> peers;
    for (const auto& peer : config_.peers.static_endpoints) add_once(peers, peer.to_string());
    has_others_ = peers.size() > (std::ranges::find(peers, url_) != peers.end() ? 1U : 0U);
    // Before the node has its response: one that never joins is seen to be down, one that is not listed is
    // not.
    list(peers);
    add_once(peers, url_);
    add_once(peers, url_of(address_, listener_of(config_).port));
    const ordered_json all = ordered_json::parse(config::to_json_text(config_));
    return ordered_json{{"certificate", *certificate},
                        {"authority", authority_.certificate},
                        {"cluster", config_.node.cluster},
                        {"namespace", all.at("namespace")},
                        {"peers", peers}};
  }

  void finish() const {
    print_text(fmt::format("'{}' ({}) has joined\n", name_, url_));
    if (!is_new_) return;
    if (has_others_) print_text(fmt::format("on each other node: spoor setup --add-peer {}\n", url_));
    or_fail(listed_);
    reload_daemon(files_);
  }

 private:
  ordered_json peers_of_daemon() const {
    auto daemon = or_fail(DaemonClient::create(global_), exit_usage);
    return or_fail(daemon.exchange("GET", "/v1/status")).at("peers");
  }

  // Why a node may not have these names; empty: it may. A node that is known may renew its certificate.
  std::string why_not(const NodeNames& names, const std::string& from) const {
    const std::string shown = base::printable(names.name);
    if (boost::iequals(names.name, config_.node.name))
      return fmt::format("'{}' is the name of this node", shown);
    if (!is_of_network(names.address) || names.address == address_)
      return fmt::format("{} is not an address of another machine", base::printable(names.address));
    for (const auto& peer : peers_of_daemon()) {
      if (!boost::iequals(text_or(peer.at("name"), ""), names.name)) continue;
      const std::string url = text_or(peer.at("url"), "");
      const auto known = base::parse_endpoint(url);
      if (known && known->host == names.address && from == names.address) continue;
      return fmt::format("'{}' is the name of the node at {}", shown, base::printable(url));
    }
    return {};
  }

  void list(const std::vector<std::string>& peers) {
    is_new_ = std::ranges::find(peers, url_) == peers.end();
    if (!is_new_) return;
    listed_ =
        edit_config(files_.config, fmt::format("\"{}\" to peers.static", url_), [&](ordered_json& json) {
          ordered_json& urls = json["peers"]["static"];
          if (std::find(urls.begin(), urls.end(), url_) == urls.end()) urls.push_back(url_);
        });
  }

  const GlobalOptions& global_;
  const NodeFiles& files_;
  const config::Config& config_;
  const std::string address_;
  const KeyAndCertificate authority_;
  std::string name_;
  std::string url_;
  base::Result<> listed_;
  bool is_new_ = false;
  bool has_others_ = false;
};

void invite_node(const SetupOptions& options, const NodeFiles& files, const GlobalOptions& global) {
  const config::Config config = or_fail(global.load_config(), exit_usage);
  const config::Listener& own = listener_of(config);
  Invitation invitation{.address = options.address.empty() ? own.address : options.address,
                        .certificate = own.tls->certificate,
                        .key = own.tls->key,
                        .token = make_join_token(or_fail(fingerprint_of(read_text(own.tls->certificate))))};
  if (!is_of_network(invitation.address))
    throw Failure{exit_usage, "give --address, the IP address by which other machines reach this one"};
  Admission admission(global, files, config, invitation.address);
  const InvitationCalls calls{
      .listening =
          [&](std::uint16_t) {
            print_text(fmt::format(
                "on the new node, within {}, with the directories of its data:\n"
                "  spoor setup --join {} --drive DIRECTORY\n"
                "which asks for this token, for one use:\n  {}\n",
                human_duration(invitation.time_max), invitation.address, to_text(invitation.token)));
            base::flush_standard_output();
          },
      .admit = [&](const ordered_json& request,
                   const std::string& from) { return admission.admit(request, from); },
      .refused = [](const std::string& from,
                    const std::string& why) { print_error(fmt::format("refused {}: {}", from, why)); }};
  or_fail(invite(invitation, calls));
  admission.finish();
}

std::pair<std::string, std::uint16_t> host_and_port(const std::string& text) {
  if (base::is_ip_address(text)) return {text, invitation_port};
  const auto endpoint = or_fail(base::parse_endpoint("https://" + text, invitation_port), exit_usage);
  return {endpoint.host, endpoint.port};
}

// A new certificate for this node, of a node that invites it.
ordered_json request_certificate(SetupOptions& options, const std::string& key) {
  if (options.token.empty()) options.token = ask("Token of spoor setup --invite", "");
  const JoinToken token = or_fail(parse_join_token(options.token), exit_usage);
  const auto [host, port] = host_and_port(options.join);
  if (!options.address.empty()) check_reachable(options.address);
  return or_fail(join(host, port, token, [&](const std::string& own_address) {
    if (options.address.empty()) options.address = own_address;
    return ordered_json{{"name", options.name}, {"address", options.address}, {"request", make_request(key)}};
  }));
}

void join_cluster(SetupOptions options, const NodeFiles& files, const GlobalOptions& global) {
  check_new(options, files);
  const ordered_json planned = checked_config(options, files, {options.cluster, {}, nullptr}, global);
  options.name = planned.at("node").at("name").get<std::string>();
  const std::string key = make_key();
  const ordered_json response = request_certificate(options, key);
  const Common common{response.at("cluster").get<std::string>(),
                      response.at("peers").get<std::vector<std::string>>(), response.at("namespace")};
  options.tls = true;
  const ordered_json json = checked_config(options, files, common, global);
  install_certificate(files, key, response);
  write_node(options, files, json);
}

void renew(SetupOptions options, const NodeFiles& files, const GlobalOptions& global) {
  const config::Config config = or_fail(global.load_config(), exit_usage);
  const config::Listener& own = listener_of(config);
  if (own.tls->certificate != files.certificate || config.peers.tls->ca != files.ca) {
    throw Failure{exit_usage, fmt::format("spoor setup has not made the certificate of this node, {}",
                                          base::printable(own.tls->certificate.native()))};
  }
  options.name = config.node.name;
  if (options.address.empty()) options.address = own.address;
  check_reachable(options.address);
  const std::string key = make_key();
  const std::string authority = read_text(files.ca);
  if (!options.join.empty()) {
    const ordered_json response = request_certificate(options, key);
    if (response.at("cluster") != config.node.cluster || response.at("authority") != authority)
      throw Failure{exit_failed, fmt::format("{} is a node of another cluster, or has another authority",
                                             base::printable(options.join))};
    install_certificate(files, key, response);
  } else {
    install_certificate(
        files, key,
        {{"authority", authority},
         {"certificate", or_fail(issue(read_authority(files), make_request(key),
                                       {options.name, options.address}, base::SystemClock().wall_now()))}});
  }
  print_text(fmt::format("wrote {}\n", files.certificate.native()));
  reload_daemon(files);
}

void add_peer(const std::string& peer, const NodeFiles& files) {
  const std::string url = peer_url(peer);
  or_fail(edit_config(files.config, fmt::format("\"{}\" to peers.static", url), [&](ordered_json& json) {
    ordered_json& listed = json["peers"]["static"];
    if (std::find(listed.begin(), listed.end(), url) == listed.end()) listed.push_back(url);
  }));
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
