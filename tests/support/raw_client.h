// Sends and receives raw bytes on a TCP port of own_loopback(), for input that no proper client sends.
#pragma once

#include <cstdint>
#include <string>

namespace spoor::support {

class RawClient {
 public:
  // `source`: the address to connect from; empty: the kernel chooses it.
  explicit RawClient(std::uint16_t port, const std::string& source = {});
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient();

  void send(const std::string& bytes);
  void end_sending();

  // Waits until the kernel of the other side has received everything that was sent.
  void wait_until_received() const;

  // Reads until the other side closes the connection.
  std::string receive_all();

  // Reads until the received bytes contain `text` or the connection ends.
  std::string receive_until(const std::string& text);

 private:
  bool receive_some();

  int fd_;
  std::string received_;
};

}  // namespace spoor::support
