// A library for LD_PRELOAD: calls that write below a directory fail, as on a disk that is full or read-only.
//
// The environment names the directory (FAILING_WRITES_BELOW) and a file that holds a WriteFaults
// (FAILING_WRITES), which all programs of a test share.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/faults/write_faults.h"

namespace {

using spoor::faults::WriteFaults;

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

WriteFaults* shared() {
  static WriteFaults* const faults = [] {
    const char* const file = std::getenv("FAILING_WRITES");
    const int fd = file == nullptr ? -1 : next<int(const char*, int, ...)>("open")(file, O_RDWR | O_CLOEXEC);
    void* const at =
        fd < 0 ? MAP_FAILED : ::mmap(nullptr, sizeof(WriteFaults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) ::close(fd);
    return at == MAP_FAILED ? nullptr : static_cast<WriteFaults*>(at);
  }();
  return faults;
}

bool is_below(std::string_view path) {
  static const char* const below = std::getenv("FAILING_WRITES_BELOW");
  return below != nullptr && path.starts_with(below);
}

bool fails_at(std::string_view path) {
  WriteFaults* const faults = shared();
  if (faults == nullptr || !is_below(path)) return false;
  const std::uint64_t call = ++faults->calls;
  if (call < faults->first || call > faults->last) return false;
  errno = faults->error;
  return true;
}

std::string path_of(int fd) {
  char path[PATH_MAX];
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  return {path, static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

bool fails_at(int fd) {
  const int before = errno;
  const std::string path = path_of(fd);
  errno = before;
  return fails_at(path);
}

// Only a read-only file system refuses what needs no space.
bool fails_when_read_only(const char* path) {
  return shared() != nullptr && shared()->error == EROFS && fails_at(path);
}

int opened(const char* path, int flags, mode_t mode) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  const bool creates = (flags & O_CREAT) != 0 && ::access(path, F_OK) != 0;
  if (creates ? fails_at(path) : writes && fails_when_read_only(path)) return -1;
  return next<int(const char*, int, ...)>("open64")(path, flags, mode);
}

mode_t mode_of(int flags, std::va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

// NOLINTBEGIN(cert-dcl50-cpp,readability-inconsistent-declaration-parameter-name): as the C library declares
// them
extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return opened(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return opened(path, flags, mode);
}

// A full disk takes what there is room for.
ssize_t write(int fd, const void* bytes, size_t size) {
  static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  if (!fails_at(fd)) return real(fd, bytes, size);
  const int error = errno;
  if (error != EROFS && size > 1) static_cast<void>(real(fd, bytes, size / 2));
  errno = error;
  return -1;
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  static auto* const real = next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  if (!fails_at(fd)) return real(fd, bytes, size, offset);
  const int error = errno;
  if (error != EROFS && size > 1) static_cast<void>(real(fd, bytes, size / 2, offset));
  errno = error;
  return -1;
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return pwrite64(fd, bytes, size, offset);
}

ssize_t writev(int fd, const iovec* parts, int count) {
  return fails_at(fd) ? -1 : next<ssize_t(int, const iovec*, int)>("writev")(fd, parts, count);
}

int ftruncate64(int fd, off64_t size) noexcept {
  return fails_at(fd) ? -1 : next<int(int, off64_t)>("ftruncate64")(fd, size);
}
int ftruncate(int fd, off_t size) noexcept { return ftruncate64(fd, size); }

int fsync(int fd) { return fails_at(fd) ? -1 : next<int(int)>("fsync")(fd); }
int fdatasync(int fd) { return fails_at(fd) ? -1 : next<int(int)>("fdatasync")(fd); }

int mkdir(const char* path, mode_t mode) noexcept {
  return fails_at(path) ? -1 : next<int(const char*, mode_t)>("mkdir")(path, mode);
}
int rename(const char* from, const char* to) noexcept {
  return fails_at(to) ? -1 : next<int(const char*, const char*)>("rename")(from, to);
}
int link(const char* from, const char* to) noexcept {
  return fails_at(to) ? -1 : next<int(const char*, const char*)>("link")(from, to);
}
int unlink(const char* path) noexcept {
  return fails_when_read_only(path) ? -1 : next<int(const char*)>("unlink")(path);
}
int rmdir(const char* path) noexcept {
  return fails_when_read_only(path) ? -1 : next<int(const char*)>("rmdir")(path);
}

}  // extern "C"
// NOLINTEND(cert-dcl50-cpp,readability-inconsistent-declaration-parameter-name)
