// The commands of `spoor`: each adds its subcommand to the program; when it is called it does its
// work and puts its exit code into `code`. `options` and `code` must outlive the parsing.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace spoor::cli {

void add_changes_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_mark_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_members_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_scan_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_scans_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_status_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_usage_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_inspect_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_drives_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_config_command(CLI::App& program, const GlobalOptions& options, int& code);

}  // namespace spoor::cli
