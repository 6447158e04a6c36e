#include <fmt/core.h>

#include <utility>

#include "peer/http/http_transport.h"
#include "publish/sink.h"

namespace spoor::publish {

base::Result<std::unique_ptr<Sink>> make_sink(const config::Sink& sink, const config::Config::Node& node,
                                              const base::Clock& clock) {
  constexpr std::uint64_t response_bytes_max = std::uint64_t{1} << 20U;
  constexpr std::chrono::seconds http_timeout{30};
  auto url = config::parse_sink_url(sink.url);
  if (!url) return url.error();
  auto secrets = config::sink_secrets(sink);
  if (!secrets) return secrets.error();
  SinkTarget target{sink, *std::move(url), *std::move(secrets)};
  switch (target.url.kind) {
    case config::SinkKind::nats:
      return make_nats_sink(std::move(target));
    case config::SinkKind::kafka:
      return make_kafka_sink(std::move(target),
                             fmt::format("spoor/{}/{}/{}", node.cluster, node.name, sink.name));
    case config::SinkKind::postgresql:
      return make_postgres_sink(std::move(target), clock);
    case config::SinkKind::http:
      break;
  }
  const auto credentials = peer::make_credentials({}, target.secrets.tls);
  if (!credentials) return credentials.error();
  return make_http_sink(
      std::move(target),
      std::make_unique<peer::HttpTransport>(peer::HttpTransport::Options{
          .credentials = *credentials, .timeout = http_timeout, .body_bytes_max = response_bytes_max}));
}

}  // namespace spoor::publish
