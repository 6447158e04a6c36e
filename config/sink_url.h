// The URL of a sink of `publish.sinks`.
#pragma once

#include <string>
#include <vector>

#include "base/endpoint.h"
#include "base/error.h"

namespace spoor::config {

enum class SinkKind { http, nats, kafka, postgresql };

struct SinkUrl {
  SinkKind kind = SinkKind::http;
  base::Endpoint endpoint = {};           // http
  std::string target = {};                // http: the path with the query
  std::vector<std::string> servers = {};  // nats, kafka: HOST[:PORT]
  bool is_tls = false;                    // https, tls (NATS)
};

// From `http[s]://HOST[:PORT]/PATH`, `nats://HOST[:PORT],...`, `tls://HOST[:PORT],...` (NATS over TLS),
// `kafka://HOST[:PORT],...` or `postgresql://HOST[:PORT]/DATABASE[?NAME=VALUE...]`. A URL with a user or a
// password is refused: the configuration is no place for secrets. Fails with std::errc::invalid_argument.
base::Result<SinkUrl> parse_sink_url(const std::string& url);

}  // namespace spoor::config
