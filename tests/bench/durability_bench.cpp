// What it costs that an acknowledged mark outlives a crash: marks acknowledged a second over HTTP, one path
// a request, beside what the disk can do (docs/durability.md).
//
// The variants take turns, so that what else the machine does meets all of them alike, and ratios are taken
// between runs of one turn: a disk that others use as well may be ten times slower a second later.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tests/bench/bench_support.h"
#include "tests/support/loopback.h"
#include "tests/support/process.h"
#include "tests/support/raw_client.h"
#include "tests/support/temp_directory.h"

namespace {

using namespace spoor;
using namespace std::chrono_literals;

struct Settings {
  int rounds = 7;
  std::chrono::milliseconds run_time = 300ms;
};

// Enough to see that everything runs; the figures say nothing.
constexpr Settings short_settings{.rounds = 1, .run_time = 20ms};

constexpr std::array<std::size_t, 3> connection_counts = {1, 16, 64};
constexpr std::size_t known_paths = 1000;
constexpr std::size_t record_bytes = 100;

void check(bool done, const char* what) {
  if (!done) throw std::system_error(errno, std::system_category(), what);
}

// The length of the whole answer; nothing (0) while its header is not there.
std::size_t answer_bytes(std::string_view received) {
  constexpr std::string_view length = "Content-Length: ";
  constexpr std::string_view end = "\r\n\r\n";
  const std::size_t header_end = received.find(end);
  if (header_end == std::string_view::npos) return 0;
  const std::size_t at = received.substr(0, header_end).find(length);
  if (at == std::string_view::npos) throw std::runtime_error("an answer without a length");
  std::size_t body = 0;
  std::from_chars(received.data() + at + length.size(), received.data() + header_end, body);
  return header_end + end.size() + body;
}

// Some kept-alive connections to a spoord, all served by the calling thread. Each has one request under way,
// of one path. Throws on any answer but 200.
class MarkLoad {
 public:
  using NextPath = std::function<std::string()>;

  MarkLoad(std::uint16_t port, std::size_t connections, NextPath next_path);
  ~MarkLoad();
  MarkLoad(const MarkLoad&) = delete;
  MarkLoad& operator=(const MarkLoad&) = delete;

  // How many marks were acknowledged a second, until the last answer of those sent within `time`.
  double run(std::chrono::milliseconds time);

 private:
  struct Connection {
    int fd = -1;
    std::string received;
  };

  void open(Connection& connection, std::uint16_t port) const;
  void send(const Connection& connection) const;
  bool receive(Connection& connection) const;

  NextPath next_path_;
  int epoll_;
  std::vector<Connection> connections_;
};

MarkLoad::MarkLoad(std::uint16_t port, std::size_t connections, NextPath next_path)
    : next_path_(std::move(next_path)), epoll_(::epoll_create1(EPOLL_CLOEXEC)), connections_(connections) {
  check(epoll_ >= 0, "epoll_create1");
  for (Connection& connection : connections_) open(connection, port);
}

MarkLoad::~MarkLoad() {
  for (const Connection& connection : connections_) ::close(connection.fd);
  ::close(epoll_);
}

void MarkLoad::open(Connection& connection, std::uint16_t port) const {
  connection.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check(connection.fd >= 0, "socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, support::own_loopback().c_str(), &address.sin_addr);
  const int on = 1;
  check(::connect(connection.fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0,
        "connect");
  check(::setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0, "setsockopt");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &connection;
  check(::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event) == 0, "epoll_ctl");
}

void MarkLoad::send(const Connection& connection) const {
  const std::string path = next_path_();
  const std::string request = fmt::format(
      "POST /v1/marks HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: "
      "{}\r\n\r\n{}",
      path.size(), path);
  // One request under way: the socket's buffer is empty, and takes it whole.
  const ssize_t sent = ::send(connection.fd, request.data(), request.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  check(sent == static_cast<ssize_t>(request.size()), "send");
}

// Whether the answer is there.
bool MarkLoad::receive(Connection& connection) const {
  std::array<char, 4096> chunk;
  const ssize_t got = ::recv(connection.fd, chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return false;
  check(got >= 0, "recv");
  if (got == 0) throw std::runtime_error("the daemon ended a connection");
  std::string& received = connection.received;
  received.append(chunk.data(), static_cast<std::size_t>(got));
  const std::size_t whole = answer_bytes(received);
  if (whole == 0 || received.size() < whole) return false;
  if (received.size() > whole || !received.starts_with("HTTP/1.1 200 ")) {
    throw std::runtime_error("an unexpected answer: " + received);
  }
  received.clear();
  return true;
}

double MarkLoad::run(std::chrono::milliseconds time) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto deadline = start + time;
  for (const Connection& connection : connections_) send(connection);
  std::size_t under_way = connections_.size();
  std::size_t acknowledged = 0;
  std::array<epoll_event, 64> events;
  while (under_way > 0) {
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
    check(count >= 0 || errno == EINTR, "epoll_wait");
    for (int i = 0; i < count; ++i) {
      Connection& connection = *static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (!receive(connection)) continue;
      ++acknowledged;
      if (Clock::now() < deadline) {
        send(connection);
      } else {
        --under_way;
      }
    }
  }
  return static_cast<double>(acknowledged) / std::chrono::duration<double>(Clock::now() - start).count();
}

enum class Paths { made_up, known };

// A spoord of its own for each variant.
class Node {
 public:
  Node(const support::TempDirectory& directory, const std::string& durability, Paths paths)
      : durability_(durability), paths_(paths) {
    const auto folder = directory / (durability + (paths == Paths::known ? "-known" : ""));
    std::filesystem::create_directories(folder / "drive");
    // No save falls into a run, and the filter is so wide that every path made up sets bits.
    std::ofstream(folder / "spoor.json")
        << fmt::format(R"({{"node":{{"name":"bench","data_dir":"{0}/data"}},"drives":["{0}/drive"],)"
                       R"("tracker":{{"durability":"{1}","save_interval":"1h","items":4000000}},)"
                       R"("listen":[{{"address":"{2}","port":0,"insecure":true}}]}})",
                       folder.native(), durability, support::own_loopback());
    daemon_ = std::make_unique<support::Daemon>(
        std::vector<std::string>{SPOORD, "--config", (folder / "spoor.json").native()});
    const std::string url = daemon_->wait_for("listening on http://" + support::own_loopback() + ":");
    if (url.empty()) throw std::runtime_error(daemon_->log());
    port_ = static_cast<std::uint16_t>(std::stoul(url));
  }

  const std::string& durability() const { return durability_; }
  Paths paths() const { return paths_; }

  double acknowledged_per_second(std::size_t connections, std::chrono::milliseconds run_time) {
    MarkLoad load(port_, connections, [this] { return next_path(); });
    return load.run(run_time);
  }

  // Whether what was sent as new was new to the daemon, or another thing was measured.
  void check_all_were_new() const {
    const double accepted = status_figure("accepted");
    if (status_figure("new") < accepted * 0.999) {
      throw std::runtime_error("paths that should have been new to the daemon were known to it");
    }
  }

 private:
  std::string next_path() {
    const std::size_t number = paths_ == Paths::known ? made_++ % known_paths : made_++;
    return fmt::format("bucket/holidays/album-{:03}/picture-{:010}.jpeg", number % 100, number);
  }

  double status_figure(const std::string& name) const {
    support::RawClient client(port_);
    client.send("GET /v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    const std::string status = client.receive_all();
    const std::string member = "\"" + name + "\":";
    const std::size_t at = status.find(member);
    if (at == std::string::npos) throw std::runtime_error("no " + member + " in " + status);
    return std::stod(status.substr(at + member.size()));
  }

  std::string durability_;
  Paths paths_;
  std::unique_ptr<support::Daemon> daemon_;
  std::uint16_t port_ = 0;
  std::size_t made_ = 0;
};

// Small records appended to one file, each synced: what one client at a time can get of the disk at most.
double syncs_per_second(const std::filesystem::path& file, std::chrono::milliseconds run_time) {
  using Clock = std::chrono::steady_clock;
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string record(record_bytes, 'r');
  const auto start = Clock::now();
  std::size_t count = 0;
  bool done = fd >= 0;
  for (; done && Clock::now() < start + run_time; ++count) {
    done = ::write(fd, record.data(), record.size()) == static_cast<ssize_t>(record.size()) &&
           ::fdatasync(fd) == 0;
  }
  if (!done) throw std::system_error(errno, std::system_category(), file.native());
  const std::chrono::duration<double> taken = Clock::now() - start;
  ::close(fd);
  return static_cast<double>(count) / taken.count();
}

using Nodes = std::vector<std::unique_ptr<Node>>;  // the first is the one to compare with

// What one node came to with some number of connections.
struct Row {
  bench::Figures per_second;
  bench::Figures to_syncs;
  bench::Figures to_first;
};

struct Measured {
  bench::Figures syncs_per_second;
  std::map<const Node*, std::map<std::size_t, Row>> rows;
};

// Once around.
void acquire_all(const Nodes& nodes, std::size_t connections, std::chrono::milliseconds run_time,
                 const std::filesystem::path& sync_file, Measured& measured) {
  const double syncs = syncs_per_second(sync_file, run_time);
  measured.syncs_per_second.add(syncs);
  double first = 0;
  for (const auto& node : nodes) {
    const double marks = node->acknowledged_per_second(connections, run_time);
    if (node == nodes.front()) first = marks;
    Row& row = measured.rows[node.get()][connections];
    row.per_second.add(marks);
    row.to_syncs.add(marks / syncs);
    row.to_first.add(marks / first);
  }
}

Measured measure(const Settings& settings, const Nodes& nodes, const std::filesystem::path& sync_file) {
  Measured measured;
  for (const auto& node : nodes) {
    node->acknowledged_per_second(16, settings.run_time);  // warms up; makes the known paths known
  }
  for (int round = 0; round < settings.rounds; ++round) {
    for (const std::size_t connections : connection_counts) {
      acquire_all(nodes, connections, settings.run_time, sync_file, measured);
    }
  }
  return measured;
}

void print(const Nodes& nodes, const Measured& measured) {
  const bench::Figures& syncs = measured.syncs_per_second;
  fmt::print("fdatasync after each {} bytes appended: {:.0f} a second ({:.0f} .. {:.0f})\n\n", record_bytes,
             syncs.median(), syncs.min(), syncs.max());
  fmt::print("{:<11}{:<7}{:>12}{:>10}   {:<18}{:>11}{:>10}\n", "durability", "paths", "connections", "acks/s",
             "(min .. max)", "/fdatasync", "/memory");
  for (const auto& node : nodes) {
    for (const auto& [connections, row] : measured.rows.at(node.get())) {
      const bench::Figures& marks = row.per_second;
      fmt::print("{:<11}{:<7}{:>12}{:>10.0f}   {:<18}{:>11.2f}{:>10.2f}\n", node->durability(),
                 node->paths() == Paths::known ? "known" : "new", connections, marks.median(),
                 fmt::format("({:.0f} .. {:.0f})", marks.min(), marks.max()), row.to_syncs.median(),
                 row.to_first.median());
    }
  }
}

void print_targets(const Nodes& nodes, const Measured& measured) {
  bench::Targets targets;
  for (const auto& node : nodes) {
    if (node->durability() != "disk" || node->paths() == Paths::known) continue;
    const auto& rows = measured.rows.at(node.get());
    targets.at_least("disk, new paths, 64 connections: of memory", rows.at(64).to_first.median(), 0.6);
    targets.at_least("disk, new paths, 1 connection: of fdatasync", rows.at(1).to_syncs.median(), 0.6);
  }
}

void run(const Settings& settings) {
  const std::string disk = bench::use_disk();
  const support::TempDirectory directory;
  Nodes nodes;
  nodes.push_back(std::make_unique<Node>(directory, "memory", Paths::made_up));
  nodes.push_back(std::make_unique<Node>(directory, "os", Paths::made_up));
  nodes.push_back(std::make_unique<Node>(directory, "disk", Paths::made_up));
  nodes.push_back(std::make_unique<Node>(directory, "disk", Paths::known));
  fmt::print("Acknowledged marks over HTTP on loopback, one path a request: median of {} runs of {} ms.\n",
             settings.rounds, settings.run_time.count());
  fmt::print("{}, {} processors\n", disk, std::thread::hardware_concurrency());
  const Measured measured = measure(settings, nodes, directory / "synced");
  print(nodes, measured);
  print_targets(nodes, measured);
  for (const auto& node : nodes) {
    if (node->paths() == Paths::made_up) node->check_all_were_new();
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool is_short = false;
  CLI::App program("Times acknowledged marks of each durability beside the disk");
  program.add_flag("--short", is_short, "Runs everything once, for a moment: figures that say nothing");
  return bench::run_bench(program, argc, argv, [&] { run(is_short ? short_settings : Settings{}); });
}
