// The disk that the benchmarks write to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace spoor::bench {

// Makes $TMPDIR, or the build folder where it is not set, the place of every TempDirectory from here on,
// and names its file system: "ext4 on /dev/sda1". Throws where that is memory: syncing costs nothing there.
// Before any thread starts.
std::string use_disk();

// The file system of a folder, in the same words. Throws where it lies in memory.
std::string disk_of(const std::filesystem::path& folder);

// How often the device of this folder was read since the machine started; 0 where the kernel does not count
// that.
std::uint64_t disk_reads(const std::filesystem::path& folder);

// Nothing of any file system is in memory then. Throws without the rights of root.
void drop_caches();

}  // namespace spoor::bench
