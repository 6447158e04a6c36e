#include "tests/publish/http_collector.h"

#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <utility>

#include "tests/support/loopback.h"
#include "tests/watch/eventually.h"

namespace spoor::publish {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

HttpCollector::HttpCollector(std::string format)
    : format_(std::move(format)), endpoint_(asio::ip::make_address(support::own_loopback()), 0) {
  listen();
}

HttpCollector::~HttpCollector() { refuse_connections(); }

nlohmann::json HttpCollector::sink() const {
  return {{"url", "http://" + support::own_loopback() + ":" + std::to_string(endpoint_.port()) + "/events"},
          {"format", format_}};
}

std::vector<std::vector<Event>> HttpCollector::batches() {
  const std::scoped_lock lock(mutex_);
  return batches_;
}

std::vector<Event> HttpCollector::events() {
  std::vector<Event> events;
  for (const auto& batch : batches()) events.insert(events.end(), batch.begin(), batch.end());
  return events;
}

bool HttpCollector::wait_for_events(std::size_t count) {
  return watch::eventually([&] { return events().size() >= count; });
}

bool HttpCollector::wait_for_dropped_response() {
  return watch::eventually([&] {
    const std::scoped_lock lock(mutex_);
    return mode_ == Mode::drop_before;
  });
}

void HttpCollector::drop_response(int after) {
  const std::scoped_lock lock(mutex_);
  mode_ = Mode::drop_after;
  responses_left_ = after;
}

void HttpCollector::fail(support::Random& random) {
  if (random.one_in(3)) return refuse_connections();
  if (random.one_in(2)) return drop_response();
  const std::scoped_lock lock(mutex_);
  mode_ = Mode::drop_before;
}

void HttpCollector::restore() {
  {
    const std::scoped_lock lock(mutex_);
    mode_ = Mode::respond;
  }
  if (!acceptor_) listen();
}

// On the same port each time.
void HttpCollector::listen() {
  acceptor_.emplace(context_, endpoint_);
  endpoint_ = acceptor_->local_endpoint();
  {
    const std::scoped_lock lock(mutex_);
    is_down_ = false;
  }
  thread_ = std::jthread([this] { serve(); });
}

void HttpCollector::refuse_connections() {
  if (!acceptor_) return;
  hold_responses(false);
  {
    const std::scoped_lock lock(mutex_);
    is_down_ = true;
    if (connection_ != nullptr) ::shutdown(connection_->native_handle(), SHUT_RDWR);
  }
  ::shutdown(acceptor_->native_handle(), SHUT_RDWR);
  thread_.join();
  acceptor_.reset();
}

// One connection after the other: spoor-publish has one.
void HttpCollector::serve() {
  for (;;) {
    boost::system::error_code error;
    tcp::socket socket(context_);
    acceptor_->accept(socket, error);
    if (error) return;
    {
      const std::scoped_lock lock(mutex_);
      if (is_down_) return;
      connection_ = &socket;
    }
    serve_connection(socket);
    const std::scoped_lock lock(mutex_);
    connection_ = nullptr;
    if (is_down_) return;
  }
}

void HttpCollector::serve_connection(tcp::socket& socket) {
  boost::beast::flat_buffer buffer;
  boost::system::error_code error;
  for (;;) {
    http::request<http::string_body> request;
    http::read(socket, buffer, request, error);
    if (error || !take(request.body())) return;
    holds_responses_.wait(true);
    http::response<http::empty_body> response(http::status::no_content, request.version());
    response.keep_alive(request.keep_alive());
    http::write(socket, response, error);
    if (error || !request.keep_alive()) return;
  }
}

bool HttpCollector::take(const std::string& body) {
  const auto json = nlohmann::json::parse(body);
  const std::scoped_lock lock(mutex_);
  if (is_down_ || mode_ == Mode::drop_before) return false;
  std::vector<Event>& batch = batches_.emplace_back();
  for (const auto& each : json.is_array() ? json : nlohmann::json::array({json}))
    batch.push_back(read_event(each));
  if (mode_ == Mode::respond || responses_left_-- > 0) return true;
  mode_ = Mode::drop_before;
  return false;
}

}  // namespace spoor::publish
