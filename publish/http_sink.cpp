#include "publish/http_sink.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"

namespace spoor::publish {
namespace {

constexpr unsigned too_large = 413;
constexpr unsigned too_many_requests = 429;
constexpr unsigned unavailable = 503;

constexpr const char* event_type = "application/cloudevents+json; charset=utf-8";
constexpr const char* batch_type = "application/cloudevents-batch+json; charset=utf-8";

const char* remedy(unsigned status) {
  if (status >= 300 && status < 400) return ": it is a redirection; set the URL to which it leads";
  return status == too_large ? ": its limit is too small for any event" : "";
}

}  // namespace

base::Result<std::size_t> HttpSink::publish(const Source& source, std::span<const Event> events) {
  for (;;) {
    const auto [body, count] = body_of(source, events);
    const auto response = post(body);
    if (!response) return response.error();
    if (response->is_success()) {
      // It was the limit that ended the body.
      if (count < events.size()) body_bytes_ = std::min(body_bytes_ + body_bytes_ / 8 + 1, body_bytes_max);
      return count;
    }
    if (response->status == too_large && count > 1) {
      body_bytes_ = body.size() / 2;
      continue;
    }
    if (response->status == too_large && body.size() > small_event_bytes) {
      spdlog::warn("{} refused the event of '{}' as too large ({} bytes): it is given up",
                   options_.endpoint.to_string(), base::printable(events.front().path), body.size());
      return 1;
    }
    if (response->status == too_many_requests || response->status == unavailable)
      retry_after_ = peer::retry_after(*response).value_or(std::chrono::seconds(0));
    return base::Error(std::make_error_code(std::errc::protocol_error),
                       fmt::format("{} refused the events: {}{}", options_.endpoint.to_string(),
                                   peer::problem_detail(*response), remedy(response->status)));
  }
}

HttpSink::Body HttpSink::body_of(const Source& source, std::span<const Event> events) const {
  if (!options_.is_batched) return {to_json(source, events.front()), 1};
  Body body;
  for (const Event& event : events) {
    const std::string json = to_json(source, event);
    if (body.events > 0 && body.text.size() + json.size() + 2 > body_bytes_) break;
    body.text += body.events == 0 ? '[' : ',';
    body.text += json;
    ++body.events;
  }
  body.text += ']';
  return body;
}

base::Result<peer::HttpResponse> HttpSink::post(std::string body) {
  return peer::exchange(*transport_,
                        {.endpoint = options_.endpoint,
                         .method = "POST",
                         .target = options_.target,
                         .content_type = options_.is_batched ? batch_type : event_type,
                         .body = std::move(body),
                         .authorization = options_.token.empty() ? "" : "Bearer " + options_.token});
}

}  // namespace spoor::publish
