// The log of a walk, behind a beginning that fits: the bytes as they are, and cut into frames with checksums
// that fit them, each a 16-bit length and so many bytes.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/byte_codec.h"
#include "base/checksum.h"
#include "scanner/walk/walk_log.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fuzz/fuzz_support.h"
#include "tests/support/temp_directory.h"

namespace spoor::scanner {
namespace {

using fuzz::require;

WalkLog::Root root() { return {"/mnt/a", 2, 3}; }

std::string framed(std::string_view bytes) {
  base::ByteReader in(bytes);
  base::ByteWriter out;
  while (in.remaining() > 0) {
    const std::string_view payload = in.raw(std::min<std::uint64_t>(in.u16(), in.remaining()));
    out.u64(payload.size());
    out.u64(base::checksum(payload));
    out.raw(payload);
  }
  return out.take();
}

void require_same(const DirectoryRead& one, const DirectoryRead& other) {
  const Subdirectories& below = one.listing.subdirectories;
  require(one.handle.inode == other.handle.inode && one.handle.birth == other.handle.birth &&
              one.listing.own == other.listing.own && one.listing.signature == other.listing.signature &&
              below.size() == other.listing.subdirectories.size(),
          "what was replayed can be logged again");
  for (std::size_t number = 0; number < below.size(); ++number) {
    const Subdirectory same = other.listing.subdirectories[number];
    require(below[number].name == same.name && below[number].inode == same.inode, "with its subdirectories");
  }
}

class Target {
 public:
  Target() : scan_(temp_ / "first", files_), again_(temp_ / "again", files_) {
    again_.begin(setting_, input_, false);
    scan_.begin(setting_, input_, false);
    WalkLog log(scan_, root(), clock_);
    log.add("", {});
    log.flush();
    for (const auto& entry : std::filesystem::directory_iterator(scan_.directory())) {
      if (entry.path().filename() != "scan") file_ = entry.path();
    }
    const std::string whole = files_.read(file_, 1U << 20U).value();
    header_ = whole.substr(0, 2 * sizeof(std::uint64_t) + base::ByteReader(whole).u64());
  }

  void check(std::string_view bytes) {
    std::ofstream(file_, std::ios::binary) << header_ << bytes;
    WalkLog log(scan_, root(), clock_);
    for (const std::string path : {"", "a", "a/b", "a/b", "a-b", "b", "\xff\xff/\xff"}) {
      const auto read = [&] {
        const fuzz::MemoryBound bound(header_.size() + bytes.size());
        return log.take(path);
      }();
      if (read) check_again(path, *read);
    }
  }

 private:
  void check_again(const std::string& path, const DirectoryRead& read) {
    require(read.handle.descriptor < 0 && !read.is_mount_point, "nothing is open");
    std::filesystem::remove(again_.directory() / file_.filename());
    WalkLog out(again_, root(), clock_);
    out.add(path, read);
    out.flush();
    const auto same = WalkLog(again_, root(), clock_).take(path);
    require(same.has_value(), "what was replayed is found again");
    require_same(read, *same);
  }

  support::TempDirectory temp_;
  base::PosixFileSystem files_;
  const fakes::ManualClock clock_;
  const std::string setting_ = "setting";
  const ScanInput input_;
  UnfinishedScan scan_;
  UnfinishedScan again_;
  std::filesystem::path file_;
  std::string header_;
};

}  // namespace
}  // namespace spoor::scanner

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static spoor::scanner::Target target;
  const std::string_view bytes = spoor::fuzz::text_of(data, size);
  target.check(bytes);
  target.check(spoor::scanner::framed(bytes));
  return 0;
}
