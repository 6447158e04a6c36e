// A walk whose log is kept, without the walk.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "scanner/walk/unfinished_scan.h"
#include "scanner/walk/walk_log.h"
#include "tests/fakes/manual_clock.h"

namespace spoor::scanner {

inline ScanOptions some_options() { return {.drives = {{"/mnt/a", ""}, {"/mnt/b", ""}}, .rules = {}}; }
inline std::string some_setting() { return encode_setting("database", 7, some_options()); }

// All fields are other than by default.
inline ScanInput some_input() {
  ScanInput input;
  input.marks.add(tracker::hash_path("a/b"), {.bits = 1024, .hashes = 3});
  input.marks.add(tracker::hash_path("c"), {.bits = 4096, .hashes = 7});
  input.marks.add_tree("tree/marked");
  tracker::InstanceId instance;
  for (std::uint8_t& byte : instance.bytes) byte = 9;
  input.book = {{{"one", instance},
                 {.cycle = {5},
                  .home = std::string("http://a\0:1", 11),
                  .standing = tracker::Standing::copied,
                  .silent = std::chrono::hours(1)}},
                {{"two", {}}, {.cycle = {tracker::CycleId::value_max}}}};
  input.start_level = 3;
  input.started_at = base::WallTime(std::chrono::nanoseconds(-5));
  input.cycle = {11};
  input.partial = true;
  input.everything = "for a reason";
  return input;
}

// What a directory of that path was read as: each other than all others.
inline DirectoryRead read_of(std::string_view path, std::size_t subdirectories = 2) {
  const std::uint64_t hash = std::hash<std::string_view>()(path);
  DirectoryRead read;
  read.handle.inode = hash;
  read.handle.birth = static_cast<std::uint32_t>(hash >> 7U);
  read.listing.own = {.files = hash >> 3U, .bytes = hash >> 4U, .allocated = hash >> 5U, .mtime_ns = -1};
  read.listing.signature = ~hash;
  read.listing.linked = {{hash, hash >> 6U, hash >> 8U}, {hash + 1, 0, 512}};
  if (hash % 2 == 0) {
    read.listing.owners = encode_owners({{{1, 2}, {3, 4, 5}}, {{6, 7}, {8, 9, 10}}});
    for (LinkedFile& file : read.listing.linked) file.owner = Owner{6, 7};
  }
  for (std::size_t number = 0; number < subdirectories; ++number) {
    read.listing.subdirectories.add(std::string(1, static_cast<char>('a' + number % 26)) + "\xff\n",
                                    hash + number);
  }
  return read;
}

// One process that scans: what it holds is gone with it, and its files stay.
class LoggedWalk {
 public:
  struct Options {
    std::string setting = some_setting();
    WalkLog::Root root = {"/mnt/a", 2, 3};
  };

  LoggedWalk(const std::filesystem::path& directory, base::FileSystem& files, const base::Clock& clock,
             Options options)
      : unfinished(directory, files) {
    const auto found = unfinished.find(options.setting);
    has_resumed = found.has_value();
    if (found) input = *found;
    unfinished.begin(options.setting, input, false);
    log.emplace(unfinished, options.root, clock);
  }

  void add_all(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) log->add(path, read_of(path));
  }

  ScanInput input = some_input();
  UnfinishedScan unfinished;
  bool has_resumed = false;
  std::optional<WalkLog> log;
};

}  // namespace spoor::scanner
