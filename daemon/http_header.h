// The header of a request: from what Beast has parsed to what the API sees.
#pragma once

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <memory_resource>
#include <optional>

#include "daemon/http_message.h"
#include "daemon/problem.h"

namespace spoor::daemon {

// The memory is that of a connection: a request would else ask for some for each of its fields.
using HttpFields = boost::beast::http::basic_fields<std::pmr::polymorphic_allocator<char>>;
using HttpHeader = boost::beast::http::request_header<HttpFields>;

// Beast bounds what it gets at one time, but not how many fields it makes of it: neither of a header nor of a
// trailer, which count together.
bool has_too_many_fields(const HttpHeader& header);

// Writes all of `request` but its caller and its body. A problem where the target is no path or names a
// parameter twice, and where two parties could read the header in two ways, so that one sees a request where
// the other sees a body (RFC 9112, sections 3.2 and 6.1 to 6.3).
std::optional<Problem> take_header(const HttpHeader& header, HttpRequest& request);

}  // namespace spoor::daemon
