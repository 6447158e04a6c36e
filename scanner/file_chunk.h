// Some files of one directory, by name, as the database keeps them in a row (docs/formats.md).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_codec.h"
#include "scanner/files.h"

namespace spoor::scanner {

// Not thread-safe.
class FileChunkWriter {
 public:
  // Its name has 1 to 65,535 bytes, and sorts behind the one before.
  void add(const File& file);

  std::size_t size_bytes() const { return out_.bytes().size(); }
  bool empty() const { return out_.bytes().empty(); }

  // What was added. Begins anew.
  std::string take();

 private:
  base::ByteWriter out_;
  std::string last_name_;
};

// Not thread-safe. The bytes must outlive it.
class FileChunkReader {
 public:
  explicit FileChunkReader(std::string_view bytes) : in_(bytes) {}

  // The next one, valid until the next call; nothing at the end, or where the bytes are no chunk.
  std::optional<File> next();

  // Whether there was no end but that of a chunk.
  bool ok() const { return is_ok_; }

 private:
  base::ByteReader in_;
  std::string name_;
  bool is_ok_ = true;
};

}  // namespace spoor::scanner
