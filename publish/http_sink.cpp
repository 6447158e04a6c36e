#include "publish/http_sink.h"

#include <fmt/core.h>

#include <utility>

namespace spoor::publish {
namespace {

// Of a body with several events: servers refuse larger ones by default (nginx: 1 MiB).
constexpr std::size_t body_bytes_max = std::size_t{512} << 10U;

constexpr const char* event_type = "application/cloudevents+json; charset=utf-8";
constexpr const char* batch_type = "application/cloudevents-batch+json; charset=utf-8";

const char* remedy(unsigned status, std::size_t events) {
  if (status >= 300 && status < 400) return ": it is a redirection; set the URL to which it leads";
  return status == 413 && events > 1 ? ": the request is too large; set a smaller 'batch'" : "";
}

}  // namespace

base::Result<std::size_t> HttpSink::publish(const Source& source, std::span<const Event> events) {
  if (!options_.is_batched) return post(event_type, to_json(source, events.front()), 1);
  std::size_t count = 0;
  std::string body;
  for (const Event& event : events) {
    const std::string json = to_json(source, event);
    if (count > 0 && body.size() + json.size() + 2 > body_bytes_max) break;
    body += count == 0 ? '[' : ',';
    body += json;
    ++count;
  }
  return post(batch_type, std::move(body) + ']', count);
}

base::Result<std::size_t> HttpSink::post(const char* content_type, std::string body, std::size_t events) {
  const auto response = peer::exchange(
      *transport_, {.endpoint = options_.endpoint,
                    .method = "POST",
                    .target = options_.target,
                    .content_type = content_type,
                    .body = std::move(body),
                    .authorization = options_.token.empty() ? "" : "Bearer " + options_.token});
  if (!response) return response.error();
  if (response->is_success()) return events;
  return base::Error(std::make_error_code(std::errc::protocol_error),
                     fmt::format("{} refused the events: {}{}", options_.endpoint.to_string(),
                                 peer::problem_detail(*response), remedy(response->status, events)));
}

}  // namespace spoor::publish
