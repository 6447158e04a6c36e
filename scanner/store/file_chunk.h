// A chunk: some files of one directory, by name, as stored in one row of the database (docs/formats.md).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_codec.h"
#include "scanner/store/files.h"

namespace spoor::scanner {

// Not thread-safe.
class FileChunkWriter {
 public:
  // The name has 1 to 65,535 bytes, and sorts after the previous one.
  void add(const File& file);

  std::size_t size_bytes() const { return out_.bytes().size(); }
  bool empty() const { return out_.bytes().empty(); }

  // Returns the files added so far, and starts an empty chunk.
  std::string take();

 private:
  base::ByteWriter out_;
  std::string last_name_;
};

// Not thread-safe. The bytes must outlive it.
class FileChunkReader {
 public:
  explicit FileChunkReader(std::string_view bytes) : in_(bytes) {}

  // The next file, valid until the next call; nothing at the end, or if the bytes are not a valid chunk.
  std::optional<File> next();

  // False once next() has read invalid bytes.
  bool ok() const { return is_ok_; }

 private:
  base::ByteReader in_;
  std::string name_;
  bool is_ok_ = true;
};

}  // namespace spoor::scanner
