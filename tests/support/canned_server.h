// An HTTP server whose responses a test writes byte by byte, for responses that no proper server sends.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/listening_socket.h"

namespace spoor::support {

// Listens on own_loopback(). One request a connection; a thread each, on which `respond` is called.
class CannedServer {
 public:
  class Connection {
   public:
    explicit Connection(int fd) : fd_(fd) {}

    // Returns false if the client has closed the connection, or the server ends.
    bool send(const std::string& bytes) const;
    void wait_until_closed() const;

   private:
    int fd_;
  };

  // Gets the request line.
  using Respond = std::function<void(const std::string& request_line, const Connection& connection)>;

  explicit CannedServer(Respond respond);
  CannedServer(const CannedServer&) = delete;
  CannedServer& operator=(const CannedServer&) = delete;
  ~CannedServer();

  std::string url() const;

  // A response with this JSON as its body.
  static std::string response(const std::string& body, const std::string& status = "200 OK");

 private:
  void accept_all();
  void serve(int fd);

  const Respond respond_;
  const ListeningSocket listening_;
  std::mutex mutex_;  // guards the members below
  bool is_stopping_ = false;
  std::vector<int> connections_;
  std::vector<std::jthread> serving_;
  std::jthread accepting_;
};

}  // namespace spoor::support
