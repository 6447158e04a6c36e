#pragma once

namespace spoor::cli {

// The exit codes of `spoor` (docs/cli.md).
enum ExitCode : int {
  exit_done = 0,
  exit_failed = 1,
  exit_usage = 2,          // wrong usage or configuration
  exit_in_part = 3,        // a peer or a directory was left for the next scan
  exit_start_over = 4,     // the changes since then are not kept: take everything
  exit_scan_running = 75,  // EX_TEMPFAIL: another scan of this node is running
};

}  // namespace spoor::cli
