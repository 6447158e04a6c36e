// Converts the header that Beast parsed to an HttpRequest.
#pragma once

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <memory_resource>
#include <optional>

#include "daemon/http/http_message.h"

namespace spoor::daemon {

// The fields are in memory of the connection, which saves an allocation for each field.
using HttpFields = boost::beast::http::basic_fields<std::pmr::polymorphic_allocator<char>>;
using HttpHeader = boost::beast::http::request_header<HttpFields>;

// Whether the header and the trailer together have too many fields. Beast bounds their bytes only.
bool has_too_many_fields(const HttpHeader& header);

// Sets all of `request` except its caller and its body. Returns a problem if the target is not a path or
// contains a parameter twice, and if the header is ambiguous, so that a proxy could take for a body what this
// server takes for a request (RFC 9112, sections 3.2 and 6.1 to 6.3).
std::optional<Problem> take_header(const HttpHeader& header, HttpRequest& request);

}  // namespace spoor::daemon
