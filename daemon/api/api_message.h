// What all routes read and write in the same way.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "daemon/http/http_message.h"
#include "peer/gather/cycle_exchange.h"

namespace spoor::daemon {

// Of all paths in a response.
inline constexpr std::uint64_t response_path_bytes_max = std::uint64_t{2} << 20U;

// Whether the Content-Type is this one, whatever its parameters.
bool has_media_type(const HttpRequest& request, std::string_view type);

// The problem that the body has a Content-Encoding; nothing if it has none.
std::optional<Problem> refuse_content_encoding(const HttpRequest& request);

// The problem that there is a parameter of another name: a misspelt one must not count as not given.
std::optional<Problem> unknown_parameter(const HttpRequest& request,
                                         std::initializer_list<std::string_view> known);

// Reads the parameters of a query, and keeps the first problem.
struct QueryReader {
  const HttpRequest& request;
  std::optional<Problem> problem;

  void require(bool holds, std::string_view what);
  // Leaves `number` unchanged if the parameter is missing.
  void number(const char* name, std::uint64_t min, std::uint64_t max, std::uint64_t& number);
};

// The problem that a path, the `index`th of its request, could not be normalised.
Problem path_problem(const base::Error& error, std::string_view raw, std::size_t index = 0);

// The body of a request of another node of this cluster, or the problem with it.
boost::system::result<peer::CycleQuery, Problem> read_cycle_query(const HttpRequest& request,
                                                                  std::string_view node,
                                                                  std::string_view cluster);

// The error that this node was never scanned.
base::Error no_scan_error();

// The problem that all places for such requests are taken: "requests wait for a save".
HttpResponse too_many(std::string_view what);

// What is not UTF-8 becomes U+FFFD.
HttpResponse json_response(const nlohmann::ordered_json& body);

inline boost::asio::awaitable<HttpResponse> at_once(HttpResponse response) { co_return response; }

}  // namespace spoor::daemon
