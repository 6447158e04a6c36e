#include "base/stop_signals.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace spoor::base {
namespace {

// Ends the process with 1 if a signal arrived: in a child, as how signals are handled is the process's.
[[noreturn]] void exit_after_hangup(void (*handler)(int)) {
  std::signal(SIGHUP, handler);
  const StopSignals signals;
  std::raise(SIGHUP);
  std::_Exit(signals.wait(std::chrono::seconds(0)) ? 1 : 0);
}

TEST(StopSignalsTest, Hangup_IsAStop) {
  EXPECT_EXIT(exit_after_hangup(SIG_DFL), testing::ExitedWithCode(1), "");
}

TEST(StopSignalsTest, HangupThatIsIgnored_IsNone) {
  EXPECT_EXIT(exit_after_hangup(SIG_IGN), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace spoor::base
