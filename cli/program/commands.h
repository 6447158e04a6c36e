// The commands of `spoor`. Each function adds a subcommand to the program. The subcommand runs during the
// parsing; it throws a Failure, or stores its exit code in `code`. `options` and `code` must outlive the
// parsing.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/program/options.h"

namespace spoor::cli {

// An empty value, as of a shell variable that is not set, must not count as an option that was not given:
// throws a Failure.
void refuse_empty_values(const CLI::App& command);

// An option with a value, which `--help` shows as `type`.
template <class Value>
CLI::Option* add_value(CLI::App& command, const char* name, Value& value, const char* type,
                       const char* description) {
  return command.add_option(name, value, description)->type_name(type);
}

void add_changes_command(CLI::App& program, const GlobalOptions& options);
void add_mark_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_members_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_scan_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_scans_command(CLI::App& program, const GlobalOptions& options);
void add_status_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_usage_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_cluster_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_inspect_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_doctor_command(CLI::App& program, const GlobalOptions& options, int& code);
void add_drives_command(CLI::App& program, const GlobalOptions& options);
void add_setup_command(CLI::App& program, const GlobalOptions& options);
void add_config_command(CLI::App& program, const GlobalOptions& options);

}  // namespace spoor::cli
