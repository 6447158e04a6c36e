#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "publish/sink.h"

namespace spoor::publish {
namespace {

constexpr unsigned too_large = 413;
constexpr unsigned too_many_requests = 429;
constexpr unsigned unavailable = 503;

constexpr std::size_t body_bytes_max = std::size_t{512} << 10U;  // of several events

constexpr const char* event_type = "application/cloudevents+json; charset=utf-8";
constexpr const char* batch_type = "application/cloudevents-batch+json; charset=utf-8";

const char* remedy(unsigned status) {
  if (status >= 300 && status < 400) return ": it is a redirection; set the URL to which it leads";
  return status == too_large ? ": its limit is too small for any event" : "";
}

class HttpSink final : public Sink {
 public:
  HttpSink(SinkTarget target, std::unique_ptr<peer::Transport> transport)
      : target_(std::move(target)), transport_(std::move(transport)) {}

  base::Result<std::size_t> publish(const Source& source, std::span<const Event> events) override {
    const std::string server = target_.url.endpoint.to_string();
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
        spdlog::warn("{} refused the event of '{}' as too large ({} bytes): it is given up", server,
                     base::printable(events.front().path), body.size());
        return 1;
      }
      if (response->status == too_many_requests || response->status == unavailable)
        retry_after_ = peer::retry_after(*response).value_or(std::chrono::seconds(0));
      return base::Error(std::make_error_code(std::errc::protocol_error),
                         fmt::format("{} refused the events: {}{}", server, peer::problem_detail(*response),
                                     remedy(response->status)));
    }
  }

  std::chrono::seconds take_retry_after() override { return std::exchange(retry_after_, {}); }

 private:
  bool is_batched() const { return target_.settings.format == config::EventFormat::batched; }

  // The text of the next body, and how many events it has.
  std::pair<std::string, std::size_t> body_of(const Source& source, std::span<const Event> events) const {
    if (!is_batched()) return {to_json(source, events.front()), 1};
    std::string text;
    std::size_t count = 0;
    for (const Event& event : events) {
      const std::string json = to_json(source, event);
      if (count > 0 && text.size() + json.size() + 2 > body_bytes_) break;
      text += count++ == 0 ? '[' : ',';
      text += json;
    }
    return {text + ']', count};
  }

  base::Result<peer::HttpResponse> post(std::string body) {
    const std::string& token = target_.secrets.secret;
    return peer::exchange(*transport_, {.endpoint = target_.url.endpoint,
                                        .method = "POST",
                                        .target = target_.url.target,
                                        .content_type = is_batched() ? batch_type : event_type,
                                        .body = std::move(body),
                                        .authorization = token.empty() ? "" : "Bearer " + token});
  }

  const SinkTarget target_;
  const std::unique_ptr<peer::Transport> transport_;
  std::size_t body_bytes_ = body_bytes_max;  // of the next body with several events
  std::chrono::seconds retry_after_{0};
};

}  // namespace

std::unique_ptr<Sink> make_http_sink(SinkTarget target, std::unique_ptr<peer::Transport> transport) {
  return std::make_unique<HttpSink>(std::move(target), std::move(transport));
}

}  // namespace spoor::publish
