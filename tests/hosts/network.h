// A network of hosts on this machine: each a network namespace with a cable to a switch, which is a
// bridge in a namespace of its own.
//
// The namespaces have their names in a mount namespace of the test program's own, which every program
// that it starts shares: nobody else sees them, and none outlives it, however it ends.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace spoor::hosts {

// Why there can be no such network here; empty where there can. The first call makes the mount namespace,
// for the thread that calls and for all that it starts from then on.
std::string why_no_network();

enum class End { at_the_host, at_the_switch };

// Failures are exceptions. Not thread-safe but for address() and inside().
class Network {
 public:
  explicit Network(std::size_t hosts);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network();

  static std::string address(std::size_t host);

  // The command, to be run in that host's network. The process is the command's own.
  std::vector<std::string> inside(std::size_t host, const std::vector<std::string>& command) const;

  // At the host's end it knows at once that it is alone; at the switch's end nothing answers.
  void unplug(std::size_t host, End end);
  void plug_in(std::size_t host, End end);

  // No packet gets from the one to the other: neither can ask the other anything, since TCP needs both ways.
  void cut_packets(std::size_t from, std::size_t to);
  // The one cannot ask the other; the other way it works.
  void cut_requests(std::size_t from, std::size_t to);
  void mend(std::size_t from, std::size_t to);

  // Whether the kernel can do it.
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
  std::vector<std::set<std::string>> drops_;  // of each host: what it refuses to hear
};

}  // namespace spoor::hosts
