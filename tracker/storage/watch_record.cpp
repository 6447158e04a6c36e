#include "tracker/storage/watch_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/printable.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

using nlohmann::json;

constexpr std::uint64_t record_bytes_max = 16U << 20U;
constexpr int version = 1;

std::filesystem::path record_file(const std::filesystem::path& data_dir) { return data_dir / "watch.json"; }

std::int64_t nanoseconds(base::WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

base::WallTime wall_time(const json& value) {
  return base::WallTime(std::chrono::nanoseconds(value.get_ref<const json::number_integer_t&>()));
}

// The path is stored as base64, too: paths are bytes, JSON is UTF-8.
json to_json(const WatchedDrive& drive) {
  const WatchFigures& figures = drive.figures;
  return {{"path", base::printable(drive.drive.native())},
          {"path_base64", base::to_base64(drive.drive.native())},
          {"wanted", drive.is_wanted},
          {"gap",
           {{"id", drive.gap.id},
            {"reason", base::printable(drive.gap.reason)},
            {"at_ns", nanoseconds(drive.gap.at)}}},
          {"error", base::printable(drive.error)},
          {"events", figures.events},
          {"marks", figures.marks},
          {"coalesced", figures.coalesced},
          {"gaps", figures.gaps},
          {"queue_bytes_max", figures.queue_bytes_max},
          {"pending_marks", figures.pending_marks},
          {"lag_s", figures.lag_seconds}};
}

// Throws json::exception, as all below, also for a number with a fraction.
std::uint64_t count(const json& object, const char* name) {
  return object.at(name).get_ref<const json::number_unsigned_t&>();
}

WatchedDrive read_drive(const json& value) {
  WatchedDrive drive;
  drive.drive = base::from_base64(value.at("path_base64").get<std::string>()).value_or("");
  drive.is_wanted = value.at("wanted").get<bool>();
  const json& gap = value.at("gap");
  drive.gap = {gap.at("id").get<std::string>(), gap.at("reason").get<std::string>(),
               wall_time(gap.at("at_ns"))};
  drive.error = value.at("error").get<std::string>();
  drive.figures = {.events = count(value, "events"),
                   .marks = count(value, "marks"),
                   .coalesced = count(value, "coalesced"),
                   .gaps = count(value, "gaps"),
                   .queue_bytes_max = count(value, "queue_bytes_max"),
                   .pending_marks = count(value, "pending_marks"),
                   .lag_seconds = value.at("lag_s").get<double>()};
  return drive;
}

std::optional<WatchRecord> parse(const std::string& text) {
  try {
    const json document = json::parse(text);
    if (document.at("version") != version) return std::nullopt;
    WatchRecord record;
    record.written_at = wall_time(document.at("written_at_ns"));
    for (const json& drive : document.at("drives")) record.drives.push_back(read_drive(drive));
    return record;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

const WatchedDrive* WatchRecord::find(const std::filesystem::path& drive) const {
  const auto found = std::ranges::find(drives, drive, &WatchedDrive::drive);
  return found == drives.end() ? nullptr : &*found;
}

base::Result<std::optional<WatchRecord>> read_watch_record(base::FileSystem& files,
                                                           const std::filesystem::path& data_dir) {
  const auto file = record_file(data_dir);
  const auto text = base::read_if_there(files, file, record_bytes_max);
  if (!text) return text.error();
  if (!*text) return std::optional<WatchRecord>();
  auto record = parse(**text);
  if (!record) {
    return base::Error(
        Errc::snapshot_corrupt,
        fmt::format("{} is corrupt: restart spoor-watch, which writes it anew", file.native()));
  }
  return record;
}

base::Result<> write_watch_record(base::FileSystem& files, const std::filesystem::path& data_dir,
                                  const WatchRecord& record) {
  json drives = json::array();
  for (const WatchedDrive& drive : record.drives) drives.push_back(to_json(drive));
  const json document = {
      {"version", version}, {"written_at_ns", nanoseconds(record.written_at)}, {"drives", std::move(drives)}};
  return base::replace_file(files, record_file(data_dir),
                            document.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

std::filesystem::path watch_lock_file(const std::filesystem::path& data_dir) {
  return data_dir / "watch.lock";
}

}  // namespace spoor::tracker
