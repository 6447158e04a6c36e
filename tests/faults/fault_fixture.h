// A real spoord that is killed, stopped, and whose disks fail, with clients that hold it to its word.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/daemon/spoord_fixture.h"
#include "tests/faults/load.h"
#include "tests/support/process.h"
#include "tests/support/random.h"

namespace spoor::faults {

namespace fs = std::filesystem;

class FaultTest : public daemon::SpoordTest {
 protected:
  FaultTest();

  // Before the mounts of a test go: it holds files open on them.
  void TearDown() override { daemon_.reset(); }

  fs::path drive(std::size_t index = 0) const;
  void add_drive();  // another one, which is there; before start()

  void kill_hard();

  // `spoor` with the configuration of the daemon; the JSON of what has to succeed.
  support::CommandResult spoor(std::vector<std::string> arguments) const;
  nlohmann::json spoor_json(std::vector<std::string> arguments) const;

  bool mark(const std::string& path);

  // What it is after a start, or a kill -9 and a start: the same memory, going on.
  std::string instance() { return get("/v1/status")["instance"]; }

  // How one drive did in the last save.
  nlohmann::json drive_state(std::size_t index = 0) {
    return get("/v1/status")["snapshot"]["drives"].at(index);
  }

  // Asks again and again. Fails, by an exception, where the daemon ends meanwhile.
  void wait_until(const std::function<bool()>& holds);
  void wait_until_ready();

  // Everything that was acknowledged from this one on is known to have changed, and not because
  // everything is; and no cycle that was answered for is to come again.
  void expect_kept(const Load& load, std::size_t from = 0);

  // Kills it under `load`, starts it again, and expects that nothing is missing.
  void expect_kill_loses_nothing(Load& load);

  // What the daemon says while the journal can't be written.
  void expect_journal_error();
  void expect_healthy();
};

}  // namespace spoor::faults
