#include "tests/hosts/network.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "tests/support/process.h"

namespace spoor::hosts {
namespace {

constexpr const char* names_directory = "/run/netns";  // used by `ip netns`

void check(int result, const char* what) {
  if (result != 0) throw std::system_error(errno, std::system_category(), what);
}

void run(const std::vector<std::string>& command, const std::string& input = {}) {
  const auto result = support::run_command(command, input);
  if (result.code == 0) return;
  std::string words;
  for (const std::string& word : command) words += word + ' ';
  throw std::runtime_error(words + "failed: " + result.err);
}

std::string link_of(std::size_t host) { return "port" + std::to_string(host); }

// Requests have the port of a spoord as their destination, responses as their source.
constexpr const char* requests = " tcp dport 7420";
constexpr const char* all_packets = "";

std::string drop_of(std::size_t from, const char* which) {
  return "ip saddr " + Network::address(from) + which + " drop";
}

std::string try_network() {
  try {
    check(::unshare(CLONE_NEWNS), "no mount namespace");
    check(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "no private mounts");
    std::filesystem::create_directories(names_directory);
    check(::mount("tmpfs", names_directory, "tmpfs", 0, "size=1m"), names_directory);
    Network network(2);
    network.cut_packets(0, 1);
  } catch (const std::exception& error) {
    return std::string("needs the right to make network namespaces, iproute2 and nftables: ") + error.what();
  }
  return {};
}

}  // namespace

std::string why_no_network() {
  static const std::string why = try_network();
  return why;
}

Network::Network(std::size_t hosts)
    : prefix_("spoor-" + std::to_string(::getpid()) + "-"), switch_(prefix_ + "switch"), drops_(hosts) {
  run({"ip", "netns", "add", switch_});
  made_.push_back(switch_);
  run({"ip", "-n", switch_, "link", "add", "bridge", "type", "bridge"});
  run({"ip", "-n", switch_, "link", "set", "bridge", "up"});
  for (std::size_t host = 0; host < hosts; ++host) make_host(host);
}

Network::~Network() {
  for (const std::string& name : made_) support::run_command({"ip", "netns", "delete", name});
}

void Network::make_host(std::size_t host) {
  const std::string name = name_of(host);
  run({"ip", "netns", "add", name});
  made_.push_back(name);
  run({"ip", "-n", switch_, "link", "add", link_of(host), "type", "veth", "peer", "name", "eth0", "netns",
       name});
  run({"ip", "-n", switch_, "link", "set", link_of(host), "master", "bridge", "up"});
  run({"ip", "-n", name, "link", "set", "lo", "up"});
  run({"ip", "-n", name, "address", "add", address(host) + "/24", "dev", "eth0"});
  run({"ip", "-n", name, "link", "set", "eth0", "up"});
  run(inside(host, {"nft", "-f", "-"}),
      "table inet cuts { chain in { type filter hook input priority 0; policy accept; }; }\n");
}

std::string Network::name_of(std::size_t host) const { return prefix_ + "n" + std::to_string(host); }

std::string Network::address(std::size_t host) { return "10.77.0." + std::to_string(host + 1); }

std::vector<std::string> Network::inside(std::size_t host, const std::vector<std::string>& command) const {
  std::vector<std::string> words{"ip", "netns", "exec", name_of(host)};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

void Network::unplug(std::size_t host, End end) { set_link(host, end, "down"); }

void Network::plug_in(std::size_t host, End end) { set_link(host, end, "up"); }

void Network::set_link(std::size_t host, End end, const char* state) {
  if (end == End::at_the_host) {
    run({"ip", "-n", name_of(host), "link", "set", "eth0", state});
  } else {
    run({"ip", "-n", switch_, "link", "set", link_of(host), state});
  }
}

void Network::cut_packets(std::size_t from, std::size_t to) {
  drops_.at(to).insert(drop_of(from, all_packets));
  write_cuts(to);
}

void Network::cut_requests(std::size_t from, std::size_t to) {
  drops_.at(to).insert(drop_of(from, requests));
  write_cuts(to);
}

void Network::mend(std::size_t from, std::size_t to) {
  drops_.at(to).erase(drop_of(from, all_packets));
  drops_.at(to).erase(drop_of(from, requests));
  write_cuts(to);
}

// Replaces all rules: a single rule could be removed only by a number that the kernel assigned.
void Network::write_cuts(std::size_t to) {
  std::string rules = "flush chain inet cuts in\n";
  for (const std::string& drop : drops_.at(to)) rules += "add rule inet cuts in " + drop + "\n";
  run(inside(to, {"nft", "-f", "-"}), rules);
}

bool Network::slow_down(std::size_t host) {
  const std::vector<std::string> slow{"tc", "-n", name_of(host), "qdisc", "add", "dev", "eth0", "root"};
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"netem", "delay", "40ms", "20ms", "loss", "2%"},
        std::vector<std::string>{"tbf", "rate", "256kbit", "burst", "8kb", "latency", "500ms"}}) {
    auto command = slow;
    command.insert(command.end(), how.begin(), how.end());
    if (support::run_command(command).code == 0) return true;
  }
  return false;
}

void Network::speed_up(std::size_t host) {
  run({"tc", "-n", name_of(host), "qdisc", "delete", "dev", "eth0", "root"});
}

}  // namespace spoor::hosts
