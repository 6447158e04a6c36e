// Clients that mark as fast as they are answered.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace spoor::bench {

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

}  // namespace spoor::bench
