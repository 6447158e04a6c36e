#include "peer/gather/cycle_exchange.h"

#include <fmt/core.h>

#include "peer/gather/cycle_request.h"
#include "peer/http/certificate_names.h"

namespace spoor::peer {

HttpRequest cycle_request(const base::Endpoint& endpoint, const std::string& cluster,
                          const tracker::CycleRequest& request) {
  return {endpoint, "POST", "/v1/peer/cycle", "application/json", to_json({cluster, request})};
}

HttpRequest probe_request(const base::Endpoint& endpoint, const std::string& cluster,
                          const std::optional<tracker::Joined>& member) {
  CycleQuery only_the_head{.cluster = cluster, .request = {}, .member = member};
  only_the_head.request.marks_wanted = false;
  return {endpoint, "POST", "/v1/peer/cycle", "application/json", to_json(only_the_head)};
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

bool refuses_credentials(const base::Result<HttpResponse>& response) {
  return response && (response->status == 401 || response->status == 403);
}

}  // namespace spoor::peer
