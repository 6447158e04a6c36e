// The head of a scan that did not end: the bytes as they are, and with a checksum that fits them.
#include <filesystem>
#include <fstream>
#include <string>

#include "base/byte_codec.h"
#include "base/checksum.h"
#include "scanner/walk/unfinished_scan.h"
#include "tests/fuzz/fuzz_support.h"
#include "tests/support/temp_directory.h"
#include "tracker/storage/mark_set_codec.h"

namespace spoor::scanner {
namespace {

using fuzz::require;

// As the inputs of the corpus have it.
std::string setting() {
  base::ByteWriter out;
  out.text("database");
  out.u64(7);
  out.text("rules");
  out.u64(2);
  out.text("/mnt/a");
  out.text("/mnt/b");
  out.u8(0);
  return out.take();
}

std::string encoded(const tracker::MarkSet& marks) {
  base::ByteWriter out;
  tracker::encode_mark_set(out, marks);
  return out.take();
}

bool are_same(const ScanInput& one, const ScanInput& other) {
  return encoded(one.marks) == encoded(other.marks) && one.book == other.book &&
         one.start_level == other.start_level && one.started_at == other.started_at &&
         one.cycle == other.cycle && one.partial == other.partial && one.everything == other.everything;
}

class Target {
 public:
  void check(std::string_view bytes) {
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ / "scan", std::ios::binary) << bytes;
    const auto found = [&] {
      const fuzz::MemoryBound bound(bytes.size());
      return UnfinishedScan(directory_, files_).find(setting());
    }();
    if (!found) return;
    std::filesystem::remove_all(directory_);
    UnfinishedScan next(directory_, files_);
    next.begin(setting(), *found, false);
    require(next.add_log_file("log").has_value(), "what was found can be written");
    const auto again = UnfinishedScan(directory_, files_).find(setting());
    require(again && are_same(*again, *found), "what was found survives the next kill");
  }

 private:
  support::TempDirectory temp_;
  const std::filesystem::path directory_ = temp_ / "unfinished";
  base::PosixFileSystem files_;
};

// In place of the last bytes.
std::string sealed(std::string_view bytes) {
  base::ByteWriter out;
  out.raw(bytes.substr(0, bytes.size() - sizeof(std::uint64_t)));
  out.u64(base::checksum(out.bytes()));
  return out.take();
}

}  // namespace
}  // namespace spoor::scanner

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static spoor::scanner::Target target;
  const std::string_view bytes = spoor::fuzz::text_of(data, size);
  target.check(bytes);
  if (size >= sizeof(std::uint64_t)) target.check(spoor::scanner::sealed(bytes));
  return 0;
}
