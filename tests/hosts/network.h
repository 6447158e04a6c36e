// A network of hosts on this machine: each is a network namespace with a link to a switch, which is a bridge
// in its own namespace.
//
// The names of the namespaces are in a private mount namespace of the test program, which its child processes
// share: other programs do not see them, and none outlives the test program, however it ends.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace spoor::hosts {

// Why such a network is impossible here; empty if it is possible. The first call creates the mount namespace,
// for the calling thread and everything that it starts afterwards.
std::string why_no_network();

enum class End { at_the_host, at_the_switch };

// Throws on failure. Not thread-safe, except for address() and inside().
class Network {
 public:
  explicit Network(std::size_t hosts);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network();

  static std::string address(std::size_t host);

  // The command line that runs `command` in the network of the host. Its process becomes that of `command`.
  std::vector<std::string> inside(std::size_t host, const std::vector<std::string>& command) const;

  // At the host's end, its sends fail at once; at the switch's end, packets are lost.
  void unplug(std::size_t host, End end);
  void plug_in(std::size_t host, End end);

  // Drops all packets in this direction: neither host reaches the other, since TCP needs both directions.
  void cut_packets(std::size_t from, std::size_t to);
  // Drops the requests of `from` to `to`; requests in the other direction work.
  void cut_requests(std::size_t from, std::size_t to);
  void mend(std::size_t from, std::size_t to);

  // Returns false if the kernel does not support it.
  bool slow_down(std::size_t host);
  void speed_up(std::size_t host);

 private:
  std::string name_of(std::size_t host) const;
  void set_link(std::size_t host, End end, const char* state);
  void make_host(std::size_t host);
  void write_cuts(std::size_t to);

  std::string prefix_;
  std::string switch_;
  std::vector<std::string> made_;             // namespaces
  std::vector<std::set<std::string>> drops_;  // for each host: the rules for incoming packets that it drops
};

}  // namespace spoor::hosts
