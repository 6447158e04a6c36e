#include "watch/kept_group.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/byte_codec.h"
#include "base/checksum.h"

namespace spoor::watch {
namespace {

constexpr std::string_view magic = "SPOORWN1";
constexpr std::size_t note_bytes_max = 8192;

// One name for each drive: both descriptors have it. The service manager allows few characters.
std::string name_of(const std::filesystem::path& drive) {
  return fmt::format("drive-{:016x}", base::checksum(drive.native()));
}

std::string encode(const GroupNote& note) {
  base::ByteWriter out;
  out.raw(magic);
  out.u64(note.device);
  out.u64(note.inode);
  out.u64(note.gap.id.size());
  out.raw(note.gap.id);
  out.u64(note.drive.native().size());
  out.raw(note.drive.native());
  out.u64(note.gap.reason.size());
  out.raw(note.gap.reason);
  out.u64(static_cast<std::uint64_t>(note.gap.at.time_since_epoch().count()));
  return out.take();
}

std::optional<GroupNote> decode(std::string_view bytes) {
  base::ByteReader in(bytes);
  if (in.raw(magic.size()) != magic) return std::nullopt;
  GroupNote note;
  note.device = in.u64();
  note.inode = in.u64();
  note.gap.id = in.raw(in.u64());
  note.drive = std::string(in.raw(in.u64()));
  // That of version 1.0.0 ends here.
  if (in.ok() && in.remaining() == 0) return note;
  note.gap.reason = in.raw(in.u64());
  note.gap.at = base::WallTime(std::chrono::nanoseconds(static_cast<std::int64_t>(in.u64())));
  if (!in.ok()) return std::nullopt;
  return note;
}

bool is_note(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

// Replaces the content of the note; an empty one means that events are in flight.
bool write_note(int descriptor, const std::string& bytes) {
  return descriptor >= 0 && ::ftruncate(descriptor, 0) == 0 &&
         ::pwrite(descriptor, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
}

// The descriptors that were passed, by their name; the strings of the names are freed.
std::multimap<std::string, int> passed_descriptors() {
  char** names = nullptr;
  const int count = ::sd_listen_fds_with_names(1, &names);
  std::multimap<std::string, int> passed;
  for (int i = 0; i < count; ++i) {
    passed.emplace(names[i], SD_LISTEN_FDS_START + i);
    std::free(names[i]);  // NOLINT(cppcoreguidelines-no-malloc): allocated by libsystemd
  }
  std::free(static_cast<void*>(names));  // NOLINT(cppcoreguidelines-no-malloc): the same
  return passed;
}

}  // namespace

std::vector<KeptGroup> KeptGroup::take_passed() {
  std::vector<KeptGroup> kept;
  const auto passed = passed_descriptors();
  for (auto first = passed.begin(); first != passed.end();) {
    const auto last = passed.upper_bound(first->first);
    int group = -1;
    int note = -1;
    for (auto each = first; each != last; ++each) {
      int& place = is_note(each->second) ? note : group;
      const base::Descriptor further(std::exchange(place, each->second));  // closed
    }
    kept.push_back(KeptGroup(FanotifyGroup(base::Descriptor(group)), base::Descriptor(note), first->first));
    first = last;
  }
  return kept;
}

KeptGroup::KeptGroup(FanotifyGroup group, const GroupNote& note)
    : group_(std::move(group)),
      note_(::memfd_create("spoor-watch", MFD_CLOEXEC)),
      name_(name_of(note.drive)),
      is_in_flight_(true) {
  store();
}

void KeptGroup::store() const {
  const std::array descriptors = {group_.descriptor(), note_.get()};
  if (note_.get() < 0) return spdlog::warn("cannot keep events over a restart: {}", std::strerror(errno));
  const int done = ::sd_pid_notify_with_fds(0, 0, fmt::format("FDSTORE=1\nFDNAME={}", name_).c_str(),
                                            descriptors.data(), descriptors.size());
  if (done < 0) spdlog::warn("cannot keep events over a restart: {}", std::strerror(-done));
}

std::optional<GroupNote> KeptGroup::settled() const {
  std::string bytes(note_bytes_max, '\0');
  const ssize_t size = ::pread(note_.get(), bytes.data(), bytes.size(), 0);
  if (group_.descriptor() < 0 || size <= 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(size));
  return decode(bytes);
}

base::Result<std::vector<KernelEvent>> KeptGroup::read() {
  if (!group_.has_events()) return std::vector<KernelEvent>();
  set_in_flight();
  return group_.read();
}

void KeptGroup::set_in_flight() {
  if (std::exchange(is_in_flight_, true)) return;
  written_.clear();
  if (!write_note(note_.get(), {})) discard();  // the last note must not count any more
}

void KeptGroup::set_settled(const GroupNote& note) {
  std::string bytes = encode(note);
  is_in_flight_ = false;
  if (bytes == written_) return;
  static_cast<void>(write_note(note_.get(), bytes));  // else the next start is a gap
  written_ = std::move(bytes);
}

void KeptGroup::discard() const {
  static_cast<void>(::sd_notify(0, fmt::format("FDSTOREREMOVE=1\nFDNAME={}", name_).c_str()));
}

}  // namespace spoor::watch
