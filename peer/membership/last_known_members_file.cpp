#include "peer/membership/last_known_members_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/endpoint.h"

namespace spoor::peer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::milliseconds;

constexpr int version = 1;
constexpr std::uint64_t time_ms_max =
    std::chrono::duration_cast<milliseconds>(base::WallTime::max().time_since_epoch()).count();

fs::path last_known_file(const fs::path& data_dir) { return data_dir / "members.json"; }

// read_ms() to read_source() throw this or json::exception if the file is invalid.
struct Corrupt {};

milliseconds read_ms(const json& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > time_ms_max) throw Corrupt();
  return milliseconds(value.get<std::int64_t>());
}

std::string checked_url(std::string url) {
  if (!base::parse_endpoint(url)) throw Corrupt();
  return url;
}

LastKnownMembers::Source read_source(const json& value) {
  LastKnownMembers::Source source;
  for (const json& url : value.at("listed").get_ref<const json::array_t&>()) {
    source.listed.insert(checked_url(url.get_ref<const std::string&>()));
  }
  for (const auto& [url, member] : value.at("lingering").get_ref<const json::object_t&>()) {
    source.departed[checked_url(url)] = read_ms(member.at("silent_ms"));
  }
  return source;
}

std::optional<LastKnownMembers> read_members(const std::string& text) try {
  const auto document = json::parse(text);
  if (document.at("version") != version) return std::nullopt;
  LastKnownMembers last_known;
  if (document.contains("asked_at")) last_known.asked_at = base::WallTime(read_ms(document["asked_at"]));
  for (const auto& [name, value] : document.at("sources").get_ref<const json::object_t&>()) {
    last_known.sources[name] = read_source(value);
  }
  return last_known;
} catch (const Corrupt&) {
  return std::nullopt;
} catch (const json::exception&) {
  return std::nullopt;
}

}  // namespace

LoadedMembers load_last_known_members(base::FileSystem& files, const fs::path& data_dir) {
  const auto text = base::read_if_there(files, last_known_file(data_dir), last_known_members_bytes_max);
  if (!text) return {{}, text.error().message, false};
  if (!*text) return {};
  if (auto last_known = read_members(**text)) return {*std::move(last_known), {}, false};
  return {{},
          fmt::format("{} is corrupt, or has an unknown version: the last-known members are lost",
                      last_known_file(data_dir).native()),
          true};
}

base::Result<> store_last_known_members(base::FileSystem& files, const fs::path& data_dir,
                                        const LastKnownMembers& last_known, bool is_damaged,
                                        std::uint64_t bytes_max) {
  json document{{"version", version}, {"sources", json::object()}};
  if (last_known.asked_at) {
    // A time before 1970 is wrong, and stored as 1970.
    const auto since_1970 = std::chrono::floor<milliseconds>(last_known.asked_at->time_since_epoch());
    document["asked_at"] = std::max<milliseconds::rep>(since_1970.count(), 0);
  }
  for (const auto& [name, source] : last_known.sources) {
    json departed = json::object();
    for (const auto& [url, silence] : source.departed) departed[url] = {{"silent_ms", silence.count()}};
    document["sources"][name] = {{"listed", source.listed}, {"lingering", std::move(departed)}};
  }
  const fs::path file = last_known_file(data_dir);
  const std::string text = document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  // A larger file could not be read again.
  if (text.size() > bytes_max) {
    return base::Error(
        std::make_error_code(std::errc::file_too_large),
        fmt::format("{} would exceed {} bytes, and is left unchanged: its sources list too many members",
                    file.native(), bytes_max));
  }
  // Kept for a diagnosis; if that fails, the new file is still written.
  if (is_damaged) static_cast<void>(files.rename(file, file.native() + ".corrupt"));
  return base::replace_file(files, file, text);
}

}  // namespace spoor::peer
