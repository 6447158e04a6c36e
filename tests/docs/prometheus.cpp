#include "tests/docs/prometheus.h"

#include <fmt/format.h>

#include <stdexcept>

#include "tests/support/loopback.h"

namespace spoor::docs {

using nlohmann::json;

namespace {

std::string form_encoded(const std::string& text) {
  std::string encoded;
  for (const char c : text) encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return encoded;
}

}  // namespace

Prometheus::Prometheus(const std::filesystem::path& config, const std::filesystem::path& directory)
    : daemon_({"prometheus", "--config.file=" + config.native(), "--storage.tsdb.path=" + directory.native(),
               "--web.listen-address=" + support::own_loopback() + ":0"}) {
  const std::string address = daemon_.wait_for("msg=\"Listening on\" address=");
  if (address.empty()) throw std::runtime_error("prometheus does not start: " + daemon_.log());
  endpoint_ = base::parse_endpoint("http://" + address).value();
  daemon_.wait_for("Server is ready to receive web requests");
}

json Prometheus::query(const std::string& expression) const {
  const std::string type = "application/x-www-form-urlencoded";
  return data_of({endpoint_, "POST", "/api/v1/query", type, "query=" + form_encoded(expression)})
      .at("result");
}

json Prometheus::get(const std::string& target) const { return data_of({endpoint_, "GET", target, "", ""}); }

json Prometheus::data_of(const peer::HttpRequest& request) const {
  peer::HttpTransport transport({.timeout = std::chrono::minutes(1)});
  const std::string response = peer::exchange(transport, request).value().body;
  const json parsed = json::parse(response, nullptr, false);
  if (!parsed.is_object() || parsed.value("status", "") != "success") {
    throw std::runtime_error(request.target + ' ' + request.body + ": " + response);
  }
  return parsed.at("data");
}

}  // namespace spoor::docs
