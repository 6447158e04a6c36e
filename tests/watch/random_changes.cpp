#include "tests/watch/random_changes.h"

#include <iostream>

#include "tests/support/process.h"

namespace spoor::watch {
namespace {

bool is_installed(const std::string& program) {
  return program.empty() || support::run_command({"sh", "-c", "command -v \"$1\"", "sh", program}).code == 0;
}

}  // namespace

std::vector<Change> available_changes(const ChangedPlaces& places) {
  std::vector<std::vector<Change>> sources{shell_changes(), call_changes()};
  if (!places.beside.empty()) sources.push_back(border_changes());
  std::vector<Change> available;
  for (const auto& source : sources) {
    for (const Change& change : source) {
      if (is_installed(change.program)) {
        available.push_back(change);
      } else {
        std::cout << "[ LEFT OUT ] " << change.name << ": " << change.program << " is not installed\n";
      }
    }
  }
  return available;
}

}  // namespace spoor::watch
