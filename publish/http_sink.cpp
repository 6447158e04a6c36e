#include "publish/http_sink.h"

#include <fmt/core.h>

#include <utility>

namespace spoor::publish {
namespace {

// Of a body with several events: servers refuse larger ones by default (nginx: 1 MiB).
constexpr std::size_t body_bytes_max = std::size_t{512} << 10U;

constexpr const char* batch_type = "application/cloudevents-batch+json; charset=utf-8";

}  // namespace

base::Result<> HttpSink::publish(const Source& source, std::span<const Event> events) {
  if (options_.is_batched) return publish_batched(source, events);
  for (const Event& event : events) {
    auto posted = post("application/cloudevents+json; charset=utf-8", to_json(source, event));
    if (!posted) return posted;
  }
  return {};
}

base::Result<> HttpSink::publish_batched(const Source& source, std::span<const Event> events) {
  std::string body;
  for (const Event& event : events) {
    const std::string json = to_json(source, event);
    if (!body.empty() && body.size() + json.size() + 2 > body_bytes_max) {
      if (auto posted = post(batch_type, std::move(body) + ']'); !posted) return posted;
      body.clear();
    }
    body += body.empty() ? '[' : ',';
    body += json;
  }
  return body.empty() ? base::Result<>() : post(batch_type, std::move(body) + ']');
}

base::Result<> HttpSink::post(const char* content_type, std::string body) {
  const auto response = peer::exchange(
      *transport_, {.endpoint = options_.endpoint,
                    .method = "POST",
                    .target = options_.target,
                    .content_type = content_type,
                    .body = std::move(body),
                    .authorization = options_.token.empty() ? "" : "Bearer " + options_.token});
  if (!response) return response.error();
  if (response->is_success()) return {};
  return base::Error(std::make_error_code(std::errc::protocol_error),
                     fmt::format("{} refused the events: {}", options_.endpoint.to_string(),
                                 peer::problem_detail(*response)));
}

}  // namespace spoor::publish
