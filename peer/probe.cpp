#include "peer/probe.h"

#include "peer/cycle_frame.h"
#include "peer/cycle_request.h"

namespace spoor::peer {

HttpRequest probe_request(const Endpoint& endpoint, const std::string& cluster) {
  tracker::CycleRequest only_the_head;
  only_the_head.marks_wanted = false;
  return {endpoint, "POST", "/v1/peer/cycle", "application/json", to_json({cluster, only_the_head})};
}

base::Result<std::string> read_probe(const base::Result<HttpResponse>& response) {
  if (!response) return response.error();
  if (!response->is_success()) {
    return base::Error(std::make_error_code(std::errc::protocol_error), problem_detail(*response));
  }
  const auto frame = decode_cycle_frame(response->body);
  if (!frame) return frame.error();
  return frame->sender.node;
}

bool is_running(Transport& transport, const Endpoint& endpoint, const std::string& cluster,
                const std::string& node) {
  const auto response = exchange(transport, probe_request(endpoint, cluster));
  if (response && (response->status == 401 || response->status == 403)) return true;
  const auto name = read_probe(response);
  return name && *name == node;
}

}  // namespace spoor::peer
