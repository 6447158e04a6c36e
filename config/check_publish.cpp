// Checks `publish`.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "config/check.h"
#include "config/sink_url.h"

namespace spoor::config {
namespace {

constexpr std::size_t sinks_max = 16;
constexpr std::size_t topic_bytes_max = 249;  // of Kafka

// For Kafka and NATS; a subject to which one publishes has no wildcard and no empty part.
bool is_topic(const std::string& text) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !text.empty() && text.size() <= topic_bytes_max && !text.starts_with('.') && !text.ends_with('.') &&
         text.find("..") == std::string::npos && text.find_first_not_of(allowed) == std::string::npos;
}

void check_credentials(const std::string& key, const Sink& sink, const SinkUrl& url, Problems& problems) {
  check_secret_file(key + ".password_file", sink.password_file, problems);
  check_secret_file(key + ".token_file", sink.token_file, problems);
  if (sink.tls) check_tls_client(key + ".tls", *sink.tls, problems);
  if (!sink.password_file.empty() && sink.user.empty()) add(problems, key + ".user", "whose password is it?");
  const bool has_token = url.kind == SinkKind::http || url.kind == SinkKind::nats;
  if (!sink.token_file.empty() && !has_token)
    add(problems, key + ".token_file", "only http, https, nats and tls URLs have a token");
  if (!sink.token_file.empty() && !sink.user.empty())
    add(problems, key, "expected either 'token_file', or 'user' and 'password_file'");
  if (!sink.user.empty() && url.kind == SinkKind::http)
    add(problems, key + ".user", "an HTTP sink has a 'token_file' instead");
  if (sink.tls && url.kind == SinkKind::postgresql && sink.tls->ca.empty())
    add(problems, key + ".tls.ca",
        "PostgreSQL's library does not use the authorities that the system trusts");
  const bool by_scheme = url.kind == SinkKind::http || url.kind == SinkKind::nats;
  if (sink.tls && by_scheme && !url.is_tls)
    add(problems, key + ".url", "with 'tls' the URL starts with https:// (HTTP) or tls:// (NATS)");
}

void check_sink(const std::string& key, const Sink& sink, Problems& problems) {
  if (!is_name(sink.name))
    add(problems, key + ".name",
        "a sink needs a name, which logs and metrics show: 1 to 64 of A-Z a-z 0-9 . _ -");
  if (!is_topic(sink.topic)) {
    add(problems, key + ".topic",
        fmt::format("{} is wrong: expected 1 to {} of A-Z a-z 0-9 . _ -, no empty part between dots",
                    in_quotes(sink.topic), topic_bytes_max));
  }
  const auto url = parse_sink_url(sink.url);
  if (!url) return add(problems, key + ".url", url.error().message);
  check_credentials(key, sink, *url, problems);
}

}  // namespace

void check_publish(const Config& config, Problems& problems) {
  const auto& sinks = config.publish.sinks;
  if (sinks.size() > sinks_max)
    add(problems, "publish.sinks", fmt::format("at most {} sinks are possible", sinks_max));
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    const std::string key = fmt::format("publish.sinks[{}]", i);
    check_sink(key, sinks[i], problems);
    if (std::ranges::find(sinks, sinks[i].name, &Sink::name) !=
        sinks.begin() + static_cast<std::ptrdiff_t>(i))
      add(problems, key + ".name", fmt::format("{} is the name of another sink", in_quotes(sinks[i].name)));
  }
}

}  // namespace spoor::config
