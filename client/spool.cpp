#include "client/spool.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <system_error>
#include <unordered_map>
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
constexpr const char* damaged_end = ".damaged";
constexpr const char* socket_end = ".socket";
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
  if (auto done = spool.identify(); !done) return done.error();
  if (auto done = spool.look(); !done) return done.error();
  return spool;
}

// Several clients may do it at a time, for several daemons: each writes a file of its own, and then looks for
// those of others.
base::Result<> Spool::identify() {
  auto names = files_->list_directory(directory_);
  if (!names) return names.error();
  if (auto found = find_identity(*names); !found || !identity_.empty()) return found;
  const auto own_file = directory_ / (own_name_ + socket_end);
  if (auto done = base::replace_file(*files_, own_file, socket_); !done) return done;
  names = files_->list_directory(directory_);
  if (!names) return names.error();
  auto found = find_identity(*names);
  if (!found) (void)files_->remove(own_file);
  if (found && identity_.empty()) return other_directory();
  return found;
}

// Fails if the directory has marks for another daemon.
base::Result<> Spool::find_identity(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!name.ends_with(socket_end)) continue;
    const auto socket = files_->read(directory_ / name, socket_bytes_max);
    if (!socket) return socket.error();
    if (*socket != socket_) {
      return base::Error(
          std::make_error_code(std::errc::invalid_argument),
          fmt::format("the spool {0} has marks for the daemon at {1}, not {2}: use another directory, "
                      "or remove {0}/{3} if the socket was moved",
                      directory_.native(), base::printable(*socket), socket_, base::printable(name)));
    }
    if (identity_.empty()) identity_ = name;
  }
  return {};
}

base::Result<> Spool::check_directory() const {
  const auto socket = base::read_if_there(*files_, directory_ / identity_, socket_bytes_max);
  if (!socket) return socket.error();
  return *socket ? base::Result<>() : other_directory();
}

base::Error Spool::other_directory() const {
  return {std::make_error_code(std::errc::no_such_file_or_directory),
          fmt::format("the spool {0} is not the directory that was opened: {0}/{1} is missing",
                      directory_.native(), identity_)};
}

// Learns what is in the directory: the entries that are known stay in their order.
base::Result<> Spool::look() {
  const auto names = files_->list_directory(directory_);
  if (!names) return names.error();
  const auto is_there = [&](const std::string& name) { return std::ranges::binary_search(*names, name); };
  if (!is_there(identity_)) return other_directory();
  std::deque<Entry> entries;
  std::vector<std::string> damaged = damaged_;
  std::unordered_map<std::string, std::uint64_t> known;
  for (const Entry& entry : entries_) {
    known.emplace(entry.name, entry.bytes);
    if (is_there(entry.name)) entries.push_back(entry);
    // Another client has set it aside.
    else if (is_there(entry.name + damaged_end))
      damaged.push_back(entry.name);
  }
  std::uint64_t all_bytes = 0;
  for (const std::string& name : *names) {
    const auto it = known.find(name);
    std::error_code unknown;
    std::uint64_t bytes =
        it != known.end() ? it->second : std::filesystem::file_size(directory_ / name, unknown);
    if (unknown) bytes = 0;
    all_bytes += bytes;
    if (it == known.end() && name.ends_with(name_end) && std::ranges::find(damaged, name) == damaged.end())
      entries.push_back({name, bytes});
  }
  entries_.swap(entries);
  damaged_.swap(damaged);
  bytes_ = all_bytes;
  bytes_since_look_ = 0;
  return {};
}

bool Spool::has_room(std::uint64_t bytes) const {
  return bytes_ + bytes <= bytes_max_ && entries_.size() < files_max;
}

base::Result<> Spool::append(const MarkBatch& batch) {
  const std::string bytes = encode(batch);
  if (bytes.size() > file_bytes_max)  // first() would not read it
    return base::Error(std::make_error_code(std::errc::file_too_large),
                       "the batch is too large for the spool");
  // Others write and send, too.
  if (!has_room(bytes.size()) || bytes_since_look_ > bytes_max_ / 16) {
    if (auto done = look(); !done) return done;
  }
  if (!has_room(bytes.size())) {
    return base::Error(std::make_error_code(std::errc::no_space_on_device),
                       fmt::format("the spool {} is full", directory_.native()));
  }
  if (auto done = check_directory(); !done) return done;
  // A name is used once, also if the file may be there after a failure.
  Entry entry{fmt::format("{}-{}{}", own_name_, written_++, name_end), bytes.size()};
  if (auto done = base::replace_file(*files_, directory_ / entry.name, bytes); !done) return done;
  bytes_ += bytes.size();
  bytes_since_look_ += bytes.size();
  entries_.push_back(std::move(entry));
  return {};
}

base::Result<std::optional<Spool::File>> Spool::first() {
  const std::string name = first_name();
  const auto bytes = base::read_if_there(*files_, directory_ / name, file_bytes_max);
  if (!bytes) return bytes.error();
  if (!*bytes) {
    // Another client has sent it, or put another file with the rest of its marks in its place.
    if (auto done = look(); !done) return done.error();
    if (entries_.empty() || first_name() != name) return std::optional<File>();
    return base::Error(std::make_error_code(std::errc::no_such_file_or_directory),
                       fmt::format("{} is not a regular file", (directory_ / name).native()));
  }
  if (auto batch = decode(**bytes)) return File{name, *std::move(batch)};
  damaged_.push_back(name);
  forget(name);
  return base::Error(std::make_error_code(std::errc::bad_message), "a file of the spool is damaged");
}

std::optional<std::string> Spool::set_damaged_aside() {
  if (damaged_.empty()) return std::nullopt;
  const auto first = directory_ / (damaged_.front() + damaged_end);
  const std::string others = damaged_.size() == 1 ? "" : fmt::format(" and {} more", damaged_.size() - 1);
  std::string lost = fmt::format("damaged, and its marks are lost: {}{}; run `spoor scan --full`",
                                 base::printable(first.native()), others);
  // One that keeps its name is found again.
  for (const std::string& name : damaged_)
    (void)files_->rename(directory_ / name, directory_ / (name + damaged_end));
  damaged_.clear();
  return lost;
}

base::Result<> Spool::remove(const std::string& name) {
  // If the removal does not survive a power cut, the marks are sent again.
  auto removed = files_->remove(directory_ / name);
  if (!removed && removed.error().code != std::errc::no_such_file_or_directory) return removed;
  forget(name);
  return {};
}

void Spool::shorten(const File& rest) {
  // By another file: several clients may shorten the same one at a time.
  if (append(rest.batch)) (void)remove(rest.name);
}

void Spool::put_last(const std::string& name) {
  const auto entry = std::ranges::find(entries_, name, &Entry::name);
  if (entry != entries_.end()) std::rotate(entry, entry + 1, entries_.end());
}

void Spool::forget(const std::string& name) {
  const auto entry = std::ranges::find(entries_, name, &Entry::name);
  if (entry == entries_.end()) return;
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

}  // namespace spoor::client
