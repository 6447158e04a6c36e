#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "watch/directory_paths.h"
#include "watch/drive_root.h"
#include "watch/event_source.h"
#include "watch/kept_group.h"

namespace spoor::watch {

// A drive that is watched by fanotify.
class DriveSource final : public EventSource {
 public:
  struct Options {
    std::filesystem::path drive;
    std::filesystem::path data_dir;  // not marked, if it lies on the drive
    std::size_t cache_bytes_max = std::size_t{4} << 20U;
  };

  // Begins to watch the drive. Fails, with advice, if it cannot be watched.
  static base::Result<std::unique_ptr<EventSource>> open(const Options& options);

  // Why the drive cannot be watched; nothing is watched then or otherwise.
  static base::Result<> check(const Options& options);

  // Continues a group of an earlier process, if that missed nothing: the drive is the same, and was watched
  // ever since. Null if it may have missed something; `kept` is used up.
  static std::unique_ptr<EventSource> resume(const Options& options, KeptGroup kept);

  base::Result<> enter() override;
  void leave() override { root_.leave(); }
  base::Result<std::vector<KernelEvent>> read() override { return kept_->read(); }
  DirectoryPaths& paths() override { return paths_; }
  std::uint64_t queue_bytes() override { return kept_->group().queue_bytes(); }
  void settle(const peer::DriveGap& gap) override;
  const peer::DriveGap& settled() const override { return note_.gap; }
  void discard() override { kept_->discard(); }
  int descriptor() const override { return kept_->group().descriptor(); }
  std::vector<std::string> own_directories() const override;

 private:
  explicit DriveSource(const Options& options);
  static base::Result<FanotifyGroup> open_group(const Options& options, DriveRoot& root);

  const Options options_;
  DriveRoot root_;
  std::string real_path_;  // to which the cached paths are relative
  DirectoryPaths paths_;
  mutable std::optional<KeptGroup> kept_;
  GroupNote note_;
};

}  // namespace spoor::watch
