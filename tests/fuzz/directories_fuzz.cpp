// What is stored of directories in scan.db: the bytes as a chunk of names, and as a row.
#include <string>

#include "scanner/store/directory_names.h"
#include "scanner/store/directory_row.h"
#include "tests/fuzz/fuzz_support.h"

namespace spoor::scanner {
namespace {

using fuzz::require;

void read_names(std::string_view bytes) {
  NameChunkReader reader(bytes);
  NameChunkWriter writer;
  std::string last;
  for (bool is_first = true; reader.next(); is_first = false) {
    require(is_first || last < reader.name(), "names are in order");
    last = reader.name();
    writer.add(last, reader.directory());
  }
  if (!reader.ok()) return;
  const std::string again = writer.take();
  NameChunkReader one(bytes);
  NameChunkReader other(again);
  while (one.next()) {
    require(other.next() && one.name() == other.name() && one.directory() == other.directory(),
            "what was read can be written again");
  }
  require(!other.next() && other.ok(), "with no more names");
}

void read_row(std::string_view bytes) {
  DirectoryRow row;
  if (!decode_row(bytes, row)) return;
  DirectoryRow again;
  require(decode_row(encode_row(row), again) && row == again, "what was read can be written again");
}

}  // namespace
}  // namespace spoor::scanner

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  spoor::scanner::read_names(bytes);
  spoor::scanner::read_row(bytes);
  return 0;
}
