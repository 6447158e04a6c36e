#include "scanner/walk/walk_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/byte_codec.h"
#include "base/checksum.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr std::string_view magic = "SPOORWLG";
constexpr std::uint32_t version = 5;
constexpr std::size_t files_bytes_max = 16U << 20U;  // of one directory: with more it is read again
constexpr std::size_t linked_max = 512U << 10U;      // likewise
constexpr std::size_t unwritten_max = 64;            // directories that a kill costs
constexpr std::size_t unwritten_bytes_max = 256U << 10U;
constexpr std::chrono::seconds sync_interval{30};  // what a power cut costs

std::string frame(std::string_view payload) {
  base::ByteWriter out;
  out.u64(payload.size());
  out.u64(base::checksum(payload));
  out.raw(payload);
  return out.take();
}

std::string header(std::uint64_t token, const WalkLog::Root& root) {
  base::ByteWriter out;
  out.raw(magic);
  out.u32(version);
  out.u64(token);
  out.u64(root.inode);
  out.u32(root.birth);
  out.raw(root.drive);
  return out.take();
}

void put_totals(base::ByteWriter& out, const Totals& totals) {
  out.u64(totals.files);
  out.u64(totals.bytes);
  out.u64(totals.allocated);
  out.u64(static_cast<std::uint64_t>(totals.mtime_ns));
}

Totals get_totals(base::ByteReader& in) {
  Totals totals;
  totals.files = in.u64();
  totals.bytes = in.u64();
  totals.allocated = in.u64();
  totals.mtime_ns = static_cast<std::int64_t>(in.u64());
  return totals;
}

std::size_t common_bytes(std::string_view a, std::string_view b) {
  const auto [end_of_a, end_of_b] = std::ranges::mismatch(a, b);
  return static_cast<std::size_t>(end_of_a - a.begin());
}

void put_read(base::ByteWriter& out, const DirectoryRead& read) {
  out.u64(read.handle.inode);
  out.u32(read.handle.birth);
  put_totals(out, read.listing.own);
  out.u64(read.listing.signature);
  out.u64(read.listing.entries);
  out.u8(read.listing.is_racy ? 1 : 0);
  out.u64(static_cast<std::uint64_t>(read.listing.ctime_ns));
  out.short_string(read.listing.owners);
  out.u64(read.listing.linked.size());
  for (const LinkedFile& file : read.listing.linked) {
    out.u64(file.inode);
    out.u64(file.bytes);
    out.u64(file.allocated);
    if (read.listing.owners.empty()) continue;
    const Owner owner = file.owner.value_or(Owner());
    out.u32(owner.uid);
    out.u32(owner.gid);
  }
  const Subdirectories& subdirectories = read.listing.subdirectories;
  out.u64(subdirectories.size());
  for (std::size_t number = 0; number < subdirectories.size(); ++number) {
    out.u64(subdirectories[number].inode);
    out.short_string(subdirectories[number].name);
  }
  if (!read.listing.files) return;
  const Files& files = *read.listing.files;
  out.u64(files.size());
  for (std::size_t number = 0; number < files.size(); ++number) {
    out.u64(files[number].signature);
    out.short_string(files[number].name);
  }
}

DirectoryRead get_read(base::ByteReader& in) {
  DirectoryRead read;
  read.handle.inode = in.u64();
  read.handle.birth = in.u32();
  read.listing.own = get_totals(in);
  read.listing.signature = in.u64();
  read.listing.entries = in.u64();
  read.listing.is_racy = in.u8() != 0;
  read.listing.ctime_ns = static_cast<std::int64_t>(in.u64());
  read.listing.owners = in.short_string();
  for (std::uint64_t left = in.u64(); left > 0 && in.ok(); --left) {
    LinkedFile& file = read.listing.linked.emplace_back();
    file.inode = in.u64();
    file.bytes = in.u64();
    file.allocated = in.u64();
    if (read.listing.owners.empty()) continue;
    file.owner.emplace();
    file.owner->uid = in.u32();
    file.owner->gid = in.u32();
  }
  for (std::uint64_t left = in.u64(); left > 0 && in.ok(); --left) {
    const std::uint64_t inode = in.u64();
    read.listing.subdirectories.add(in.short_string(), inode);
  }
  if (in.remaining() == 0) return read;
  Files& files = read.listing.files.emplace();
  for (std::uint64_t left = in.u64(); left > 0 && in.ok(); --left) {
    const std::uint64_t signature = in.u64();
    files.add(in.short_string(), signature);
  }
  return read;
}

}  // namespace

WalkLog::WalkLog(UnfinishedScan& scan, Root root, const base::Clock& clock)
    : scan_(scan),
      root_(std::move(root)),
      name_(fmt::format("{:016x}", base::checksum(root_.drive))),
      clock_(clock),
      files_to_read_(scan.log_files(name_)),
      goes_on_(!files_to_read_.empty()),
      synced_at_(clock.steady_now()) {
  std::ranges::reverse(files_to_read_);
  next_ = read_next();
}

bool WalkLog::open_next_file() {
  while (!files_to_read_.empty()) {
    const auto file = scan_.directory() / files_to_read_.back();
    files_to_read_.pop_back();
    std::error_code failure;
    left_in_file_ = std::filesystem::file_size(file, failure);
    in_ = std::ifstream(file, std::ios::binary);
    last_read_.clear();
    if (!failure && in_ && read_frame() == header(scan_.token(), root_)) return true;
  }
  left_in_file_ = 0;
  return false;
}

std::optional<std::string> WalkLog::read_frame() {
  std::string head(2 * sizeof(std::uint64_t), '\0');
  if (left_in_file_ < head.size() || !in_.read(head.data(), static_cast<std::streamsize>(head.size()))) {
    return std::nullopt;
  }
  left_in_file_ -= head.size();
  base::ByteReader reader(head);
  const std::uint64_t size = reader.u64();
  if (size > left_in_file_) return std::nullopt;
  std::string payload(size, '\0');
  if (!in_.read(payload.data(), static_cast<std::streamsize>(size))) return std::nullopt;
  left_in_file_ -= size;
  if (base::checksum(payload) != reader.u64()) return std::nullopt;
  return payload;
}

std::optional<WalkLog::Logged> WalkLog::read_next() {
  for (;;) {
    if (left_in_file_ == 0 && !open_next_file()) return std::nullopt;
    const auto payload = read_frame();
    if (payload) {
      base::ByteReader in(*payload);
      const std::uint64_t shared = in.u32();
      const std::string_view rest = in.raw(in.u32());
      if (shared <= last_read_.size()) {
        last_read_.resize(shared);
        last_read_ += rest;
        Logged logged{last_read_, get_read(in)};
        if (in.ok() && in.remaining() == 0) return logged;
      }
    }
    left_in_file_ = 0;  // what follows damage may have holes
  }
}

std::optional<DirectoryRead> WalkLog::take(std::string_view path) {
  while (next_ && tracker::is_before_in_walk(next_->path, path)) next_ = read_next();
  if (!next_ || next_->path != path) return std::nullopt;
  std::optional<DirectoryRead> read(std::move(next_->read));
  next_ = read_next();
  return read;
}

void WalkLog::add(std::string_view path, const DirectoryRead& read) {
  if (is_replaying() || failure_) return;
  if (read.listing.files && read.listing.files->memory_bytes() > files_bytes_max) return;
  if (read.listing.linked.size() > linked_max) return;
  base::ByteWriter out;
  const std::size_t shared = common_bytes(last_added_, path);
  out.u32(static_cast<std::uint32_t>(shared));
  out.u32(static_cast<std::uint32_t>(path.size() - shared));
  out.raw(path.substr(shared));
  put_read(out, read);
  last_added_ = path;
  unwritten_ += frame(out.bytes());
  ++unwritten_count_;
  if (is_due()) flush();
}

bool WalkLog::is_due() const {
  if (unwritten_count_ < unwritten_max && unwritten_.size() < unwritten_bytes_max) return false;
  return out_ || goes_on_ || unwritten_.size() >= unlogged_bytes_max ||
         clock_.steady_now() - synced_at_ >= unlogged_max;
}

void WalkLog::flush() {
  if (unwritten_.empty() || failure_) return;
  if (const auto written = write_buffer(); !written) {
    failure_ = written.error();
    out_.reset();
  }
  unwritten_.clear();
  unwritten_count_ = 0;
}

base::Result<> WalkLog::write_buffer() {
  if (auto room = scan_.check_space(unwritten_.size()); !room) return room;
  if (!out_) {
    auto opened = scan_.add_log_file(name_);
    if (!opened) return opened.error();
    out_ = std::move(*opened);
    if (auto begun = out_->append(frame(header(scan_.token(), root_))); !begun) return begun;
  }
  if (auto written = out_->append(unwritten_); !written) return written;
  const base::SteadyTime now = clock_.steady_now();
  if (now - synced_at_ < sync_interval) return {};
  synced_at_ = now;
  return out_->sync();
}

}  // namespace spoor::scanner
