// Requests that a browser sends for a page of another site, possibly without the user's knowledge.
#pragma once

#include <optional>
#include <string_view>

#include "daemon/http/http_message.h"
#include "daemon/http/problem.h"

namespace spoor::daemon {

// The problem that a request which changes something may come from such a page; `asks_for_credentials` is
// that of Access. A page of another site has another Origin; one whose name was made to lead to this machine
// (DNS rebinding) has a Host that is neither an IP address, localhost nor `node`; over TLS the browser
// refuses that name's certificate. A request with a token, where one is required, is none of these: no
// browser adds a token by itself. Nor can a browser open a Unix socket.
std::optional<Problem> refuse_cross_site(const HttpRequest& request, bool asks_for_credentials,
                                         std::string_view node);

}  // namespace spoor::daemon
