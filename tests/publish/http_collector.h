// An HTTP server that collects CloudEvents.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "tests/publish/event_server.h"

namespace spoor::publish {

// Listens on own_loopback(). Keeps the events in the memory of the test: they survive its failures.
class HttpCollector final : public EventServer {
 public:
  explicit HttpCollector(std::string format);
  HttpCollector(const HttpCollector&) = delete;
  HttpCollector& operator=(const HttpCollector&) = delete;
  ~HttpCollector() override;

  nlohmann::json sink() const override;
  std::vector<Event> events() override;
  // Refuses connections, or drops the next one before or after it stored the events of a request.
  void fail(support::Random& random) override;
  void restore() override;
  Repeats repeats() const override { return Repeats::within_a_batch; }

  void refuse_connections();
  // Stores a request after so many others, and closes the connection instead of a response; then stores none.
  void drop_response(int after = 0);
  // While it is true, requests are stored and have no response yet.
  void hold_responses(bool hold) {
    holds_responses_ = hold;
    holds_responses_.notify_all();
  }

  // Those of each request.
  std::vector<std::vector<Event>> batches();
  // Return false if that does not happen in bounded time.
  bool wait_for_events(std::size_t count);
  bool wait_for_dropped_response();

 private:
  enum class Mode { respond, drop_before, drop_after };

  void listen();
  void serve();
  void serve_connection(boost::asio::ip::tcp::socket& socket);
  // Returns whether to respond.
  bool take(const std::string& body);

  const std::string format_;
  boost::asio::io_context context_;
  boost::asio::ip::tcp::endpoint endpoint_;
  std::mutex mutex_;
  std::optional<boost::asio::ip::tcp::acceptor> acceptor_;  // opened and closed by the test only
  boost::asio::ip::tcp::socket* connection_ = nullptr;
  Mode mode_ = Mode::respond;
  int responses_left_ = 0;  // before the one that is dropped
  bool is_down_ = true;
  std::atomic<bool> holds_responses_ = false;
  std::vector<std::vector<Event>> batches_;
  std::jthread thread_;
};

}  // namespace spoor::publish
