#include "tests/bench/disk.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "tests/support/process.h"

namespace spoor::bench {

std::string use_disk() {
  // /tmp is memory on many machines; the build folder hardly ever.
  ::setenv("TMPDIR", SPOOR_BENCH_FOLDER, 0);
  const std::string folder = std::filesystem::temp_directory_path().native();
  std::istringstream table(support::run_command({"df", "--output=fstype,source", folder}).out);
  std::string header;
  std::string type;
  std::string source;
  std::getline(table, header);
  table >> type >> source;
  if (type == "tmpfs" || type == "ramfs") {
    throw std::runtime_error(folder + " lies in memory; set TMPDIR to a folder on a disk");
  }
  return type + " on " + source;
}

}  // namespace spoor::bench
