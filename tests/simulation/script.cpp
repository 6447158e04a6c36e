#include "tests/simulation/script.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <random>
#include <sstream>

namespace spoor::simulation {
namespace {

struct Kind {
  Act act;
  const char* name;
  unsigned weight;  // how often it is drawn, of all weights
};

// Mostly messages and marks; failures are frequent enough that several overlap.
constexpr std::array<Kind, act_count> kinds{{
    {Act::write, "write", 1200},
    {Act::retry, "retry", 100},
    {Act::deliver, "deliver", 6000},
    {Act::drop, "drop", 8},
    {Act::time_out, "time_out", 5},
    {Act::duplicate, "duplicate", 30},
    {Act::commit, "commit", 800},
    {Act::save, "save", 30},
    {Act::scan, "scan", 700},
    {Act::step_scan, "step_scan", 3000},
    {Act::kill_scan, "kill_scan", 20},
    {Act::lose_database, "lose_database", 1},
    {Act::greet, "greet", 300},
    {Act::wait, "wait", 900},
    {Act::jump_clock, "jump_clock", 2},
    {Act::cut, "cut", 4},
    {Act::heal, "heal", 40},
    {Act::kill, "kill", 5},
    {Act::lose_power, "lose_power", 5},
    {Act::stop, "stop", 5},
    {Act::start, "start", 80},
    {Act::fill_disk, "fill_disk", 1},
    {Act::free_disk, "free_disk", 8},
    {Act::wipe, "wipe", 2},
    {Act::add, "add", 6},
    {Act::remove, "remove", 6},
    {Act::visit, "visit", 12},
    {Act::move, "move", 1},
    {Act::retire, "retire", 12},
}};

const Kind& draw(std::mt19937_64& random) {
  static const unsigned total = [] {
    unsigned sum = 0;
    for (const Kind& kind : kinds) sum += kind.weight;
    return sum;
  }();
  auto at = static_cast<unsigned>(random() % total);
  for (const Kind& kind : kinds) {
    if (at < kind.weight) return kind;
    at -= kind.weight;
  }
  return kinds.back();
}

base::Error bad(std::string_view line) {
  return {std::make_error_code(std::errc::invalid_argument),
          fmt::format("not a line of a script: '{}'", line)};
}

}  // namespace

Script random_script(std::uint64_t seed, std::size_t actions) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  Script script;
  script.setup.nodes = below(12) == 0 ? 12 + below(39) : 3 + below(6);
  script.setup.items = below(2) == 0 ? 10 + below(40) : 200;
  script.setup.history = below(3) == 0 ? 16 : 2 + below(5);
  script.setup.min_cycle_age_s = below(2) == 0 ? 60 : 600;
  script.setup.forgets_late = below(2) == 0;
  script.setup.hostile = seed % 4 == 0;
  script.actions.reserve(actions);
  for (std::size_t i = 0; i < actions; ++i) {
    const Act act = draw(random).act;
    const std::uint32_t a = below(1U << 16U);
    const std::uint32_t b = below(1U << 16U);
    const std::uint32_t c = below(1U << 16U);
    script.actions.push_back({act, a, b, c});
  }
  return script;
}

std::string to_text(const Script& script) {
  std::string text = fmt::format("setup {} {} {} {} {} {}\n", script.setup.nodes, script.setup.items,
                                 script.setup.history, script.setup.min_cycle_age_s,
                                 script.setup.forgets_late ? 1 : 0, script.setup.hostile ? 1 : 0);
  for (const Action& action : script.actions) {
    const auto at = static_cast<std::size_t>(action.act);
    text += fmt::format("{} {} {} {}\n", kinds[at].name, action.a, action.b, action.c);
  }
  return text;
}

base::Result<Script> parse_script(std::string_view text) {
  Script script;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    if (!(words >> name)) continue;
    if (name == "setup") {
      Setup& setup = script.setup;
      if (!(words >> setup.nodes >> setup.items >> setup.history >> setup.min_cycle_age_s >>
            setup.forgets_late))
        return bad(line);
      // Older scripts do not have this number.
      if (bool hostile = false; words >> hostile) setup.hostile = hostile;
      if (setup.nodes == 0 || setup.items == 0 || setup.history == 0) return bad(line);
      continue;
    }
    const auto* const kind =
        std::find_if(kinds.begin(), kinds.end(), [&](const Kind& each) { return each.name == name; });
    Action action;
    if (kind == kinds.end() || !(words >> action.a >> action.b >> action.c)) return bad(line);
    action.act = kind->act;
    script.actions.push_back(action);
  }
  return script;
}

}  // namespace spoor::simulation
