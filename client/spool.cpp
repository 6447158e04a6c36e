#include "client/spool.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "base/byte_codec.h"
#include "base/checksum.h"

namespace spoor::client {
namespace {

constexpr std::string_view magic = "spoormk1";
constexpr const char* name_end = ".marks";
constexpr std::uint64_t file_bytes_max = std::uint64_t{256} << 20U;
constexpr std::size_t files_max = 100'000;

std::string encode(const std::deque<MarkBatch>& batches) {
  base::ByteWriter writer;
  writer.raw(magic);
  writer.u32(static_cast<std::uint32_t>(batches.size()));
  for (const MarkBatch& batch : batches) {
    writer.u8(static_cast<std::uint8_t>(batch.kind));
    writer.u32(static_cast<std::uint32_t>(batch.paths.size()));
    writer.raw(batch.paths);
  }
  const std::uint64_t sum = base::checksum(writer.bytes());
  writer.u64(sum);
  return writer.take();
}

// Nothing if the bytes are no whole file.
std::optional<std::deque<MarkBatch>> decode(std::string_view bytes) {
  if (bytes.size() < magic.size() + sizeof(std::uint64_t) || !bytes.starts_with(magic)) return std::nullopt;
  const std::string_view content = bytes.substr(0, bytes.size() - sizeof(std::uint64_t));
  if (base::ByteReader(bytes.substr(content.size())).u64() != base::checksum(content)) return std::nullopt;
  base::ByteReader reader(content.substr(magic.size()));
  std::deque<MarkBatch> batches;
  for (std::uint32_t left = reader.u32(); left > 0 && reader.ok(); --left) {
    const auto kind = reader.u8();
    const std::string_view paths = reader.raw(reader.u32());
    if (!reader.ok() || kind >= mark_kinds || paths.empty() || paths.back() != '\0') return std::nullopt;
    batches.push_back({.kind = static_cast<MarkKind>(kind),
                       .paths = std::string(paths),
                       .count = static_cast<std::uint64_t>(std::ranges::count(paths, '\0'))});
  }
  if (!reader.ok() || reader.remaining() > 0) return std::nullopt;
  return batches;
}

}  // namespace

Spool::Spool(base::FileSystem& files, std::filesystem::path directory, std::uint64_t bytes_max)
    : files_(&files), directory_(std::move(directory)), bytes_max_(bytes_max) {
  std::random_device random;
  own_name_ = fmt::format("{:08x}{:08x}", random(), random());
}

base::Result<Spool> Spool::open(base::FileSystem& files, std::filesystem::path directory,
                                std::uint64_t bytes_max) {
  Spool spool(files, std::move(directory), bytes_max);
  const auto names = files.list_directory(spool.directory_);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (name.ends_with(name_end)) spool.names_.push_back(name);
  }
  return spool;
}

base::Result<> Spool::append(const std::deque<MarkBatch>& batches) {
  const std::string bytes = encode(batches);
  if (bytes.size() > file_bytes_max || bytes_ + bytes.size() > bytes_max_ || names_.size() >= files_max) {
    return base::Error(std::make_error_code(std::errc::no_space_on_device),
                       fmt::format("the spool {} is full", directory_.native()));
  }
  std::string name = fmt::format("{}-{}{}", own_name_, written_, name_end);
  if (auto done = base::replace_file(*files_, directory_ / name, bytes); !done) return done;
  ++written_;
  bytes_ += bytes.size();
  names_.push_back(std::move(name));
  return {};
}

base::Result<> Spool::deliver(const std::function<bool(MarkBatch& batch)>& send) {
  base::Result<> result;
  while (!names_.empty()) {
    const auto file = directory_ / names_.front();
    const auto bytes = base::read_if_there(*files_, file, file_bytes_max);
    if (!bytes) return bytes.error();
    if (*bytes) {  // else another client has sent it
      auto batches = decode(**bytes);
      if (batches) {
        for (MarkBatch& batch : *batches) {
          if (!send(batch)) return result;
        }
        // If it is not durable, the marks are sent again.
        if (auto done = files_->remove(file);
            !done && done.error().code != std::errc::no_such_file_or_directory)
          return done;
      } else {
        auto kept = file;
        if (auto done = files_->rename(file, kept += ".damaged"); !done) return done;
        result = base::Error(
            std::make_error_code(std::errc::io_error),
            fmt::format("{} is damaged, and its marks are lost: run `spoor scan --full`", kept.native()));
      }
    }
    names_.pop_front();
  }
  bytes_ = 0;
  return result;
}

}  // namespace spoor::client
