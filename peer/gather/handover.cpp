#include "peer/gather/handover.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/number.h"
#include "peer/gather/cycle_exchange.h"

namespace spoor::peer {

using tracker::CycleId;

UnreadFrom unread_from(const tracker::PeerBook& book, const tracker::PeerId& id) {
  const auto known = book.find(id);
  return known == book.end() ? CycleId() : known->second.cycle;
}

HttpRequest unread_request(const base::Endpoint& endpoint, const std::string& cluster,
                           const tracker::PeerId& id) {
  const CycleQuery query{.cluster = cluster, .request = {}, .member = tracker::Joined{id, 0}};
  return {endpoint, "POST", "/v1/peer/unread", "application/json", to_json(query)};
}

std::string unread_json(const UnreadFrom& from) {
  nlohmann::json json{{"unread_from", nullptr}};
  if (from) json["unread_from"] = from->value;
  return json.dump();
}

base::Result<UnreadFrom> read_unread(const base::Result<HttpResponse>& response) {
  if (!response) return response.error();
  if (!response->is_success())
    return base::Error(std::make_error_code(std::errc::protocol_error), problem_detail(*response));
  const auto json = json_object(*response);
  const auto found = json.find("unread_from");
  if (found != json.end() && found->is_null()) return UnreadFrom();
  if (found == json.end() || !found->is_number_unsigned() ||
      found->get<std::uint64_t>() > CycleId::value_max) {
    return base::Error(std::make_error_code(std::errc::bad_message), "the response names no cycle");
  }
  return UnreadFrom(CycleId{found->get<std::uint64_t>()});
}

tracker::MarkSet marks_to_hand_over(tracker::Tracker& tracker, CycleId from) {
  tracker::CycleRequest request;
  request.oldest = from;
  request.instance = tracker.status().instance;
  tracker::CycleAnswer answer = tracker.cycle(request);
  const bool is_whole = from == CycleId() ? answer.complete_since_birth : !answer.gap;
  if (!is_whole) answer.marks.add_tree("");
  // A scan that did not say what it has read, or is the first of its node, knows no member without them.
  request.oldest = {};
  request.marks_wanted = false;
  request.members_wanted = true;
  answer.marks.add_members(tracker.cycle(request).marks.tree_marks());
  return std::move(answer.marks);
}

tracker::MarkSet everything(const tracker::MarkSet& marks) {
  tracker::MarkSet all;
  all.add_tree("");
  all.add_members(marks.tree_marks());
  return all;
}

HttpRequest adopt_request(const base::Endpoint& endpoint, const CycleFrame& frame,
                          const tracker::Retired& retired) {
  return {endpoint, "POST",
          fmt::format("/v1/peer/adopt?run={}&from={}", retired.run, retired.adopted_from.value),
          std::string(cycle_frame_content_type), encode_cycle_frame(frame)};
}

base::Result<AdoptQuery> parse_adopt_query(std::optional<std::string_view> run,
                                           std::optional<std::string_view> from, std::string_view body) {
  const auto number = [](const auto& text) { return base::parse_number<std::uint64_t>(text.value_or("")); };
  const auto run_number = number(run);
  const auto from_number = number(from);
  if (!run_number || !from_number || *from_number > CycleId::value_max) {
    return base::Error(std::make_error_code(std::errc::invalid_argument),
                       "give the run and the first cycle as numbers: /v1/peer/adopt?run=...&from=...");
  }
  auto frame = decode_cycle_frame(body);
  if (!frame) return frame.error();
  return AdoptQuery{{*run_number, {*from_number}}, *std::move(frame)};
}

}  // namespace spoor::peer
