// The disk that the benchmarks write to.
#pragma once

#include <filesystem>
#include <string>

namespace spoor::bench {

// Makes $TMPDIR, or the build folder where it is not set, the place of every TempDirectory from here on,
// and names its file system: "ext4 on /dev/sda1". Throws where that is memory: syncing costs nothing there.
// Before any thread starts.
std::string use_disk();

// The file system of a folder, in the same words. Throws where it lies in memory.
std::string disk_of(const std::filesystem::path& folder);

}  // namespace spoor::bench
