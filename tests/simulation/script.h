// What happens in a simulation: a list of actions that means the same on every run. Any action can stand
// anywhere: its numbers are taken modulo what there is, and where there is nothing to act on, nothing
// happens. So a script that fails can be shortened by leaving out actions, and kept as a test.
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
  write,          // node a changes a directory b of its own, by c, and sends the mark
  retry,          // a writer sends a mark again that was not acknowledged, through another node
  deliver,        // a message arrives
  drop,           // a message is lost; who sent it finds out
  time_out,       // a scanner stops waiting for an answer, which may still come
  duplicate,      // a message will arrive twice
  commit,         // the journal of a node with answers that wait takes what they wait for
  save,           // a node writes its snapshot
  scan,           // a node begins to gather
  step_scan,      // a scan that has gathered walks a part of the tree, or commits
  kill_scan,      // it dies
  lose_database,  // scan.db is gone
  forget,         // a scanner asks an address no more that is not listed any more
  wait,           // time passes
  jump_clock,     // somebody sets a node's time of day
  cut,            // the network between two nodes fails, in one direction
  heal,           // and in all directions it works again
  kill,           // kill -9 of a daemon
  lose_power,     // of a machine
  stop,           // a daemon is stopped cleanly
  start,          // of one that does not run, with other options perhaps
  fill_disk,      // there is no space left
  free_disk,
  wipe,    // a machine gets new disks
  add,     // a node joins the cluster, a new one or one that left
  remove,  // a node leaves it
  move,    // a node gets another address
};
inline constexpr std::size_t act_count = static_cast<std::size_t>(Act::move) + 1;

struct Action {
  Act act = Act::deliver;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;

  friend bool operator==(const Action&, const Action&) = default;
};

// How the cluster is to begin with.
struct Setup {
  std::uint32_t nodes = 3;
  std::uint32_t items = 100;   // of a level 0 filter
  std::uint32_t history = 16;  // closed cycles kept
  std::uint32_t min_cycle_age_s = 60;
  bool lingering = false;  // whether addresses that are not listed any more are still asked
  // Whether the second node is hostile (tests/simulation/hostile.h). Then each has a certificate for its
  // name.
  bool hostile = false;

  friend bool operator==(const Setup&, const Setup&) = default;
};

struct Script {
  Setup setup;
  std::vector<Action> actions;
};

// The script of a seed. Of two numbers of actions the shorter one's are the first of the longer one's.
Script random_script(std::uint64_t seed, std::size_t actions);

// A line for the setup, then one for each action.
std::string to_text(const Script& script);
base::Result<Script> parse_script(std::string_view text);

}  // namespace spoor::simulation
