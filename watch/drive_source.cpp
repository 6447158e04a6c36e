#include "watch/drive_source.h"

#include <fmt/core.h>

#include <system_error>
#include <utility>

#include "base/file_system.h"
#include "base/printable.h"
#include "tracker/storage/drive_registry.h"

namespace spoor::watch {
namespace {

base::Error not_watched(const std::filesystem::path& drive, std::string_view why) {
  return {std::make_error_code(std::errc::no_such_device),
          fmt::format("{} {}", base::printable(drive.native()), why)};
}

// Without a disk that is not mounted, its path leads to a directory of another file system.
base::Result<> check_identity(const DriveSource::Options& options) {
  base::PosixFileSystem files;
  tracker::DriveRegistry registry(files, options.data_dir);
  static_cast<void>(registry.load({options.drive}));  // the daemon reports a damaged one
  const auto check = registry.check(options.drive);
  if (check.identity != tracker::DriveIdentity::refused) return {};
  return base::Error(std::make_error_code(std::errc::no_such_device), check.error);
}

}  // namespace

DriveSource::DriveSource(const Options& options)
    : options_(options),
      root_(options.drive),
      paths_([this](const DirectoryHandle& handle) { return root_.resolve(handle); },
             [this](const EntryName& entry, const FileHandle& file) { return root_.resolve(entry, file); },
             options.cache_bytes_max) {}

base::Result<FanotifyGroup> DriveSource::open_group(const Options& options, DriveRoot& root) {
  if (auto checked = check_identity(options); !checked) return checked.error();
  if (auto entered = root.enter(); !entered) return entered.error();
  auto group = FanotifyGroup::open(root.descriptor(), options.drive);
  const auto checked = root.check_handles();
  root.leave();
  if (!group) return group;
  if (!checked) return checked.error();
  return group;
}

base::Result<> DriveSource::check(const Options& options) {
  DriveRoot root(options.drive);
  const auto group = open_group(options, root);
  return group ? base::Result<>() : group.error();
}

base::Result<std::unique_ptr<EventSource>> DriveSource::open(const Options& options) {
  std::unique_ptr<DriveSource> source(new DriveSource(options));  // its constructor is private
  auto group = open_group(options, source->root_);
  if (!group) return group.error();
  source->note_ = {options.drive, source->root_.device(), source->root_.inode(), {}};
  source->kept_.emplace(*std::move(group), source->note_);
  // The path may lead elsewhere by now.
  if (auto entered = source->enter(); !entered) return entered.error();
  source->leave();
  return std::unique_ptr<EventSource>(std::move(source));
}

std::unique_ptr<EventSource> DriveSource::resume(const Options& options, KeptGroup kept) {
  const auto note = kept.settled();
  std::unique_ptr<DriveSource> source(new DriveSource(options));  // its constructor is private
  source->kept_.emplace(std::move(kept));
  if (note) source->note_ = *note;
  const bool is_same = note && note->drive == options.drive && source->enter();
  source->leave();
  if (is_same) return source;
  source->discard();
  return nullptr;
}

base::Result<> DriveSource::enter() {
  if (auto entered = root_.enter(); !entered) return entered;
  // A directory above the drive was renamed, which may be outside of its file system.
  if (std::exchange(real_path_, root_.real_path()) != real_path_) paths_.forget();
  const bool is_same = root_.device() == note_.device && root_.inode() == note_.inode;
  if (is_same && kept_->group().is_watching()) return {};
  root_.leave();
  return not_watched(options_.drive, "was unmounted, mounted or replaced");
}

void DriveSource::settle(const peer::DriveGap& gap) {
  note_.gap = gap;
  kept_->set_settled(note_);
}

std::vector<std::string> DriveSource::own_directories() const {
  std::vector<std::string> own = {tracker::spoor_directory("").native()};
  std::error_code unknown;
  const std::filesystem::path data_dir = std::filesystem::weakly_canonical(options_.data_dir, unknown);
  const std::filesystem::path top = root_.real_path();
  const std::filesystem::path relative = data_dir.lexically_relative(top);
  if (!unknown && !relative.empty() && relative != "." && *relative.begin() != "..")
    own.push_back(relative.native());
  return own;
}

}  // namespace spoor::watch
