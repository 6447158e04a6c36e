#include "peer/membership/last_known_members_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>
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

std::optional<std::string> read_url(const json& value) {
  if (!value.is_string() || !base::parse_endpoint(value.get_ref<const std::string&>())) return std::nullopt;
  return value.get<std::string>();
}

std::optional<milliseconds> read_ms(const json& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > time_ms_max) return std::nullopt;
  return milliseconds(value.get<std::int64_t>());
}

std::optional<milliseconds> read_silence(const json& value) {
  if (!value.is_object()) return std::nullopt;
  return read_ms(value.value("silent_ms", json()));
}

std::optional<LastKnownMembers::Source> read_source(const json& value) {
  if (!value.is_object() || !value.contains("listed") || !value.contains("lingering")) return std::nullopt;
  if (!value["listed"].is_array() || !value["lingering"].is_object()) return std::nullopt;
  LastKnownMembers::Source source;
  for (const json& member : value["listed"]) {
    auto url = read_url(member);
    if (!url) return std::nullopt;
    source.listed.insert(*std::move(url));
  }
  for (const auto& [url, member] : value["lingering"].items()) {
    const auto silence = read_silence(member);
    if (!silence || !base::parse_endpoint(url)) return std::nullopt;
    source.departed[url] = *silence;
  }
  return source;
}

std::optional<LastKnownMembers> read_registry(const std::string& text) {
  const auto document = json::parse(text, nullptr, false);
  if (!document.is_object() || document.value("version", json()) != version) return std::nullopt;
  if (!document.contains("sources") || !document["sources"].is_object()) return std::nullopt;
  LastKnownMembers last_known;
  if (document.contains("asked_at")) {
    const auto asked_at = read_ms(document["asked_at"]);
    if (!asked_at) return std::nullopt;
    last_known.asked_at = base::WallTime(*asked_at);
  }
  for (const auto& [name, value] : document["sources"].items()) {
    auto source = read_source(value);
    if (!source) return std::nullopt;
    last_known.sources[name] = *std::move(source);
  }
  return last_known;
}

}  // namespace

LoadedMembers load_last_known_members(base::FileSystem& files, const fs::path& data_dir) {
  const auto text = base::read_if_there(files, last_known_file(data_dir), last_known_members_bytes_max);
  if (!text) return {{}, text.error().message, false};
  if (!*text) return {};
  auto last_known = read_registry(**text);
  if (last_known) return {*std::move(last_known), {}, false};
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
