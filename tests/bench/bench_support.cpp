#include "tests/bench/bench_support.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/support/process.h"

namespace spoor::bench {

int run_bench(CLI::App& program, int argc, char** argv, const std::function<void()>& run) {
  try {
    program.parse(argc, argv);
    run();
    return 0;
  } catch (const CLI::ParseError& error) {
    return program.exit(error);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}: {}\n", std::filesystem::path(argv[0]).filename().native(), failure.what());
    return 1;
  }
}

std::filesystem::path results_file(std::string_view name) {
  return std::filesystem::path(SPOOR_BENCH_FOLDER) / fmt::format("{}.json", name);
}

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

std::uint64_t disk_reads(const std::filesystem::path& folder) {
  struct stat found{};
  if (::stat(folder.c_str(), &found) != 0) return 0;
  // https://docs.kernel.org/block/stat.html: the first figure.
  std::ifstream file(fmt::format("/sys/dev/block/{}:{}/stat", major(found.st_dev), minor(found.st_dev)));
  std::uint64_t reads = 0;
  file >> reads;
  return reads;
}

void drop_caches() {
  ::sync();
  std::ofstream file("/proc/sys/vm/drop_caches");
  file << "3\n" << std::flush;
  if (!file) throw std::runtime_error("cannot drop the caches of file systems: --cold needs root");
}

}  // namespace spoor::bench
