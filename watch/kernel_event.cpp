#include "watch/kernel_event.h"

#include <fmt/core.h>
#include <sys/fanotify.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace spoor::watch {
namespace {

base::Error malformed(const char* what) {
  return {std::make_error_code(std::errc::bad_message),
          fmt::format("the kernel sent an event that this program does not understand: {}", what)};
}

// Copies a structure from the front of the bytes; the buffer may be unaligned.
template <class T>
std::optional<T> front(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

std::string to_string(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What follows the header of an information record: fsid, file handle, and a name where it has one.
std::optional<EntryName> read_record(std::span<const std::byte> record) {
  constexpr std::size_t fsid_bytes = sizeof(fanotify_event_info_fid::fsid);
  if (record.size() < fsid_bytes) return std::nullopt;
  record = record.subspan(fsid_bytes);
  const auto handle_bytes = front<std::uint32_t>(record);  // struct file_handle: handle_bytes, handle_type
  constexpr std::size_t type_offset = sizeof(std::uint32_t);
  constexpr std::size_t handle_offset = type_offset + sizeof(std::int32_t);
  if (!handle_bytes || record.size() < handle_offset || record.size() - handle_offset < *handle_bytes)
    return std::nullopt;
  EntryName entry{to_string(record.subspan(type_offset, sizeof(std::int32_t) + *handle_bytes)), {}};
  const auto name = record.subspan(handle_offset + *handle_bytes);
  const auto end = std::ranges::find(name, std::byte{0});
  if (end != name.end()) entry.name = to_string({name.begin(), end});
  return entry;
}

base::Result<KernelEvent> read_event(const fanotify_event_metadata& header,
                                     std::span<const std::byte> records) {
  KernelEvent event;
  event.mask = header.mask;
  while (!records.empty()) {
    const auto info = front<fanotify_event_info_header>(records);
    if (!info || info->len < sizeof(*info) || info->len > records.size())
      return malformed("a record's length");
    const auto record = records.subspan(sizeof(*info), info->len - sizeof(*info));
    records = records.subspan(info->len);
    const bool is_file = info->info_type == FAN_EVENT_INFO_TYPE_FID;
    const bool is_target = info->info_type == FAN_EVENT_INFO_TYPE_NEW_DFID_NAME;
    if (!is_file && !is_target && info->info_type != FAN_EVENT_INFO_TYPE_DFID_NAME &&
        info->info_type != FAN_EVENT_INFO_TYPE_OLD_DFID_NAME)
      continue;
    auto entry = read_record(record);
    if (!entry) return malformed("a record's handle");
    if (!is_file && entry->name.empty()) return malformed("a record without a name");
    if (is_file) {
      event.file = std::move(entry->directory);
    } else if (is_target) {
      event.target = std::move(entry);
    } else {
      event.entry = *std::move(entry);
    }
  }
  // One record suffices, whichever it is.
  if (event.entry.name.empty() && event.target) event.entry = *std::exchange(event.target, std::nullopt);
  if (event.entry.name.empty() && event.file.empty() && (event.mask & FAN_Q_OVERFLOW) == 0)
    return malformed("it names nothing");
  return event;
}

}  // namespace

base::Result<std::vector<KernelEvent>> decode_kernel_events(std::span<const std::byte> bytes) {
  std::vector<KernelEvent> events;
  while (!bytes.empty()) {
    const auto header = front<fanotify_event_metadata>(bytes);
    if (!header || header->event_len > bytes.size() || header->metadata_len < sizeof(*header) ||
        header->event_len < header->metadata_len)
      return malformed("its length");
    if (header->vers != FANOTIFY_METADATA_VERSION) return malformed("its version");
    auto event =
        read_event(*header, bytes.subspan(header->metadata_len, header->event_len - header->metadata_len));
    if (!event) return event.error();
    events.push_back(*std::move(event));
    bytes = bytes.subspan(header->event_len);
  }
  return events;
}

}  // namespace spoor::watch
