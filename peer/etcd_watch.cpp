#include "peer/etcd_watch.h"

#include <fmt/core.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/base64.h"
#include "peer/http_exchange.h"
#include "tracker/path.h"

namespace spoor::peer {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using nlohmann::json;

constexpr std::size_t part_bytes = std::size_t{16} << 10U;  // of the answer, read at a time
constexpr std::size_t reason_bytes_max = 400;

base::Error bad_answer(std::string_view why) {
  return {std::make_error_code(std::errc::protocol_error), std::string(why)};
}

// Cuts a stream of bytes into JSON objects, by their braces: nothing else says where one ends.
class ObjectCutter {
 public:
  // The objects that `bytes` bring to an end.
  base::Result<std::vector<std::string>> add(std::string_view bytes) {
    std::vector<std::string> objects;
    for (const char byte : bytes) {
      if (depth_ == 0 && is_space(byte)) continue;
      if (depth_ == 0 && byte != '{') return bad_answer("etcd sends what is no JSON object");
      if (object_.size() == EtcdWatch::answer_bytes_max) return bad_answer("the answer is too large");
      object_ += byte;
      count(byte);
      if (depth_ == 0) objects.push_back(std::exchange(object_, {}));
    }
    return objects;
  }

 private:
  static bool is_space(char byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

  void count(char byte) {
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (in_string_) {
      is_escaped_ = byte == '\\';
      in_string_ = byte != '"';
    } else if (byte == '"') {
      in_string_ = true;
    } else if (byte == '{') {
      ++depth_;
    } else if (byte == '}') {
      --depth_;
    }
  }

  std::string object_;  // the one that has begun
  std::size_t depth_ = 0;
  bool in_string_ = false;
  bool is_escaped_ = false;
};

// A peer that vanished is found out within a minute, though nothing is ever sent to it.
void keep_alive(Exchange::Socket& socket) {
  constexpr std::array<std::pair<int, int>, 3> settings{
      {{TCP_KEEPIDLE, 30}, {TCP_KEEPINTVL, 10}, {TCP_KEEPCNT, 3}}};
  for (const auto& [name, value] : settings) {
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, name, &value, sizeof(value));
  }
  boost::system::error_code ignored;
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
}

bool is_set(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && *found == json(true);
}

bool has_some(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_array() && !found->empty();
}

http::request<http::string_body> to_request(const Endpoint& endpoint, const EtcdRange& range) {
  const json asked{
      {"create_request", {{"key", base::to_base64(range.first)}, {"range_end", base::to_base64(range.end)}}}};
  http::request<http::string_body> message{http::verb::post, "/v3/watch", 11};
  message.set(http::field::host, endpoint.host_field());
  message.set(http::field::user_agent, "spoor");
  message.set(http::field::content_type, "application/json");
  // A member that lost the others, and would be silent for ever, ends the watch.
  message.set("Grpc-Metadata-hasleader", "true");
  message.body() = asked.dump();
  message.prepare_payload();
  return message;
}

}  // namespace

EtcdWatch::EtcdWatch(asio::io_context& context, Options options, Callbacks callbacks)
    : context_(context), options_(std::move(options)), callbacks_(std::move(callbacks)), pause_(context) {}

void EtcdWatch::start() {
  asio::co_spawn(context_, run(), [](const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);
  });
}

void EtcdWatch::stop() {
  stopped_ = true;
  pause_.cancel();
  if (exchange_) exchange_->expire();
}

asio::awaitable<void> EtcdWatch::run() {
  while (!stopped_) {
    const Endpoint& endpoint = options_.endpoints[next_];
    const base::Error ended = co_await watch(endpoint);
    exchange_.reset();
    if (stopped_) break;
    next_ = (next_ + 1) % options_.endpoints.size();
    ++failures_;
    // The first one in a row is the end of the watch there was.
    if (failures_ == options_.endpoints.size() + 1)
      callbacks_.on_trouble(base::wrap(endpoint.to_string(), ended));
    if (stopped_) break;
    pause_.expires_after(pause_after(failures_, options_.first_pause, options_.pause_max, random_));
    co_await pause_.async_wait(as_result);
  }
}

// Gives why it ended.
asio::awaitable<base::Error> EtcdWatch::watch(const Endpoint& endpoint) {
  const auto exchange = std::make_shared<Exchange>(co_await asio::this_coro::executor);
  exchange_ = exchange;
  arm(exchange, options_.timeout);
  const Disarm at_the_end(exchange->deadline);
  const auto connected = co_await open(exchange, endpoint);
  if (!connected) co_return connected.error();
  if (!endpoint.is_unix()) keep_alive(exchange->socket);
  const auto request = to_request(endpoint, options_.range);
  const auto [error, written] = co_await http::async_write(exchange->socket, request, as_result);
  if (error) co_return failure(*exchange, "send the request", error);
  co_return co_await read();
}

asio::awaitable<base::Error> EtcdWatch::read() {
  beast::flat_buffer buffer(part_bytes);
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(boost::none);  // it does not end, and is not kept
  const auto [failed, header_bytes] =
      co_await http::async_read_header(exchange_->socket, buffer, parser, as_result);
  if (failed) co_return failure(*exchange_, "read the answer", failed);
  const unsigned status = parser.get().result_int();
  if (status != 200) co_return bad_answer(fmt::format("HTTP status {}", status));
  std::string part(part_bytes, '\0');
  ObjectCutter cutter;
  while (!parser.is_done()) {
    auto& body = parser.get().body();
    body.data = part.data();
    body.size = part.size();
    const auto [error, bytes] = co_await http::async_read_some(exchange_->socket, buffer, parser, as_result);
    if (error && error != http::error::need_buffer) co_return failure(*exchange_, "read the answer", error);
    const auto answers = cutter.add({part.data(), part.size() - body.size});
    if (!answers) co_return answers.error();
    for (const std::string& answer : *answers) {
      const auto taken = take(answer);
      if (!taken) co_return taken.error();
    }
  }
  co_return bad_answer("etcd ended the watch");
}

// Whether the watch goes on.
base::Result<> EtcdWatch::take(const std::string& answer) {
  if (stopped_) return {};
  const json parsed = json::parse(answer, nullptr, false);
  const auto result = parsed.find("result");
  const bool goes_on = result != parsed.end() && result->is_object() && !is_set(*result, "canceled");
  if (!goes_on) {
    return bad_answer("etcd does not watch: " + tracker::printable(answer.substr(0, reason_bytes_max)));
  }
  if (is_set(*result, "created")) begin();
  if (is_set(*result, "created") || has_some(*result, "events")) callbacks_.on_change();
  return {};
}

void EtcdWatch::begin() {
  exchange_->deadline.cancel();
  failures_ = 0;
}

}  // namespace spoor::peer
