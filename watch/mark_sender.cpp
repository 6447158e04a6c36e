#include "watch/mark_sender.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "config/derived.h"
#include "config/secret_file.h"
#include "peer/http/credentials.h"
#include "peer/http/http_transport.h"
#include "peer/http/send_marks.h"

namespace spoor::watch {
namespace {

constexpr std::uint64_t batch_bytes_max = std::uint64_t{256} << 10U;

}  // namespace

// Where other nodes, or drives that are not watched, may rely on the marks, they name no drive.
base::Result<> MarkSender::send(const std::filesystem::path& drive, const EventMarks& marks) {
  drive_ = config_.scan.daemons == config::Daemons::own ? drive.native() : "";
  auto sent = connect();
  if (sent) sent = send_all(marks);
  if (!sent) transport_.reset();
  return sent;
}

base::Result<> MarkSender::report(const peer::WatchedDrive& drive) {
  if (auto connected = connect(); !connected) return connected;
  const auto response = peer::exchange(*transport_, {daemon_, "POST", "/v1/watch", "application/json",
                                                     peer::watched_drive_json(drive).dump()});
  if (response && response->is_success()) return {};
  transport_.reset();
  if (!response) return response.error();
  return base::Error(std::make_error_code(std::errc::io_error), peer::problem_detail(*response));
}

base::Result<> MarkSender::send_all(const EventMarks& marks) {
  if (auto sent = send("dir", marks.directories()); !sent) return sent;
  if (auto sent = send("tree", marks.trees()); !sent) return sent;
  return send("file", marks.top_entries());
}

// At a Unix socket, the kernel identifies the user.
base::Result<> MarkSender::connect() {
  if (transport_) return {};
  auto daemon = config::own_endpoint(config_);
  if (!daemon) return daemon.error();
  const auto secrets = config::peer_secrets(daemon->is_unix() ? config::Config::Peers() : config_.peers);
  if (!secrets) return secrets.error();
  auto credentials = peer::make_credentials(secrets->secret, secrets->tls);
  if (!credentials) return credentials.error();
  daemon_ = *std::move(daemon);
  transport_ = peer::make_http_transport({.credentials = *std::move(credentials)});
  return {};
}

base::Result<> MarkSender::send(const char* kind, const std::set<std::string>& paths) {
  const std::uint64_t bytes_max = std::min(batch_bytes_max, config_.limits.max_body_bytes);
  std::string batch;
  for (const std::string& path : paths) {
    if (!batch.empty() && batch.size() + path.size() + 1 > bytes_max) {
      if (auto sent = send_batch(kind, std::exchange(batch, {})); !sent) return sent;
    }
    batch += path;
    batch += '\0';
  }
  return batch.empty() ? base::Result<>() : send_batch(kind, std::move(batch));
}

base::Result<> MarkSender::send_batch(const char* kind, std::string batch) {
  const auto reply = peer::send_marks(*transport_, daemon_, kind, std::move(batch), drive_);
  if (reply.is_acknowledged) return {};
  const auto code = reply.refused ? std::errc::invalid_argument : std::errc::io_error;
  return base::Error(std::make_error_code(code), reply.problem);
}

}  // namespace spoor::watch
