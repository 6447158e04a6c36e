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
  return disk_of(std::filesystem::temp_directory_path());
}

std::string disk_of(const std::filesystem::path& folder) {
  std::istringstream table(support::run_command({"df", "--output=fstype,source", folder}).out);
  std::string header;
  std::string type;
  std::string source;
  std::getline(table, header);
  table >> type >> source;
  if (type == "tmpfs" || type == "ramfs") {
    throw std::runtime_error(folder.native() + " lies in memory; name a folder on a disk (TMPDIR)");
  }
  return type + " on " + source;
}

}  // namespace spoor::bench
