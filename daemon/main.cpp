// spoord: the daemon of one node.

#include <fmt/format.h>
#include <malloc.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "base/printable.h"
#include "base/version.h"
#include "config/logging.h"
#include "config/program.h"
#include "daemon/daemon.h"

namespace {

using namespace spoor;

base::Result<std::string> check(const config::Config& config) {
  for (const std::filesystem::path& drive : config.drives) {
    std::error_code failure;
    if (!std::filesystem::is_directory(drive, failure))
      fmt::print(stderr,
                 "spoord: warning: drives: there is no directory {} now: mount it, or correct the path\n",
                 base::printable(drive.native()));
  }
  const auto problems = daemon::check(config);
  if (problems.empty()) return std::string("the configuration is valid");
  return base::Error(std::make_error_code(std::errc::invalid_argument),
                     fmt::format("{}", fmt::join(problems, "\n")));
}

}  // namespace

int main(int argc, char** argv) {
  // Larger buffers return to the system when they are freed. By default, each that is freed raises this, up
  // to 32 MiB, and each thread that uses the heap keeps twice as much: large bodies took 200 MiB.
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
  return config::run_program(argc, argv,
                             {.name = "spoord",
                              .version = base::version_text("spoord"),
                              .description = "The change-tracking daemon of a storage node.",
                              .check_help = "Validates the configuration and exits",
                              .check = check,
                              .check_failed_code = 2,
                              .run = [](const config::Config& config, const config::Load& load) {
                                return daemon::run(config, load, std::string(base::version()));
                              }});
}
