#include "tests/faults/mounts.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temp_directory.h"

namespace spoor::faults {
namespace {

namespace fs = std::filesystem;

constexpr const char* boot_id = "/proc/sys/kernel/random/boot_id";

void check(int result, const std::string& what) {
  if (result != 0) throw std::system_error(errno, std::system_category(), what);
}

void run(const std::vector<std::string>& command) {
  const auto result = support::run_command(command);
  if (result.code != 0) throw std::runtime_error(command.front() + ": " + result.err);
}

std::string try_mounts() {
  try {
    check(::unshare(CLONE_NEWNS), "no mount namespace");
    check(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "no private mounts");
    const support::TempDirectory directory;
    MountPoint(directory / "mount").mount_tmpfs("1m");
  } catch (const std::exception& error) {
    return std::string("needs the right to mount: ") + error.what();
  }
  return {};
}

std::string try_images() {
  if (auto why = why_no_mounts(); !why.empty()) return why;
  try {
    const support::TempDirectory directory;
    make_image(directory / "image", std::size_t{16} << 20U);
    MountPoint(directory / "mount").mount_image(directory / "image");
  } catch (const std::exception& error) {
    return std::string("needs mkfs.ext4 and loop devices: ") + error.what();
  }
  return {};
}

// Owns a descriptor. Not thread-safe.
class File {
 public:
  File(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    if (fd_ < 0) throw std::system_error(errno, std::system_category(), path.native());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(fd_); }

  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::string why_no_mounts() {
  static const std::string why = try_mounts();
  return why;
}

std::string why_no_images() {
  static const std::string why = try_images();
  return why;
}

MountPoint::MountPoint(fs::path path) : path_(std::move(path)) { fs::create_directories(path_); }

MountPoint::~MountPoint() {
  if (!mounted_ || ::umount2(path_.c_str(), 0) == 0) return;
  ::umount2(path_.c_str(), MNT_DETACH);  // in use after a test that failed: gone once nobody uses it
}

void MountPoint::mount_tmpfs(const std::string& size) {
  check(::mount("tmpfs", path_.c_str(), "tmpfs", 0, ("size=" + size).c_str()), "mount a tmpfs");
  mounted_ = true;
}

void MountPoint::mount_directory(const fs::path& shown) {
  check(::mount(shown.c_str(), path_.c_str(), nullptr, MS_BIND, nullptr), "mount a directory");
  mounted_ = true;
}

void MountPoint::mount_directory_read_only(const fs::path& shown) {
  mount_directory(shown);
  check(::mount(nullptr, path_.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr), "read-only");
}

void MountPoint::mount_image(const fs::path& image) {
  run({"mount", "-o", "loop", image.native(), path_.native()});
  mounted_ = true;
}

void MountPoint::unmount() {
  check(::umount2(path_.c_str(), 0), "unmount " + path_.native());
  mounted_ = false;
}

void MountPoint::make_read_only() {
  for (;;) {
    const auto result = support::run_command({"mount", "-o", "remount,ro", path_.native()});
    if (result.code == 0) return;
    // Somebody is writing a file there just now.
    if (result.err.find("busy") == std::string::npos) throw std::runtime_error("remount: " + result.err);
  }
}

void MountPoint::make_writable() { run({"mount", "-o", "remount,rw", path_.native()}); }

void MountPoint::abort() { run({"mount", "-o", "remount,abort", path_.native()}); }

void MountPoint::cut_power() {
  // EXT4_IOC_SHUTDOWN, without writing out the file system's own journal; no header has it everywhere.
  constexpr unsigned long shutdown = _IOR('X', 125, std::uint32_t);
  std::uint32_t at_once = 2;
  check(::ioctl(File(path_, O_RDONLY).get(), shutdown, &at_once), "shut down " + path_.native());
}

OtherBoot::OtherBoot(const fs::path& scratch_file) {
  std::string id;
  std::getline(std::ifstream(boot_id), id);
  id.front() = id.front() == '0' ? '1' : '0';
  std::ofstream(scratch_file) << id << '\n';
  check(::mount(scratch_file.c_str(), boot_id, nullptr, MS_BIND, nullptr), "mount over the boot's id");
}

OtherBoot::~OtherBoot() { ::umount2(boot_id, 0); }

void make_image(const fs::path& image, std::size_t bytes, const std::vector<std::string>& options) {
  std::ofstream(image).close();
  fs::resize_file(image, bytes);
  std::vector<std::string> command{"mkfs.ext4", "-q", "-F", "-m", "0"};
  command.insert(command.end(), options.begin(), options.end());
  command.push_back(image.native());
  run(command);
}

Filler::Filler(fs::path file) : file_(std::move(file)) {
  const File out(file_, O_WRONLY | O_CREAT | O_TRUNC);
  // Until not a byte is left; what a write takes need not have found its place on the disk yet.
  for (std::vector<char> chunk(std::size_t{1} << 20U); !chunk.empty();) {
    if (::write(out.get(), chunk.data(), chunk.size()) > 0 && ::fdatasync(out.get()) == 0) continue;
    if (errno != ENOSPC) throw std::system_error(errno, std::system_category(), file_.native());
    chunk.resize(chunk.size() / 2);
  }
}

Filler::~Filler() {
  ::unlink(file_.c_str());
  ::fsync(File(file_.parent_path(), O_RDONLY).get());  // or a power cut brings it back
}

FrozenDisk::FrozenDisk(fs::path mount_point) : mount_point_(std::move(mount_point)) {
  check(::ioctl(File(mount_point_, O_RDONLY).get(), FIFREEZE, 0), "freeze " + mount_point_.native());
}

FrozenDisk::~FrozenDisk() { ::ioctl(File(mount_point_, O_RDONLY).get(), FITHAW, 0); }

HangingDisk::HangingDisk(fs::path mount_point, unsigned user)
    : mount_point_(std::move(mount_point)), device_(::open("/dev/fuse", O_RDWR | O_CLOEXEC)) {
  const std::string mode = fs::is_directory(mount_point_) ? "40000" : "100000";
  const std::string options = "fd=" + std::to_string(device_.get()) + ",rootmode=" + mode +
                              ",user_id=" + std::to_string(user) + ",group_id=0";
  check(::mount("hanging", mount_point_.c_str(), "fuse", 0, options.c_str()), mount_point_.native());
}

// Closing the device ends the calls that hang.
HangingDisk::~HangingDisk() { ::umount2(mount_point_.c_str(), MNT_DETACH); }

bool HangingDisk::is_possible() { return ::access("/dev/fuse", R_OK | W_OK) == 0; }

}  // namespace spoor::faults
