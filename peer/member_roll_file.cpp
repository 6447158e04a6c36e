#include "peer/member_roll_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "peer/endpoint.h"

namespace spoor::peer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::milliseconds;

constexpr int version = 1;
constexpr std::uint64_t time_ms_max =
    std::chrono::duration_cast<milliseconds>(base::WallTime::max().time_since_epoch()).count();

fs::path roll_file(const fs::path& data_dir) { return data_dir / "members.json"; }

std::optional<std::string> read_url(const json& value) {
  if (!value.is_string() || !parse_endpoint(value.get_ref<const std::string&>())) return std::nullopt;
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

std::optional<MemberRoll::Source> read_source(const json& value) {
  if (!value.is_object() || !value.contains("listed") || !value.contains("lingering")) return std::nullopt;
  if (!value["listed"].is_array() || !value["lingering"].is_object()) return std::nullopt;
  MemberRoll::Source source;
  for (const json& member : value["listed"]) {
    auto url = read_url(member);
    if (!url) return std::nullopt;
    source.listed.insert(*std::move(url));
  }
  for (const auto& [url, member] : value["lingering"].items()) {
    const auto silence = read_silence(member);
    if (!silence || !parse_endpoint(url)) return std::nullopt;
    source.lingering[url] = *silence;
  }
  return source;
}

std::optional<MemberRoll> read_roll(const std::string& text) {
  const auto document = json::parse(text, nullptr, false);
  if (!document.is_object() || document.value("version", json()) != version) return std::nullopt;
  if (!document.contains("sources") || !document["sources"].is_object()) return std::nullopt;
  MemberRoll roll;
  if (document.contains("asked_at")) {
    const auto asked_at = read_ms(document["asked_at"]);
    if (!asked_at) return std::nullopt;
    roll.asked_at = base::WallTime(*asked_at);
  }
  for (const auto& [name, value] : document["sources"].items()) {
    auto source = read_source(value);
    if (!source) return std::nullopt;
    roll.sources[name] = *std::move(source);
  }
  return roll;
}

}  // namespace

LoadedRoll load_roll(base::FileSystem& files, const fs::path& data_dir) {
  const auto text = base::read_if_there(files, roll_file(data_dir), roll_bytes_max);
  if (!text) return {{}, text.error().message, false};
  if (!*text) return {};
  auto roll = read_roll(**text);
  if (roll) return {*std::move(roll), {}, false};
  return {{},
          fmt::format("{} is corrupt, or of a version that is not known: it can't tell who was a member",
                      roll_file(data_dir).native()),
          true};
}

base::Result<> store_roll(base::FileSystem& files, const fs::path& data_dir, const MemberRoll& roll,
                          bool is_damaged, std::uint64_t bytes_max) {
  json document{{"version", version}, {"sources", json::object()}};
  if (roll.asked_at) {
    // A clock that stands before 1970 is wrong anyway.
    const auto since_1970 = std::chrono::floor<milliseconds>(roll.asked_at->time_since_epoch());
    document["asked_at"] = std::max<milliseconds::rep>(since_1970.count(), 0);
  }
  for (const auto& [name, source] : roll.sources) {
    json lingering = json::object();
    for (const auto& [url, silence] : source.lingering) lingering[url] = {{"silent_ms", silence.count()}};
    document["sources"][name] = {{"listed", source.listed}, {"lingering", std::move(lingering)}};
  }
  const fs::path file = roll_file(data_dir);
  const std::string text = document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  // What could not be read again would be worth less than the roll that is there.
  if (text.size() > bytes_max) {
    return base::Error(
        std::make_error_code(std::errc::file_too_large),
        fmt::format("{} would pass {} bytes, and is left as it is: its sources name ever more members",
                    file.native(), bytes_max));
  }
  // Without it, whoever looks for the cause has less to look at: no reason to lose the new one, too.
  if (is_damaged) static_cast<void>(files.rename(file, file.native() + ".corrupt"));
  return base::replace_file(files, file, text);
}

}  // namespace spoor::peer
