#include "config/program.h"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "base/standard_streams.h"
#include "config/load.h"
#include "config/logging.h"

namespace spoor::config {
namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

int check(const Program& program, const Config& config) {
  const auto checked = program.check(config);
  if (checked) {
    fmt::print("{}\n", *checked);
    return 0;
  }
  print_failure(program.name, checked.error().message);
  return program.check_failed_code;
}

int parse_and_run(int argc, char** argv, const Program& program) {
  CLI::App app(program.description, program.name);
  std::optional<std::filesystem::path> file;
  std::vector<std::string> overrides;
  bool check_only = false;
  app.add_option("--config", file, "The configuration file (default: /etc/spoor/spoor.json)")
      ->type_name("FILE");
  app.add_option("--set", overrides, "Overrides a setting: key=value with a dotted key; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--check", check_only, program.check_help);
  for (const Program::Flag& flag : program.flags) app.add_flag(flag.name, *flag.value, flag.help);
  app.set_version_flag("--version", program.version);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }
  const Load read = [&] { return load(file, overrides); };
  const auto config = read();
  const std::string refusal = !config          ? config.error().message
                              : program.refuse ? program.refuse(*config)
                                               : std::string();
  if (!refusal.empty()) {
    print_failure(program.name, refusal);
    return exit_usage;
  }
  if (check_only) return check(program, *config);
  set_up_logging(config->log);
  if (const auto done = program.run(*config, read); !done) {
    print_failure(program.name, config->log, done.error().message);
    return exit_failed;
  }
  return 0;
}

}  // namespace

int run_program(int argc, char** argv, const Program& program) {
  base::reserve_standard_streams();
  try {
    const int code = parse_and_run(argc, argv, program);
    base::flush_standard_output();
    return code;
  } catch (const std::exception& error) {
    print_failure(program.name, error.what());
    return exit_failed;
  }
}

base::Result<base::FileLock> lock_data_dir(const std::string& program, const std::filesystem::path& lock) {
  auto held = base::FileLock::try_acquire(lock);
  if (!held) return held.error();
  if (*held) return *std::move(*held);
  return base::Error(std::make_error_code(std::errc::device_or_resource_busy),
                     fmt::format("another {} runs on {}: stop it first", program,
                                 base::printable(lock.parent_path().native())));
}

void notify_manager(const std::string& state) { static_cast<void>(::sd_notify(0, state.c_str())); }

}  // namespace spoor::config
