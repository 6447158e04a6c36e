#include "tracker/storage/drive_registry.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/data_dir.h"
#include "base/printable.h"
#include "tracker/cycles/ids.h"
#include "tracker/errors.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t registry_bytes_max = 16U << 20U;

fs::path registry_file(const fs::path& data_dir) { return data_dir / base::data_dir::drives; }
fs::path identity_file(const fs::path& drive) { return drive / drive_identity_file; }

// Paths are bytes, JSON is UTF-8: each byte is encoded as the code point of the same number.
std::string to_json_text(const fs::path& path) {
  std::string text;
  for (const char byte : path.native()) {
    const auto code = static_cast<unsigned char>(byte);
    if (code < 0x80U) {
      text += byte;
    } else {
      text += static_cast<char>(0xc0U | (code >> 6U));
      text += static_cast<char>(0x80U | (code & 0x3fU));
    }
  }
  return text;
}

// An id in a file: the 32 hex digits of 128 random bits.
std::optional<std::string> read_hex_id(const nlohmann::json& value) {
  if (!value.is_string()) return std::nullopt;
  const auto id = InstanceId::parse(value.get<std::string>());
  if (!id) return std::nullopt;
  return id->to_string();
}

base::Error refusal(const fs::path& drive, const std::string& why) {
  const std::string path = base::printable(drive.native());
  return {Errc::drive_refused,
          fmt::format("{} {}: it is not mounted, or was replaced. Mount it; or, if it is the drive from now "
                      "on, run: spoor drives accept {}",
                      path, why, path)};
}

}  // namespace

fs::path spoor_directory(const fs::path& drive) { return drive / ".spoor"; }

std::optional<std::string> parse_drive_identity(std::string_view content) {
  const auto json = nlohmann::json::parse(content, nullptr, false);
  return json.is_object() && json.contains("id") ? read_hex_id(json["id"]) : std::nullopt;
}

std::string format_drive_stamp(const DriveStamp& stamp) {
  return fmt::format("{} {}\n", stamp.stamp, stamp.before);
}

std::optional<DriveStamp> parse_drive_stamp(std::string_view content) {
  const std::size_t space = content.find(' ');
  if (space == std::string_view::npos || !content.ends_with('\n')) return std::nullopt;
  DriveStamp stamp{std::string(content.substr(0, space)), std::string(content.substr(space + 1))};
  stamp.before.pop_back();
  const bool is_valid =
      InstanceId::parse(stamp.stamp) && (stamp.before.empty() || InstanceId::parse(stamp.before));
  return is_valid ? std::optional(std::move(stamp)) : std::nullopt;
}

base::Result<> DriveRegistry::load(const std::vector<fs::path>& drives) {
  ids_.clear();
  const auto text = read_if_there(files_, registry_file(data_dir_), registry_bytes_max);
  if (text && !*text) return {};
  std::string why = text ? "it is corrupt" : text.error().message;
  const auto json = text ? nlohmann::json::parse(**text, nullptr, false) : nlohmann::json();
  const bool is_whole = json.is_object() && json.contains("drives") && json["drives"].is_object();
  for (const fs::path& drive : drives) {
    if (is_whole) {
      const auto key = to_json_text(drive);
      if (json["drives"].contains(key)) ids_[drive] = read_hex_id(json["drives"][key]).value_or("");
    } else {
      const auto id = read_id(drive);
      if (!id || !*id) ids_[drive] = "";
    }
  }
  if (is_whole) return {};
  return base::Error(Errc::drive_refused,
                     fmt::format("{}: {}; drives that carry no identity are refused until accepted",
                                 registry_file(data_dir_).native(), why));
}

base::Result<DriveIdentity> DriveRegistry::check(const fs::path& drive) const {
  const auto remembered = find_id(drive);
  if (!remembered) return DriveIdentity::fresh;
  const auto id = read_id(drive);
  if (!id) return refusal(drive, fmt::format("has an identity that can't be read ({})", id.error().message));
  if (!*id) return refusal(drive, "carries no identity (.spoor/drive.json)");
  if (**id == *remembered) return DriveIdentity::known;
  const auto owners = others_with(**id, {});
  const std::string owner = owners.empty() ? **id + ", of no drive of this node"
                                           : "that of " + base::printable(owners.front().native());
  return refusal(drive, fmt::format("carries another drive's identity ({})", owner));
}

std::optional<std::string> DriveRegistry::find_id(const fs::path& drive) const {
  const std::scoped_lock lock(mutex_);
  const auto remembered = ids_.find(drive);
  return remembered == ids_.end() ? std::nullopt : std::optional(remembered->second);
}

std::string DriveRegistry::id_of(const fs::path& drive) const { return find_id(drive).value_or(""); }

// The paths that this id is stored for, except this one.
std::vector<fs::path> DriveRegistry::others_with(const std::string& id, const fs::path& drive) const {
  const std::scoped_lock lock(mutex_);
  std::vector<fs::path> others;
  for (const auto& [path, remembered] : ids_) {
    if (path != drive && remembered == id) others.push_back(path);
  }
  return others;
}

base::Result<> DriveRegistry::admit(const fs::path& drive) {
  const std::string overlap = find_overlap_ ? find_overlap_(drive) : std::string();
  if (!overlap.empty()) return base::Error(Errc::drive_refused, overlap);
  auto id = read_id(drive);
  if (!id) return id.error();
  const std::vector<fs::path> others = *id ? others_with(**id, drive) : std::vector<fs::path>();
  for (const fs::path& path : others) {
    const auto there = read_id(path);
    if (!there || *there != **id) continue;
    // One disk at two paths would be walked and counted twice.
    return base::Error(Errc::drive_refused,
                       fmt::format("{} carries the same identity as {}: one disk at two paths, or a copy; "
                                   "remove .spoor/drive.json from the one that is to be another drive",
                                   base::printable(drive.native()), base::printable(path.native())));
  }
  const auto its = *id ? base::Result<std::string>(**id) : give_id(drive);
  if (!its) return its.error();
  return store(drive, *its, others);
}

// `others`: the paths with the same id that were found not to carry it.
base::Result<> DriveRegistry::store(const fs::path& drive, const std::string& id,
                                    const std::vector<fs::path>& others) {
  const std::scoped_lock storing(storing_);
  const auto now = others_with(id, drive);
  if (!std::includes(others.begin(), others.end(), now.begin(), now.end())) {
    return base::Error(Errc::drive_refused,
                       fmt::format("{} carries the same identity as {}, which was admitted at the same time",
                                   base::printable(drive.native()), base::printable(now.front().native())));
  }
  std::map<fs::path, std::string> ids;
  {
    const std::scoped_lock lock(mutex_);
    ids = ids_;
  }
  ids[drive] = id;
  nlohmann::json json{{"drives", nlohmann::json::object()}};
  for (const auto& [path, remembered] : ids) json["drives"][to_json_text(path)] = remembered;
  if (auto done = base::replace_file(files_, registry_file(data_dir_), json.dump(2) + "\n"); !done)
    return done;
  const std::scoped_lock lock(mutex_);
  ids_ = std::move(ids);
  return {};
}

// nullopt if the drive has no id. An id that can't be read is an error: it may be the right one.
base::Result<std::optional<std::string>> DriveRegistry::read_id(const fs::path& drive) const {
  const auto text = read_if_there(files_, identity_file(drive), drive_identity_bytes_max);
  if (!text) return text.error();
  if (!*text) return std::optional<std::string>{};
  if (auto id = parse_drive_identity(**text)) return id;
  return base::Error(
      Errc::drive_refused,
      fmt::format("{} is corrupt; if it is the right drive, remove the file and accept the drive",
                  identity_file(drive).native()));
}

base::Result<std::string> DriveRegistry::give_id(const fs::path& drive) {
  const fs::path directory = spoor_directory(drive);
  if (auto done = files_.create_directory(directory); !done) return done.error();
  if (auto done = files_.sync_directory(drive); !done) return done.error();  // makes the directory durable
  std::string id = InstanceId::random().to_string();
  const std::string text = nlohmann::json{{"id", id}}.dump() + "\n";
  if (auto done = base::replace_file(files_, identity_file(drive), text); !done) return done.error();
  return id;
}

}  // namespace spoor::tracker
