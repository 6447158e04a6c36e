#include "client/spool.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/byte_codec.h"
#include "base/checksum.h"
#include "base/printable.h"

namespace spoor::client {
namespace {

constexpr std::string_view magic = "spoormk1";
constexpr std::size_t header_bytes = magic.size() + sizeof(std::uint8_t);
constexpr std::size_t checksum_bytes = sizeof(std::uint64_t);
constexpr const char* name_end = ".marks";
constexpr const char* socket_file = "socket";
constexpr std::uint64_t socket_bytes_max = 4096;
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

Spool::Spool(base::FileSystem& files, std::filesystem::path directory, std::string socket,
             std::uint64_t bytes_max)
    : files_(&files), directory_(std::move(directory)), socket_(std::move(socket)), bytes_max_(bytes_max) {
  std::random_device random;
  own_name_ = fmt::format("{:08x}{:08x}", random(), random());
}

base::Result<Spool> Spool::open(base::FileSystem& files, const std::filesystem::path& directory,
                                const std::filesystem::path& socket, std::uint64_t bytes_max) {
  // A program may change its directory.
  Spool spool(files, std::filesystem::absolute(directory), std::filesystem::absolute(socket), bytes_max);
  const auto names = files.list_directory(spool.directory_);
  if (!names) return names.error();
  if (!std::ranges::binary_search(*names, socket_file)) {
    // Several clients may do it at a time.
    const auto own_file = spool.directory_ / (spool.own_name_ + '.' + socket_file);
    auto done = base::replace_file(files, own_file, spool.socket_);
    if (done) done = files.rename(own_file, spool.directory_ / socket_file);
    if (!done) return done.error();
  }
  if (auto done = spool.check_directory(); !done) return done.error();
  for (const std::string& name : *names) {
    std::error_code unknown;
    const auto size = std::filesystem::file_size(spool.directory_ / name, unknown);
    const std::uint64_t bytes = unknown ? 0 : size;
    if (name.ends_with(name_end)) spool.entries_.push_back({name, bytes});
    spool.bytes_ += bytes;
  }
  return spool;
}

base::Result<> Spool::check_directory() const {
  const auto socket = base::read_if_there(*files_, directory_ / socket_file, socket_bytes_max);
  if (!socket) return socket.error();
  if (*socket == socket_) return {};
  if (!*socket) {
    return base::Error(std::make_error_code(std::errc::no_such_file_or_directory),
                       fmt::format("the spool {0} is not the directory that was opened: {0}/{1} is missing",
                                   directory_.native(), socket_file));
  }
  return base::Error(
      std::make_error_code(std::errc::invalid_argument),
      fmt::format("the spool {0} has marks for the daemon at {1}, not {2}: use another directory, "
                  "or remove {0}/{3} if the socket was moved",
                  directory_.native(), base::printable(**socket), socket_, socket_file));
}

base::Result<> Spool::append(const MarkBatch& batch) {
  const std::string bytes = encode(batch);
  if (bytes_ + bytes.size() > bytes_max_ || entries_.size() >= files_max) {
    return base::Error(std::make_error_code(std::errc::no_space_on_device),
                       fmt::format("the spool {} is full", directory_.native()));
  }
  if (auto done = check_directory(); !done) return done;
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
    if (auto done = check_directory(); !done) return done.error();
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

void Spool::shorten_first(const MarkBatch& rest) {
  // By another file: several clients may shorten the same one at a time.
  if (append(rest)) (void)remove_first();
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
