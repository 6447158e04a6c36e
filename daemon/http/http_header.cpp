#include "daemon/http/http_header.h"

#include <algorithm>
#include <array>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/url.hpp>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace spoor::daemon {
namespace {

namespace http = boost::beast::http;

constexpr std::ptrdiff_t fields_max = 100;

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

Problem bad(const char* what) { return {400, "invalid_request", what}; }

// The fields that matter here: how often each occurs, and its first value. One pass; a lookup of each field
// would be one pass each.
class KnownFields {
 public:
  struct Field {
    http::field name;
    std::size_t count = 0;
    std::string_view value = {};
  };

  explicit KnownFields(const HttpHeader& header) {
    for (const auto& each : header) {
      const auto known = std::ranges::find(fields_, each.name(), &Field::name);
      if (known != fields_.end() && known->count++ == 0) known->value = view(each.value());
    }
  }

  // One of those below.
  const Field& operator[](http::field name) const { return *std::ranges::find(fields_, name, &Field::name); }

 private:
  std::array<Field, 10> fields_ = {{{http::field::host},
                                    {http::field::transfer_encoding},
                                    {http::field::content_length},
                                    {http::field::content_type},
                                    {http::field::content_encoding},
                                    {http::field::authorization},
                                    {http::field::origin},
                                    {http::field::cookie},
                                    {http::field::accept_encoding},
                                    {http::field::if_none_match}}};
};

// The value of the cookie; empty if there is none.
std::string_view cookie_of(std::string_view cookies, std::string_view name) {
  while (!cookies.empty()) {
    std::string_view pair = cookies.substr(0, cookies.find(';'));
    cookies.remove_prefix(std::min(pair.size() + 1, cookies.size()));
    pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
    if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=') {
      return pair.substr(name.size() + 1);
    }
  }
  return {};
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<Problem> ambiguity_of(const KnownFields& fields, bool is_http11) {
  const auto& host = fields[http::field::host];
  const auto& encoding = fields[http::field::transfer_encoding];
  const auto& length = fields[http::field::content_length];
  if (host.count > 1 || (is_http11 && host.count == 0))
    return bad("the header must contain exactly one Host");
  if (encoding.count > 0) {
    if (!is_http11) return bad("HTTP/1.0 has no Transfer-Encoding");
    if (length.count > 0) return bad("Content-Length and Transfer-Encoding contradict each other; send one");
    if (encoding.count > 1 || !boost::beast::iequals(encoding.value, "chunked"))
      return bad("the only supported Transfer-Encoding is 'chunked'");
  }
  if (length.count > 1) return bad("Content-Length was sent more than once");
  if (fields[http::field::authorization].count > 1) return bad("Authorization was sent more than once");
  if (length.count == 1 && !is_number(length.value)) return bad("Content-Length is not a number");
  return std::nullopt;
}

std::optional<Problem> take_target(std::string_view target, HttpRequest& request) {
  request.query.clear();
  const bool is_plain = target.starts_with('/') && target.find_first_of("%?#") == std::string_view::npos;
  if (is_plain || target == "*") {
    request.path = target;
    return std::nullopt;
  }
  auto url = boost::urls::parse_origin_form(target);
  if (!url) url = boost::urls::parse_uri(target);  // the absolute form, as sent to proxies
  if (!url) return bad("the target of the request is not a path: a % or another character in it is wrong");
  request.path = url->path();
  const auto parameters = url->params();
  const bool are_unique = std::all_of(parameters.begin(), parameters.end(), [&](const auto& parameter) {
    return request.query.emplace(parameter.key, parameter.value).second;
  });
  if (!are_unique) return bad("the target of the request contains a parameter twice");
  return std::nullopt;
}

}  // namespace

bool has_too_many_fields(const HttpHeader& header) {
  return std::distance(header.begin(), header.end()) > fields_max;
}

std::optional<Problem> take_header(const HttpHeader& header, HttpRequest& request) {
  const KnownFields fields(header);
  constexpr unsigned http11 = 11;
  if (auto problem = ambiguity_of(fields, header.version() == http11)) return problem;
  request.method = view(header.method_string());
  if (auto problem = take_target(view(header.target()), request)) return problem;
  request.content_type = fields[http::field::content_type].value;
  request.content_encoding = fields[http::field::content_encoding].value;
  request.authorization = fields[http::field::authorization].value;
  request.host = fields[http::field::host].value;
  request.origin = fields[http::field::origin].value;
  request.session.clear();
  const auto& cookie = fields[http::field::cookie];
  if (cookie.count > 0) request.session = cookie_of(cookie.value, session_cookie(request.host));
  request.accept_encoding = fields[http::field::accept_encoding].value;
  request.if_none_match = fields[http::field::if_none_match].value;
  const bool is_chunked = fields[http::field::transfer_encoding].count > 0;
  const std::string_view length = fields[http::field::content_length].value;
  request.has_length = is_chunked || !length.empty();
  request.has_body = is_chunked || length.find_first_not_of('0') != std::string_view::npos;
  return std::nullopt;
}

}  // namespace spoor::daemon
