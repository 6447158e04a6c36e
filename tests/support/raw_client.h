// Bytes to and from a TCP port of own_loopback(), for what no proper client would send.
#pragma once

#include <cstdint>
#include <string>

namespace spoor::support {

class RawClient {
 public:
  explicit RawClient(std::uint16_t port);
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient();

  void send(const std::string& bytes);
  void end_sending();

  // Until what was sent has come to the other side's kernel.
  void wait_until_received() const;

  // Everything that comes until the other side ends the connection.
  std::string receive_all();

  // What has come once it holds `text`; less, where the connection ended before.
  std::string receive_until(const std::string& text);

 private:
  bool receive_some();

  int fd_;
  std::string received_;
};

}  // namespace spoor::support
