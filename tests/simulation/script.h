// The events of a simulation: a list of actions with the same effect in every run. Any action is valid
// anywhere: its numbers are taken modulo the number of candidates, and without candidates it does nothing. So
// a script that fails can be shortened by removing actions, and kept as a test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace spoor::simulation {

enum class Act : std::uint8_t {
  write,          // node a changes its directory b, by c, and sends the mark
  retry,          // a writer sends an unacknowledged mark again, through another node
  deliver,        // a message arrives
  drop,           // a message is lost; its sender is notified
  time_out,       // a scanner stops waiting for a response, which may still arrive
  duplicate,      // a message will arrive twice
  commit,         // the journal of a node with waiting responses is written
  save,           // a node writes its snapshot
  scan,           // a node begins to gather
  step_scan,      // a scan that has gathered walks a part of the tree, or commits
  kill_scan,      // it dies
  lose_database,  // scan.db is lost
  greet,          // a node introduces itself to all members
  wait,           // time passes
  jump_clock,     // a node's time of day is set
  cut,            // the network between two nodes fails, in one direction
  heal,           // the network works again in all directions
  kill,           // kill -9 of a daemon
  lose_power,     // of a machine
  stop,           // a daemon is stopped cleanly
  start,          // a stopped daemon is started, possibly with other options
  fill_disk,      // there is no space left
  free_disk,
  wipe,    // a machine gets new disks
  add,     // a node joins the cluster, a new one or one that left
  remove,  // a node leaves it
  visit,   // a node joins, may acknowledge a mark, and leaves for good, at once
  move,    // a node gets another address
  retire,  // a node marks, hands its marks on to another one, and may leave
};
inline constexpr std::size_t act_count = static_cast<std::size_t>(Act::retire) + 1;

struct Action {
  Act act = Act::deliver;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;

  friend bool operator==(const Action&, const Action&) = default;
};

// The initial state of the cluster.
struct Setup {
  std::uint32_t nodes = 3;
  std::uint32_t items = 100;   // of a level 0 filter
  std::uint32_t history = 16;  // closed cycles kept
  std::uint32_t min_cycle_age_s = 60;
  bool forgets_late = false;  // whether a node that is no longer listed is expected for some time
  // Whether the second node is hostile (it responds under other nodes' names, with their instances or with
  // new ones, and in cycles that no tracker has reached). Then each has a certificate for its name.
  bool hostile = false;

  friend bool operator==(const Setup&, const Setup&) = default;
};

struct Script {
  Setup setup;
  std::vector<Action> actions;
};

// The script of a seed. A script with fewer actions is a prefix of a longer one of the same seed.
Script random_script(std::uint64_t seed, std::size_t actions);

// A line for the setup, then one for each action.
std::string to_text(const Script& script);
base::Result<Script> parse_script(std::string_view text);

}  // namespace spoor::simulation
