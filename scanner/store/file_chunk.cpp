#include "scanner/store/file_chunk.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace spoor::scanner {
namespace {

constexpr std::size_t name_bytes_max = 0xFFFF;
constexpr std::string_view never_in_names("/\0", 2);

}  // namespace

void FileChunkWriter::add(const File& file) {
  const auto [end_of_last, end_of_name] = std::ranges::mismatch(last_name_, file.name);
  const auto shared = static_cast<std::size_t>(end_of_last - last_name_.begin());
  out_.u16(static_cast<std::uint16_t>(shared));
  out_.short_string(file.name.substr(shared));
  out_.u64(file.signature);
  last_name_ = file.name;
}

std::string FileChunkWriter::take() {
  last_name_.clear();
  return std::exchange(out_, {}).take();
}

std::optional<File> FileChunkReader::next() {
  if (!is_ok_ || in_.remaining() == 0) return std::nullopt;
  const std::size_t shared = in_.u16();
  const std::string_view rest = in_.short_string();
  const std::uint64_t signature = in_.u64();
  is_ok_ = in_.ok() && shared <= name_.size() && rest > std::string_view(name_).substr(shared) &&
           shared + rest.size() <= name_bytes_max &&
           rest.find_first_of(never_in_names) == std::string_view::npos;
  if (!is_ok_) return std::nullopt;
  name_.resize(shared);
  name_ += rest;
  return File{name_, signature};
}

}  // namespace spoor::scanner
