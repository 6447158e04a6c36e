// A node that starts, stops and crashes on a file system in memory.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/manual_clock.h"
#include "tests/fakes/memory_file_system.h"
#include "tests/fakes/saves.h"
#include "tests/tracker/samples.h"
#include "tracker/storage/persistence.h"

namespace spoor::tracker {

inline const std::filesystem::path node_data_dir = "/data";
inline const std::vector<std::filesystem::path> node_drives{"/mnt/1", "/mnt/2"};
inline const NodeIdentity node_owner{"cluster", "node"};

inline void make_directories(fakes::MemoryFileSystem& files) {
  files.make_directory(node_data_dir);
  for (const auto& drive : node_drives) files.make_directory(drive);
}

inline Persistence::Options node_options(Durability durability) {
  Persistence::Options options;
  options.data_dir = node_data_dir;
  options.drives = node_drives;
  options.owner = node_owner;
  options.durability = durability;
  options.boot_id = "this boot";
  options.tracker = small_options();
  return options;
}

// One run, from its start on. Ends without a stop, as a process that is killed, unless it is stopped.
class Node {
 public:
  Node(base::FileSystem& files, const base::Clock& clock, Persistence::Options options)
      : persistence_(Persistence::start(files, clock, std::move(options)).value()) {}

  Persistence& persistence() { return *persistence_; }
  Tracker& tracker() { return persistence_->tracker(); }
  const std::string& loss() const { return persistence_->report().loss; }
  InstanceId instance() { return tracker().state().instance; }
  SavedSnapshot save() { return fakes::save(*persistence_); }
  void stop() { EXPECT_TRUE(fakes::stop(*persistence_).value().durable()); }

  // Whether what was marked is acknowledged.
  bool mark_durably(const Mark& mark) {
    const MarkOutcome outcome = tracker().mark({&mark, 1});
    if (persistence_->durable_position() >= outcome.position) return true;
    const bool committed = persistence_->commit().has_value();
    return committed && persistence_->durable_position() >= outcome.position;
  }

  bool is_dirty(const std::string& path) { return tracker().dirty(path, {}).latest.has_value(); }

 private:
  std::unique_ptr<Persistence> persistence_;
};

}  // namespace spoor::tracker
