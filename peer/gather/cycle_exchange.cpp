#include "peer/gather/cycle_exchange.h"

#include <fmt/core.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "peer/http/certificate_names.h"
#include "tracker/cycles/ids.h"

namespace spoor::peer {
namespace {

using nlohmann::json;

// Of the functions that read a query; parse_cycle_query() makes it an error.
struct Invalid {
  std::string why;
};

std::uint64_t number_member(const json& object, const char* name, std::uint64_t max) {
  const auto found = object.find(name);
  if (found == object.end()) return 0;
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() > max)
    throw Invalid{fmt::format("'{}' must be a number from 0 to {}", name, max)};
  return found->get<std::uint64_t>();
}

std::string string_member(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return {};
  if (!found->is_string()) throw Invalid{fmt::format("'{}' must be a string", name)};
  return found->get<std::string>();
}

bool bool_member(const json& object, const char* name, bool otherwise) {
  const auto found = object.find(name);
  if (found == object.end()) return otherwise;
  if (!found->is_boolean()) throw Invalid{fmt::format("'{}' must be true or false", name)};
  return found->get<bool>();
}

std::optional<tracker::Joined> member_of(const json& query) {
  const auto found = query.find("member");
  if (found == query.end()) return std::nullopt;
  if (!found->is_object()) throw Invalid{"'member' must be an object"};
  const std::string name = string_member(*found, "name");
  const auto instance = tracker::InstanceId::parse(string_member(*found, "instance"));
  const auto run = number_member(*found, "run", std::numeric_limits<std::uint64_t>::max());
  if (!tracker::is_node_name(name) || !instance || instance->is_none())
    throw Invalid{"'member' must have the name of a node and the id of an instance"};
  return tracker::Joined{{name, *instance}, run};
}

CycleQuery read_query(const json& query) {
  if (!query.is_object()) throw Invalid{"the body must be a JSON object"};
  CycleQuery read{.cluster = string_member(query, "cluster"), .request = {}};
  // An id that this program can't parse is of another instance, hence a gap and no error.
  const auto instance = tracker::InstanceId::parse(string_member(query, "instance"));
  read.request = {.current = {number_member(query, "current", tracker::CycleId::request_max)},
                  .oldest = {number_member(query, "oldest", tracker::CycleId::value_max)},
                  .instance = instance.value_or(tracker::InstanceId{}),
                  .marks_wanted = bool_member(query, "marks", true),
                  .start_level = number_member(query, "start_level", tracker::LevelSchedule::level_max),
                  .members_wanted = bool_member(query, "members", false)};
  read.member = member_of(query);
  return read;
}

}  // namespace

std::string to_json(const CycleQuery& query) {
  const tracker::CycleRequest& request = query.request;
  json text{{"cluster", query.cluster},
            {"current", request.current.value},
            {"oldest", request.oldest.value},
            {"instance", request.instance.is_none() ? "" : request.instance.to_string()},
            {"start_level", request.start_level},
            {"marks", request.marks_wanted}};
  if (request.members_wanted) text["members"] = true;
  if (query.member) {
    const auto& [id, run] = *query.member;
    text["member"] = {{"name", id.name}, {"instance", id.instance.to_string()}, {"run", run}};
  }
  return text.dump();
}

base::Result<CycleQuery> parse_cycle_query(std::string_view text) {
  const auto invalid = std::make_error_code(std::errc::invalid_argument);
  if (text.size() > cycle_query_bytes_max) return base::Error(invalid, "the body is too long for a query");
  const auto query = json::parse(text, nullptr, false);
  if (query.is_discarded())
    return base::Error(std::make_error_code(std::errc::bad_message), "the body is not JSON");
  try {
    return read_query(query);
  } catch (const Invalid& of) {
    return base::Error(invalid, of.why);
  }
}

HttpRequest cycle_request(const base::Endpoint& endpoint, const CycleQuery& query) {
  return {endpoint, "POST", "/v1/peer/cycle", "application/json", to_json(query)};
}

HttpRequest probe_request(const base::Endpoint& endpoint, const std::string& cluster,
                          const std::optional<tracker::Joined>& member) {
  CycleQuery only_the_head{.cluster = cluster, .request = {}, .member = member};
  only_the_head.request.marks_wanted = false;
  return cycle_request(endpoint, only_the_head);
}

base::Result<CycleFrame> read_frame(const base::Result<HttpResponse>& response) {
  if (!response) return response.error();
  if (response->is_success()) return decode_cycle_frame(response->body);
  return base::Error(std::make_error_code(std::errc::protocol_error), problem_detail(*response));
}

base::Result<CycleFrame> read_member_frame(const base::Result<HttpResponse>& response,
                                           const std::string& cluster) {
  auto frame = read_frame(response);
  if (!frame) return frame;
  const auto& sender = frame->sender;
  if (sender.cluster != cluster)
    return base::Error(std::make_error_code(std::errc::protocol_error),
                       fmt::format("it belongs to cluster '{}', not to '{}'", sender.cluster, cluster));
  if (auto checked = check_issued_for(response->certificate_names, sender.node); !checked)
    return checked.error();
  return frame;
}

}  // namespace spoor::peer
