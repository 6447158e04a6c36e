#include "tests/publish/nats_server.h"

#include <fmt/core.h>
#include <nats/nats.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/support/loopback.h"
#include "tests/watch/eventually.h"

namespace spoor::publish {
namespace {

constexpr const char* stream_name = "CHANGES";
// States of a connection (enum in the kernel's net/tcp_states.h): whose client has closed it, or has not.
constexpr std::array connected = {"01", "08"};

void check(const char* what, natsStatus status) {
  if (status != NATS_OK) throw std::runtime_error(std::string(what) + ": " + natsStatus_GetText(status));
}

// A client of its own for each use: the server is killed between two.
class Client {
 public:
  explicit Client(const std::string& url) {
    check("connect", natsConnection_ConnectTo(&connection_, url.c_str()));
    check("JetStream", natsConnection_JetStream(&jet_stream_, connection_, nullptr));
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    jsCtx_Destroy(jet_stream_);
    natsConnection_Destroy(connection_);
  }

  jsCtx* jet_stream() const { return jet_stream_; }

  jsStreamState state() const {
    jsStreamInfo* info = nullptr;
    check("stream", js_GetStreamInfo(&info, jet_stream_, stream_name, nullptr, nullptr));
    const jsStreamState state = info->State;
    jsStreamInfo_Destroy(info);
    return state;
  }

  std::string message(std::uint64_t sequence) const {
    natsMsg* message = nullptr;
    check("message", js_GetMsg(&message, jet_stream_, stream_name, sequence, nullptr, nullptr));
    std::string body(natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message)));
    natsMsg_Destroy(message);
    return body;
  }

 private:
  natsConnection* connection_ = nullptr;
  jsCtx* jet_stream_ = nullptr;
};

}  // namespace

NatsServer::NatsServer(std::string settings) : settings_(std::move(settings)) { start(); }

void NatsServer::start() {
  const std::string config = directory_ / "nats.conf";
  std::ofstream(config) << "listen: \"" << support::own_loopback() << ":" << port_ << "\"\n"
                        << "jetstream: {store_dir: \"" << (directory_ / "store").native() << "\"}\n"
                        << "ports_file_dir: \"" << directory_.path().native() << "\"\n"
                        << settings_;
  daemon_ = std::make_unique<support::Daemon>(std::vector<std::string>{"nats-server", "-c", config});
  if (daemon_->wait_for("Server is ready").empty() &&
      daemon_->log().find("Server is ready") == std::string::npos)
    throw std::runtime_error("nats-server does not start: " + daemon_->log());
  if (port_ < 0) read_port();
}

// The server writes it, with its process id in the name, once it listens.
void NatsServer::read_port() {
  const auto file = directory_ / ("nats-server_" + std::to_string(daemon_->pid()) + ".ports");
  nlohmann::json ports;
  const bool is_written = watch::eventually([&] {
    ports = nlohmann::json::parse(std::ifstream(file), nullptr, false);
    return ports.is_object();
  });
  if (!is_written) throw std::runtime_error("nats-server writes no " + file.native());
  const std::string url = ports.at("nats").at(0);
  port_ = std::stoll(url.substr(url.rfind(':') + 1));
}

// A line has "number: local:port remote:port state sent:received ..." in hexadecimal digits
// (proc_pid_net(5)).
bool NatsServer::has_unread_input() const {
  std::ifstream sockets("/proc/net/tcp");
  std::string line;
  while (std::getline(sockets, line)) {
    std::istringstream fields(line);
    std::string number;
    std::string local;
    std::string remote;
    std::string state;
    std::string queues;
    fields >> number >> local >> remote >> state >> queues;
    if (!local.ends_with(fmt::format(":{:04X}", port_))) continue;
    if (std::ranges::find(connected, state) == connected.end()) continue;
    if (!queues.ends_with(":00000000")) return true;
  }
  return false;
}

nlohmann::json NatsServer::sink() const {
  return {{"url", "nats://" + support::own_loopback() + ":" + std::to_string(port_)}};
}

void NatsServer::create_stream(std::int32_t message_bytes_max) {
  const Client client(sink()["url"]);
  jsStreamConfig config;
  check("configuration", jsStreamConfig_Init(&config));
  const char* subjects[] = {"spoor.changes"};
  config.Name = stream_name;
  config.Subjects = subjects;
  config.SubjectsLen = 1;
  config.MaxMsgSize = message_bytes_max;
  check("stream", js_AddStream(nullptr, client.jet_stream(), &config, nullptr, nullptr));
}

std::vector<Event> NatsServer::events() {
  const Client client(sink()["url"]);
  const jsStreamState state = client.state();
  std::vector<Event> events;
  for (std::uint64_t sequence = 1; sequence <= state.LastSeq; ++sequence)
    events.push_back(read_event(nlohmann::json::parse(client.message(sequence))));
  return events;
}

}  // namespace spoor::publish
