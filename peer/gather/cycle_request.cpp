#include "peer/gather/cycle_request.h"

#include <fmt/core.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tracker/cycles/ids.h"

namespace spoor::peer {
namespace {

base::Error invalid(std::string_view what) {
  return {std::make_error_code(std::errc::invalid_argument), std::string(what)};
}

base::Result<std::uint64_t> number_member(const nlohmann::json& json, const char* name, std::uint64_t max) {
  const auto found = json.find(name);
  if (found == json.end()) return std::uint64_t{0};
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() > max) {
    return invalid(fmt::format("'{}' must be a number from 0 to {}", name, max));
  }
  return found->get<std::uint64_t>();
}

base::Result<std::string> string_member(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return std::string{};
  if (!found->is_string()) return invalid(fmt::format("'{}' must be a string", name));
  return found->get<std::string>();
}

base::Result<bool> bool_member(const nlohmann::json& json, const char* name, bool otherwise) {
  const auto found = json.find(name);
  if (found == json.end()) return otherwise;
  if (!found->is_boolean()) return invalid(fmt::format("'{}' must be true or false", name));
  return found->get<bool>();
}

base::Result<std::optional<tracker::Joined>> member_member(const nlohmann::json& json) {
  const auto found = json.find("member");
  if (found == json.end()) return std::optional<tracker::Joined>();
  if (!found->is_object()) return invalid("'member' must be an object");
  const auto name = string_member(*found, "name");
  if (!name) return name.error();
  const auto text = string_member(*found, "instance");
  if (!text) return text.error();
  const auto run = number_member(*found, "run", std::numeric_limits<std::uint64_t>::max());
  if (!run) return run.error();
  const auto instance = tracker::InstanceId::parse(*text);
  if (!tracker::is_node_name(*name) || !instance || instance->is_none()) {
    return invalid("'member' must have the name of a node and the id of an instance");
  }
  return std::optional(tracker::Joined{{*name, *instance}, *run});
}

}  // namespace

std::string to_json(const CycleQuery& query) {
  nlohmann::json json{{"cluster", query.cluster},
                      {"current", query.request.current.value},
                      {"oldest", query.request.oldest.value},
                      {"start_level", query.request.start_level},
                      {"marks", query.request.marks_wanted}};
  if (query.request.members_wanted) json["members"] = true;
  json["instance"] = query.request.instance.is_none() ? "" : query.request.instance.to_string();
  if (query.member) {
    const auto& [id, run] = *query.member;
    json["member"] = {{"name", id.name}, {"instance", id.instance.to_string()}, {"run", run}};
  }
  return json.dump();
}

base::Result<CycleQuery> parse_cycle_query(std::string_view text) {
  if (text.size() > cycle_query_bytes_max) return invalid("the body is too long for a query");
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    return base::Error(std::make_error_code(std::errc::bad_message), "the body is not JSON");
  }
  if (!json.is_object()) return invalid("the body must be a JSON object");
  const auto cluster = string_member(json, "cluster");
  if (!cluster) return cluster.error();
  const auto instance = string_member(json, "instance");
  if (!instance) return instance.error();
  const auto current = number_member(json, "current", tracker::CycleId::request_max);
  if (!current) return current.error();
  const auto oldest = number_member(json, "oldest", tracker::CycleId::value_max);
  if (!oldest) return oldest.error();
  const auto start_level = number_member(json, "start_level", tracker::LevelSchedule::level_max);
  if (!start_level) return start_level.error();
  const auto marks = bool_member(json, "marks", true);
  if (!marks) return marks.error();
  const auto members = bool_member(json, "members", false);
  if (!members) return members.error();

  auto member = member_member(json);
  if (!member) return member.error();

  CycleQuery query;
  query.cluster = *cluster;
  query.member = *std::move(member);
  // An id that this program can't parse is of another instance, hence a gap and no error.
  query.request = {.current = {*current},
                   .oldest = {*oldest},
                   .instance = tracker::InstanceId::parse(*instance).value_or(tracker::InstanceId{}),
                   .marks_wanted = *marks,
                   .start_level = *start_level,
                   .members_wanted = *members};
  return query;
}

}  // namespace spoor::peer
