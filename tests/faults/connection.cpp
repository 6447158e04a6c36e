#include "tests/faults/connection.h"

#include <boost/beast/http.hpp>

#include "tests/support/loopback.h"

namespace spoor::faults {

namespace http = boost::beast::http;

Connection::Connection(std::uint16_t port) : socket_(context_) {
  boost::system::error_code gone;
  socket_.connect({boost::asio::ip::make_address_v4(support::own_loopback()), port}, gone);
  if (gone) socket_.close(gone);
}

std::optional<Answer> Connection::send(const std::string& method, const std::string& target,
                                       const std::string& body) {
  http::request<http::string_body> request(http::string_to_verb(method), target, 11);
  request.set(http::field::host, "localhost");
  request.set(http::field::content_type, "application/json");
  request.body() = body;
  request.prepare_payload();
  boost::system::error_code gone;
  http::write(socket_, request, gone);
  http::response<http::string_body> response;
  if (!gone) http::read(socket_, buffer_, response, gone);
  if (gone) {
    boost::system::error_code ignored;
    socket_.close(ignored);
    return std::nullopt;
  }
  return Answer{response.result_int(), std::string(response[http::field::retry_after]), response.body()};
}

}  // namespace spoor::faults
