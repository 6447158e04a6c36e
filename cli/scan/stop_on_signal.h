#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <stop_token>
#include <thread>

namespace spoor::cli {

// Requests a stop on SIGTERM and SIGINT during its lifetime. Callbacks of the token run on its own thread.
class StopOnSignal {
 public:
  StopOnSignal() {
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) source_.request_stop();
    });
    thread_ = std::jthread([this] { context_.run(); });
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal() { context_.stop(); }

  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  boost::asio::io_context context_{1};
  boost::asio::signal_set signals_{context_, SIGTERM, SIGINT};
  std::jthread thread_;
};

}  // namespace spoor::cli
