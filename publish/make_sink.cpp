#include "publish/make_sink.h"

#include <fmt/core.h>

#include <utility>

#include "config/secret_file.h"
#include "config/sink_url.h"
#include "peer/http/http_transport.h"
#include "publish/http_sink.h"
#include "publish/kafka_sink.h"
#include "publish/nats_sink.h"
#include "publish/postgres_sink.h"

namespace spoor::publish {
namespace {

constexpr std::uint64_t response_bytes_max = std::uint64_t{1} << 20U;
constexpr std::chrono::seconds http_timeout{30};

base::Result<std::unique_ptr<Sink>> make_http_sink(const config::Sink& sink, config::SinkUrl url,
                                                   config::ClientSecrets secrets) {
  const auto credentials = peer::make_credentials({}, secrets.tls);
  if (!credentials) return credentials.error();
  auto transport = std::make_unique<peer::HttpTransport>(peer::HttpTransport::Options{
      .credentials = *credentials, .timeout = http_timeout, .body_bytes_max = response_bytes_max});
  HttpSink::Options options{.endpoint = std::move(url.endpoint),
                            .target = std::move(url.target),
                            .is_batched = sink.format == config::EventFormat::batched,
                            .token = std::move(secrets.secret)};
  return std::unique_ptr<Sink>(std::make_unique<HttpSink>(std::move(options), std::move(transport)));
}

std::unique_ptr<Sink> make_nats_sink(const config::Sink& sink, config::SinkUrl url,
                                     config::ClientSecrets secrets) {
  NatsSink::Options options{.servers = std::move(url.servers),
                            .subject = sink.topic,
                            .user = sink.user,
                            .is_tls = url.is_tls,
                            .tls = std::move(secrets.tls)};
  (sink.user.empty() ? options.token : options.password) = std::move(secrets.secret);
  return std::make_unique<NatsSink>(std::move(options));
}

std::unique_ptr<Sink> make_kafka_sink(const config::Sink& sink, const config::Config::Node& node,
                                      config::SinkUrl url, config::ClientSecrets secrets) {
  return std::make_unique<KafkaSink>(KafkaSink::Options{
      .servers = std::move(url.servers),
      .topic = sink.topic,
      .transactional_id = fmt::format("spoor/{}/{}/{}", node.cluster, node.name, sink.name),
      .user = sink.user,
      .password = std::move(secrets.secret),
      .tls = std::move(secrets.tls)});
}

std::unique_ptr<Sink> make_postgres_sink(const config::Sink& sink, config::ClientSecrets secrets,
                                         const base::Clock& clock) {
  return std::make_unique<PostgresSink>(PostgresSink::Options{.url = sink.url,
                                                              .user = sink.user,
                                                              .password = std::move(secrets.secret),
                                                              .tls = std::move(secrets.tls)},
                                        clock);
}

}  // namespace

base::Result<std::unique_ptr<Sink>> make_sink(const config::Sink& sink, const config::Config::Node& node,
                                              const base::Clock& clock) {
  auto url = config::parse_sink_url(sink.url);
  if (!url) return url.error();
  auto secrets = config::sink_secrets(sink);
  if (!secrets) return secrets.error();
  switch (url->kind) {
    case config::SinkKind::http:
      return make_http_sink(sink, *std::move(url), *std::move(secrets));
    case config::SinkKind::nats:
      return make_nats_sink(sink, *std::move(url), *std::move(secrets));
    case config::SinkKind::kafka:
      return make_kafka_sink(sink, node, *std::move(url), *std::move(secrets));
    case config::SinkKind::postgresql:
      break;
  }
  return make_postgres_sink(sink, *std::move(secrets), clock);
}

}  // namespace spoor::publish
