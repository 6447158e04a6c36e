#include "client/spool.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/byte_codec.h"
#include "base/checksum.h"

namespace spoor::client {
namespace {

constexpr std::string_view magic = "spoormk1";
constexpr std::size_t header_bytes = magic.size() + sizeof(std::uint8_t);
constexpr std::size_t checksum_bytes = sizeof(std::uint64_t);
constexpr const char* name_end = ".marks";
constexpr std::uint64_t file_bytes_max = std::uint64_t{1} << 20U;
constexpr std::size_t files_max = 100'000;

std::string encode(const MarkBatch& batch) {
  base::ByteWriter writer;
  writer.reserve(header_bytes + batch.paths.size() + checksum_bytes);
  writer.raw(magic);
  writer.u8(static_cast<std::uint8_t>(batch.kind));
  writer.raw(batch.paths);
  writer.u64(base::checksum(writer.bytes()));
  return writer.take();
}

// Nothing if the bytes are no whole file.
std::optional<MarkBatch> decode(std::string_view bytes) {
  if (bytes.size() <= header_bytes + checksum_bytes || !bytes.starts_with(magic)) return std::nullopt;
  const std::string_view content = bytes.substr(0, bytes.size() - checksum_bytes);
  if (base::ByteReader(bytes.substr(content.size())).u64() != base::checksum(content)) return std::nullopt;
  const auto kind = static_cast<std::uint8_t>(content[magic.size()]);
  const std::string_view paths = content.substr(header_bytes);
  if (kind > static_cast<std::uint8_t>(MarkKind::tree) || paths.back() != '\0') return std::nullopt;
  return MarkBatch{.kind = static_cast<MarkKind>(kind),
                   .paths = std::string(paths),
                   .count = static_cast<std::uint64_t>(std::ranges::count(paths, '\0'))};
}

}  // namespace

Spool::Spool(base::FileSystem& files, std::filesystem::path directory, std::uint64_t bytes_max)
    : files_(&files), directory_(std::move(directory)), bytes_max_(bytes_max) {
  std::random_device random;
  own_name_ = fmt::format("{:08x}{:08x}", random(), random());
}

base::Result<Spool> Spool::open(base::FileSystem& files, const std::filesystem::path& directory,
                                std::uint64_t bytes_max) {
  Spool spool(files, std::filesystem::absolute(directory), bytes_max);  // a program may change its directory
  const auto names = files.list_directory(spool.directory_);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (!name.ends_with(name_end)) continue;
    std::error_code unknown;
    const auto bytes = std::filesystem::file_size(spool.directory_ / name, unknown);
    spool.entries_.push_back({name, unknown ? 0 : bytes});
    spool.bytes_ += spool.entries_.back().bytes;
  }
  return spool;
}

base::Result<> Spool::append(const MarkBatch& batch) {
  const std::string bytes = encode(batch);
  if (bytes_ + bytes.size() > bytes_max_ || entries_.size() >= files_max) {
    return base::Error(std::make_error_code(std::errc::no_space_on_device),
                       fmt::format("the spool {} is full", directory_.native()));
  }
  // A name is used once, also if the file may be there after a failure.
  Entry entry{fmt::format("{}-{}{}", own_name_, written_++, name_end), bytes.size()};
  if (auto done = base::replace_file(*files_, directory_ / entry.name, bytes); !done) return done;
  bytes_ += bytes.size();
  entries_.push_back(std::move(entry));
  return {};
}

base::Result<std::optional<MarkBatch>> Spool::first() {
  const auto file = first_file();
  const auto bytes = base::read_if_there(*files_, file, file_bytes_max);
  if (!bytes) return bytes.error();
  if (!*bytes) {
    // The directory may be the one that is gone.
    if (const auto names = files_->list_directory(directory_); !names) return names.error();
    forget_first();
    return std::optional<MarkBatch>();
  }
  if (auto batch = decode(**bytes)) return batch;
  auto kept = file;
  kept += ".damaged";
  const auto renamed = files_->rename(file, kept);
  if (!renamed && renamed.error().code != std::errc::no_such_file_or_directory) return renamed.error();
  forget_first();
  return base::Error(
      std::make_error_code(std::errc::bad_message),
      fmt::format("{} is damaged, and its marks are lost: run `spoor scan --full`", kept.native()));
}

base::Result<> Spool::remove_first() {
  // If the removal does not survive a power cut, the marks are sent again.
  auto removed = files_->remove(first_file());
  if (!removed && removed.error().code != std::errc::no_such_file_or_directory) return removed;
  forget_first();
  return {};
}

void Spool::skip_first() {
  entries_.push_back(std::move(entries_.front()));
  entries_.pop_front();
}

void Spool::forget_first() {
  bytes_ -= entries_.front().bytes;
  entries_.pop_front();
}

}  // namespace spoor::client
