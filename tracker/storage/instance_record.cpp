#include "tracker/storage/instance_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/data_dir.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

constexpr std::uint64_t record_bytes_max = 2U << 20U;            // the rules may be long
constexpr std::uint64_t known_ms_max = std::uint64_t{1} << 43U;  // the year 2248

std::filesystem::path record_file(const std::filesystem::path& data_dir) {
  return data_dir / base::data_dir::instance;
}

// In the order of the enumerations.
constexpr std::array<std::string_view, 3> durability_names{"disk", "os", "memory"};
constexpr std::array<std::string_view, 4> membership_names{"member", "returned", "retiring", "retired"};

// The value that has this name; `other` if there is none.
template <class Value, std::size_t count>
Value named(const std::array<std::string_view, count>& names, std::string_view text, Value other) {
  const auto found = std::ranges::find(names, text);
  return found == names.end() ? other : static_cast<Value>(found - names.begin());
}

std::string text_member(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<std::uint64_t> number_member(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

std::uint64_t milliseconds_of(std::chrono::nanoseconds time) {
  const auto whole = std::chrono::floor<std::chrono::milliseconds>(time).count();
  return static_cast<std::uint64_t>(std::max(whole, decltype(whole){0}));
}

}  // namespace

std::string_view to_string(Durability durability) {
  return durability_names[static_cast<std::size_t>(durability)];
}

base::Result<std::optional<InstanceRecord>> read_instance_record(base::FileSystem& files,
                                                                 const std::filesystem::path& data_dir) {
  const auto file = record_file(data_dir);
  const auto text = base::read_if_there(files, file, record_bytes_max);
  if (!text) return text.error();
  if (!*text) return std::optional<InstanceRecord>{};
  const auto json = nlohmann::json::parse(**text, nullptr, false);
  auto corrupt = base::Error(Errc::snapshot_corrupt, fmt::format("{} is corrupt", file.native()));
  if (!json.is_object()) return corrupt;
  const auto instance = InstanceId::parse(text_member(json, "instance"));
  if (!instance) return corrupt;
  InstanceRecord record{*instance, std::nullopt};
  const auto generation = number_member(json, "clean_generation");
  const auto position = number_member(json, "clean_position");
  if (generation && position) record.clean_stop = {*generation, *position};
  const auto birth = number_member(json, "birth_cycle");
  const bool is_complete = json.value("birth_complete", nlohmann::json()) == true;
  const std::uint64_t first = is_complete ? 1 : 2;  // the gap is in the cycle before
  if (birth && *birth >= first && *birth <= CycleId::value_max) record.birth = {{*birth}, is_complete};
  record.rules = text_member(json, "rules");
  record.durability = named(durability_names, text_member(json, "durability"), Durability::memory);
  record.boot_id = text_member(json, "boot_id");
  record.runs = number_member(json, "runs").value_or(0);
  // 1.0.0 knows no introductions and no retirement: it acknowledges marks, and its record has neither member.
  const auto introduced = json.find("introduced");
  record.is_introduced = introduced == json.end() || *introduced == true;
  // With an unknown value, it is not known that marks may be acknowledged.
  record.membership = json.contains("membership")
                          ? named(membership_names, text_member(json, "membership"), Membership::retiring)
                          : Membership::member;
  const auto steady = number_member(json, "known_steady_ms");
  const auto wall = number_member(json, "known_ms");
  if (steady && wall && std::max(*steady, *wall) <= known_ms_max) {
    const std::chrono::milliseconds since_boot(*steady);
    const std::chrono::milliseconds since_epoch(*wall);
    record.known_at = {base::SteadyTime(since_boot), base::WallTime(since_epoch)};
  }
  return std::optional(record);
}

base::Result<> write_instance_record(base::FileSystem& files, const std::filesystem::path& data_dir,
                                     const InstanceRecord& record) {
  nlohmann::json json{{"instance", record.instance.to_string()},
                      {"rules", record.rules},
                      {"durability", to_string(record.durability)},
                      {"boot_id", record.boot_id},
                      {"introduced", record.is_introduced},
                      {"runs", record.runs},
                      {"membership", membership_names[static_cast<std::size_t>(record.membership)]}};
  if (record.clean_stop) {
    json["clean_generation"] = record.clean_stop->generation;
    json["clean_position"] = record.clean_stop->position;
  }
  if (record.birth) {
    json["birth_cycle"] = record.birth->cycle.value;
    json["birth_complete"] = record.birth->complete;
  }
  if (record.known_at) {
    json["known_steady_ms"] = milliseconds_of(record.known_at->steady.time_since_epoch());
    json["known_ms"] = milliseconds_of(record.known_at->wall.time_since_epoch());
  }
  return base::replace_file(files, record_file(data_dir),
                            json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace spoor::tracker
