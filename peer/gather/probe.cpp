#include "peer/gather/probe.h"

#include "peer/gather/cycle_frame.h"
#include "peer/gather/cycle_request.h"

namespace spoor::peer {

HttpRequest probe_request(const base::Endpoint& endpoint, const std::string& cluster) {
  tracker::CycleRequest only_the_head;
  only_the_head.marks_wanted = false;
  return {endpoint, "POST", "/v1/peer/cycle", "application/json", to_json({cluster, only_the_head})};
}

base::Result<ProbeResult> read_probe(const base::Result<HttpResponse>& response) {
  if (!response) return response.error();
  if (!response->is_success()) {
    return base::Error(std::make_error_code(std::errc::protocol_error), problem_detail(*response));
  }
  const auto frame = decode_cycle_frame(response->body);
  if (!frame) return frame.error();
  return ProbeResult{frame->sender.node, frame->run};
}

bool is_running(Transport& transport, const base::Endpoint& endpoint, const std::string& cluster,
                const std::string& node) {
  const auto response = exchange(transport, probe_request(endpoint, cluster));
  if (response && (response->status == 401 || response->status == 403)) return true;
  const auto probed = read_probe(response);
  return probed && probed->node == node;
}

}  // namespace spoor::peer
