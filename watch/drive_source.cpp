#include "watch/drive_source.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/printable.h"
#include "tracker/paths/path.h"
#include "tracker/storage/drive_registry.h"

namespace spoor::watch {
namespace {

// Of what a handle was opened as, just before; nullopt if it is gone, also if it is still open.
base::Result<std::optional<struct stat>> status_of(const base::Descriptor& opened) {
  struct stat status{};
  const bool is_open = opened.get() >= 0 && ::fstat(opened.get(), &status) == 0;
  if (is_open && status.st_nlink > 0) return std::optional(status);
  if (is_open || errno == ESTALE || errno == ENOENT || errno == ENOTDIR) return std::optional<struct stat>();
  return base::system_error(errno, "cannot open the directory or file of an event");
}

// The path of an open file, as the kernel shows it; ENAMETOOLONG if it does not fit in PATH_MAX.
base::Result<std::string> path_of(int descriptor) {
  std::array<char, PATH_MAX> path{};
  const ssize_t size =
      ::readlink(fmt::format("/proc/self/fd/{}", descriptor).c_str(), path.data(), path.size());
  const int error = size < 0 ? errno : ENAMETOOLONG;
  if (size < 0 || static_cast<std::size_t>(size) == path.size())
    return base::system_error(error, "cannot read the path of a directory in /proc/self/fd");
  return std::string(path.data(), static_cast<std::size_t>(size));
}

// `path` below `top`; nullopt if it is not below.
std::optional<std::string> below(const std::string& path, const std::string& top) {
  if (path == top) return std::string();
  const std::string prefix = top.ends_with('/') ? top : top + '/';
  if (!path.starts_with(prefix)) return std::nullopt;
  return path.substr(prefix.size());
}

// The structure that the system call takes: length, type and bytes of the handle.
std::vector<char> to_file_handle(const std::string& handle) {
  std::vector<char> bytes(sizeof(std::uint32_t) + handle.size());
  const auto size = static_cast<std::uint32_t>(handle.size() - sizeof(std::int32_t));
  std::memcpy(bytes.data(), &size, sizeof(size));
  std::memcpy(bytes.data() + sizeof(size), handle.data(), handle.size());
  return bytes;
}

// Of a file in a directory, or of the directory itself; nothing, with an errno, if it has none.
std::optional<std::string> handle_of(int directory, const std::string& name) {
  alignas(file_handle) std::array<char, sizeof(file_handle) + MAX_HANDLE_SZ> bytes{};
  auto* const handle = reinterpret_cast<file_handle*>(bytes.data());
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount_id = 0;
  if (::name_to_handle_at(directory, name.c_str(), handle, &mount_id, AT_EMPTY_PATH) != 0)
    return std::nullopt;
  return std::string(bytes.data() + sizeof(handle->handle_bytes),
                     sizeof(handle->handle_type) + handle->handle_bytes);
}

base::Descriptor open_handle(int drive, const std::string& handle, int flags) {
  constexpr int attempts_max = 32;
  std::vector<char> file_handle = to_file_handle(handle);
  for (int attempt = 1;; ++attempt) {
    const int opened = ::open_by_handle_at(drive, reinterpret_cast<struct file_handle*>(file_handle.data()),
                                           flags | O_PATH | O_CLOEXEC);
    if (opened >= 0 || errno != ENOMEM || attempt == attempts_max) return base::Descriptor(opened);
    // ext4 fails so, too, for a removed directory while its inode is being given to a new one.
    static_cast<void>(::poll(nullptr, 0, 1));
  }
}

base::Result<base::Descriptor> open_ancestor(int directory, std::size_t levels) {
  constexpr std::size_t levels_at_once = 1000;  // the path of one call has a limit, too
  std::string up;
  for (std::size_t level = std::min(levels, levels_at_once); level > 0; --level) up += "../";
  base::Descriptor ancestor(::openat(directory, up.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (ancestor.get() < 0) return base::system_error(errno, "cannot open the parent of a directory");
  if (levels <= levels_at_once) return ancestor;
  return open_ancestor(ancestor.get(), levels - levels_at_once);
}

// The path of a directory, or of its nearest ancestor that has one: it may lie deeper than any path can name.
// Any user can nest thousands of directories, so the ancestor is found by bisection.
base::Result<Place> place_of(int directory) {
  auto path = path_of(directory);
  if (path) return Place{*std::move(path)};
  Place place{.is_only_ancestor = true};
  std::optional<base::Descriptor> start;  // the highest directory that is known to have none
  bool is_found = false;
  for (std::size_t levels = 1; levels > 0; levels = is_found ? levels / 2 : levels * 2) {
    if (!path && path.error().code != std::errc::filename_too_long) return path.error();
    auto ancestor = open_ancestor(start ? start->get() : directory, levels);
    if (!ancestor) return ancestor.error();
    path = path_of(ancestor->get());
    is_found = is_found || path;
    if (path) {
      place.path = *path;
    } else {
      start.emplace(*std::move(ancestor));
    }
  }
  return place;
}

// Without a disk that is not mounted, its path leads to a directory of another file system.
base::Result<> check_identity(const DriveSourceOptions& options) {
  base::PosixFileSystem files;
  tracker::DriveRegistry registry(files, options.data_dir);
  static_cast<void>(registry.load({options.drive}));  // the daemon reports a damaged one
  const auto identity = registry.check(options.drive);
  if (identity) return {};
  return base::Error(std::make_error_code(std::errc::no_such_device), identity.error().message);
}

class DriveSource final : public EventSource {
 public:
  explicit DriveSource(DriveSourceOptions options)
      : EventSource(options.cache_bytes_max), options_(std::move(options)) {}

  // Whether the service manager keeps it over a restart: `is_kept`.
  base::Result<> open(bool is_kept) {
    if (auto checked = check_identity(options_); !checked) return checked.error();
    const auto status = open_root();
    if (!status) return status.error();
    auto group = FanotifyGroup::open(root_->get(), options_.drive);
    const auto checked = check_handles();
    leave();
    if (!group) return group.error();
    if (!checked) return checked.error();
    group_.emplace(*std::move(group));
    if (is_kept) group_->keep(options_.drive);
    note_ = {options_.drive, status->st_dev, status->st_ino, {}};
    // The path may lead elsewhere by now.
    auto entered = enter();
    leave();
    return entered;
  }

  bool resume(FanotifyGroup kept) {
    const auto note = kept.settled();
    group_.emplace(std::move(kept));
    if (note) note_ = *note;
    const bool is_same = note && note->drive == options_.drive && enter();
    leave();
    if (!is_same) discard();
    return is_same;
  }

  base::Result<> enter() override {
    const auto status = open_root();
    if (!status) return status.error();
    const bool is_same = status->st_dev == note_.device && status->st_ino == note_.inode;
    if (is_same && group_->is_watching()) return {};
    leave();
    return base::Error(
        std::make_error_code(std::errc::no_such_device),
        fmt::format("{} was unmounted, mounted or replaced", base::printable(options_.drive.native())));
  }

  void leave() override {
    root_.reset();
    directory_.reset();
  }
  base::Result<std::vector<KernelEvent>> read() override { return group_->read(); }
  std::uint64_t queue_bytes() override { return group_->queue_bytes(); }
  void settle(const peer::DriveGap& gap) override {
    note_.gap = gap;
    group_->set_settled(note_);
  }
  const peer::DriveGap& settled() const override { return note_.gap; }
  void discard() override { group_->discard(); }
  int descriptor() const override { return group_->descriptor(); }

  std::vector<std::string> own_directories() const override {
    std::vector<std::string> own = {tracker::spoor_directory("").native()};
    std::error_code unknown;
    const std::filesystem::path data_dir = std::filesystem::weakly_canonical(options_.data_dir, unknown);
    const std::filesystem::path relative = data_dir.lexically_relative(real_path_);
    if (!unknown && !relative.empty() && relative != "." && *relative.begin() != "..")
      own.push_back(relative.native());
    return own;
  }

  base::Result<std::optional<Place>> resolve(const DirectoryHandle& handle) override {
    const base::Descriptor directory = open_handle(root_->get(), handle, O_DIRECTORY);
    const auto status = status_of(directory);
    if (!status) return status.error();
    if (!*status) return std::optional<Place>();
    auto place = place_of(directory.get());
    if (!place) return place.error();
    return place_at(*std::move(place));
  }

  base::Result<std::optional<Place>> resolve(const EntryName& entry, const FileHandle& file) override {
    constexpr int attempts_max = 16;  // it may be renamed meanwhile
    if (!entry.name.empty() && leads_to(entry, file)) return std::optional<Place>();
    const base::Descriptor opened = open_handle(root_->get(), file, O_NOFOLLOW);
    for (int attempt = 1; attempt <= attempts_max; ++attempt) {
      const auto status = status_of(opened);
      if (!status) return status.error();
      if (!*status) return std::optional<Place>();
      // A name that the kernel knows: it may be gone.
      auto path = path_of(opened.get());
      struct stat named{};
      if (path && ::lstat(path->c_str(), &named) == 0 && named.st_dev == (*status)->st_dev &&
          named.st_ino == (*status)->st_ino)
        return place_at({*std::move(path)});
    }
    return base::Error(std::make_error_code(std::errc::no_such_file_or_directory),
                       "a file was written to without a name, and the kernel does not know where it is");
  }

 private:
  base::Result<struct stat> open_root() {
    base::Descriptor root(::open(options_.drive.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat status{};
    if (root.get() < 0 || ::fstat(root.get(), &status) != 0)
      return base::system_error(errno,
                                fmt::format("cannot open {}", base::printable(options_.drive.native())));
    auto path = path_of(root.get());
    if (!path) return path.error();
    // A directory above the drive was renamed, which may be outside of its file system.
    if (real_path_ != *path) forget();
    real_path_ = *std::move(path);
    root_.emplace(std::move(root));
    return status;
  }

  // Whether handles can be resolved: tries that of the drive itself.
  base::Result<> check_handles() {
    const auto own = handle_of(root_->get(), "");
    if (!own)
      return base::system_error(errno,
                                fmt::format("{} has no handle", base::printable(options_.drive.native())));
    const auto resolved = resolve(*own);
    if (resolved && *resolved) return {};
    if (resolved)
      return base::Error(
          std::make_error_code(std::errc::not_supported),
          fmt::format("the handle of {} does not lead to it", base::printable(options_.drive.native())));
    base::Error failed = resolved.error();
    if (failed.code == std::errc::operation_not_permitted)
      failed.message += "; it needs the capability CAP_DAC_READ_SEARCH (see spoor-watch.service)";
    return failed;
  }

  // Whether the entry is still the file.
  bool leads_to(const EntryName& entry, const FileHandle& file) {
    if (!directory_ || directory_->first != entry.directory)
      directory_.emplace(entry.directory, open_handle(root_->get(), entry.directory, O_DIRECTORY));
    return handle_of(directory_->second.get(), entry.name) == file;
  }

  // The place of a path, as the kernel shows it.
  base::Result<std::optional<Place>> place_at(Place real) const {
    if (auto path = below(real.path, real_path_)) {
      // The kernel appends " (deleted)" to the path of a directory that is gone.
      const bool is_gone = path->size() - (path->rfind('/') + 1) > tracker::component_bytes_max;
      if (is_gone) return std::optional<Place>();
      return std::optional(Place{*std::move(path), real.is_only_ancestor});
    }
    const auto top = path_of(root_->get());
    if (top && *top == real_path_) return std::optional<Place>();
    return base::Error(std::make_error_code(std::errc::resource_unavailable_try_again),
                       "a directory above the drive was renamed");
  }

  const DriveSourceOptions options_;
  std::optional<base::Descriptor> root_;  // the drive's top, between enter() and leave()
  std::optional<std::pair<DirectoryHandle, base::Descriptor>> directory_;  // for further events of its files
  std::string real_path_;  // of the drive, as the kernel shows it; the cached paths are relative to it
  std::optional<FanotifyGroup> group_;
  GroupNote note_;
};

}  // namespace

base::Result<> check_drive(const DriveSourceOptions& options) { return DriveSource(options).open(false); }

base::Result<std::unique_ptr<EventSource>> open_drive(const DriveSourceOptions& options) {
  auto source = std::make_unique<DriveSource>(options);
  if (auto opened = source->open(true); !opened) return opened.error();
  return std::unique_ptr<EventSource>(std::move(source));
}

std::unique_ptr<EventSource> resume_drive(const DriveSourceOptions& options, FanotifyGroup kept) {
  auto source = std::make_unique<DriveSource>(options);
  return source->resume(std::move(kept)) ? std::move(source) : nullptr;
}

}  // namespace spoor::watch
