#include "scanner/walk/unfinished_scan.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <utility>

#include "base/byte_codec.h"
#include "base/checksum.h"
#include "tracker/storage/mark_set_codec.h"

namespace spoor::scanner {
namespace {

constexpr std::string_view magic = "SPOORUNF";
constexpr std::uint32_t version = 5;
constexpr const char* head_name = "scan";
constexpr std::uint64_t head_bytes_max = std::uint64_t{4} << 30U;
constexpr std::uint64_t kept_free_min = std::uint64_t{512} << 20U;
constexpr std::uint64_t kept_free_max = std::uint64_t{2} << 30U;

void put_input(base::ByteWriter& out, const ScanInput& input) {
  tracker::encode_peer_book(out, input.book);
  out.u64(input.start_level);
  out.u64(static_cast<std::uint64_t>(input.started_at.time_since_epoch().count()));
  out.u64(input.cycle.value);
  out.u8(input.partial ? 1 : 0);
  out.text(input.everything);
  tracker::encode_mark_groups(out, input.marks);
}

std::optional<ScanInput> get_input(base::ByteReader& in) {
  ScanInput input;
  input.book = tracker::decode_peer_book(in);
  input.start_level = in.u64();
  input.started_at = base::WallTime(std::chrono::nanoseconds(static_cast<std::int64_t>(in.u64())));
  input.cycle = {in.u64()};
  input.partial = in.u8() != 0;
  input.everything = in.text();
  auto marks = tracker::decode_mark_groups(in);
  if (!marks || !in.ok() || in.remaining() != 0) return std::nullopt;
  input.marks = *std::move(marks);
  input.marks.unpack();
  return input;
}

std::uint64_t random_token() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

std::string log_file_name(const std::string& log, std::uint64_t number) {
  return fmt::format("{}.{:06}", log, number);
}

}  // namespace

std::string encode_setting(std::string_view database, std::uint64_t scan, const ScanOptions& options) {
  base::ByteWriter out;
  out.text(database);
  out.u64(scan);
  out.text(options.rules.fingerprint());
  out.u64(options.drives.size());
  for (const Drive& drive : options.drives) {
    out.text(drive.path.native());
    out.text(drive.gap);
    out.u8(drive.gap_reason.empty() ? 0 : 1);
  }
  out.u8(options.file_feed ? 1 : 0);
  out.u8(options.owners_depth ? 1 : 0);
  out.text(options.own_marks_of);
  return out.take();
}

UnfinishedScan::UnfinishedScan(std::filesystem::path directory, base::FileSystem& files)
    : directory_(std::move(directory)), files_(files), token_(random_token()) {}

std::optional<ScanInput> UnfinishedScan::find(std::string_view setting) {
  const auto bytes = files_.read(directory_ / head_name, head_bytes_max);
  if (!bytes || bytes->size() < sizeof(std::uint64_t)) return std::nullopt;
  const std::string_view checked = std::string_view(*bytes).substr(0, bytes->size() - sizeof(std::uint64_t));
  if (base::ByteReader(std::string_view(*bytes).substr(checked.size())).u64() != base::checksum(checked)) {
    return std::nullopt;
  }
  base::ByteReader in(checked);
  if (in.raw(magic.size()) != magic || in.u32() != version) return std::nullopt;
  const std::uint64_t token = in.u64();
  if (in.raw(setting.size()) != setting) return std::nullopt;
  const bool was_full = in.u8() != 0;
  auto input = get_input(in);
  if (!input) return std::nullopt;
  token_ = token;
  is_written_ = true;
  if (was_full && input->everything.empty()) input->everything = "a full scan was asked for";
  return input;
}

void UnfinishedScan::begin(std::string setting, const ScanInput& input, bool full) {
  if (is_written_) return;
  remove();
  setting_ = std::move(setting);
  input_ = &input;
  full_ = full;
}

base::Result<> UnfinishedScan::write() {
  if (is_written_) return {};
  if (auto room = check_space(); !room) return room;
  if (auto made = files_.create_directory(directory_); !made) return made;
  if (auto synced = files_.sync_directory(directory_.parent_path()); !synced) return synced;
  base::ByteWriter out;
  out.raw(magic);
  out.u32(version);
  out.u64(token_);
  out.raw(setting_);
  out.u8(full_ ? 1 : 0);
  put_input(out, *input_);
  const std::uint64_t checksum = base::checksum(out.bytes());
  out.u64(checksum);
  if (auto written = base::replace_file(files_, directory_ / head_name, out.bytes()); !written)
    return written;
  is_written_ = true;
  return {};
}

base::Result<> UnfinishedScan::check_space(std::uint64_t bytes) const {
  const auto folder = directory_.parent_path();
  const auto space = files_.space(folder);
  if (!space) return space.error();
  const std::uint64_t kept = std::clamp(space->bytes / 20, kept_free_min, kept_free_max);
  if (space->free_bytes >= kept + bytes) return {};
  return base::Error(std::make_error_code(std::errc::no_space_on_device),
                     fmt::format("{} MiB are free in {}, and {} MiB are to stay free",
                                 space->free_bytes >> 20U, folder.native(), kept >> 20U));
}

// The head first: without it, the other files are ignored.
void UnfinishedScan::remove() {
  is_written_ = false;
  token_ = random_token();
  if (const auto names = files_.list_directory(directory_)) {
    static_cast<void>(files_.remove(directory_ / head_name));
    for (const std::string& name : *names) static_cast<void>(files_.remove(directory_ / name));
  }
  static_cast<void>(files_.remove_directory(directory_));
}

std::vector<std::string> UnfinishedScan::log_files(const std::string& log) const {
  std::vector<std::string> found;
  if (!is_written_) return found;
  const auto names = files_.list_directory(directory_);
  if (!names) return found;
  std::ranges::copy_if(*names, std::back_inserter(found),
                       [&](const std::string& name) { return name.starts_with(log + "."); });
  return found;
}

base::Result<std::unique_ptr<base::OutputFile>> UnfinishedScan::add_log_file(const std::string& log) {
  if (auto written = write(); !written) return written.error();
  const auto before = files_.list_directory(directory_);
  if (!before) return before.error();
  std::uint64_t number = 1;
  while (std::ranges::binary_search(*before, log_file_name(log, number))) ++number;
  return files_.create(directory_ / log_file_name(log, number));
}

}  // namespace spoor::scanner
