// GET /v1/changes: pages of the change feed.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "daemon/http/http_message.h"
#include "scanner/store/usage_database.h"

namespace spoor::daemon {

// Where the next page begins.
struct FeedPlace {
  std::string feed;
  std::uint64_t since = 0;
  std::uint64_t until = 0;
  std::string after;  // the last directory of this page
  // The last of its files in this page, empty for none; nothing if files are not requested.
  std::optional<std::string> file = {};

  bool operator==(const FeedPlace&) const = default;
};

// The `next` of a page: letters, digits, '-' and '_', so that it needs no escapes in a URL.
std::string to_token(const FeedPlace& place);

// Nothing if `token` is not the result of to_token() for any place.
std::optional<FeedPlace> from_token(std::string_view token);

struct ChangesRequest {
  std::uint64_t since = 0;
  std::optional<std::string> feed;   // that `since` is a scan of
  std::optional<FeedPlace> goes_on;  // a further page
  bool is_first = false;             // without `since`: from the last scan on
  bool files = false;
  std::uint64_t changes_max = 1'000;
  std::chrono::milliseconds wait{0};  // for a scan after `since`

  bool waits() const { return wait > std::chrono::milliseconds::zero() && !is_first && !goes_on; }
};

boost::system::result<ChangesRequest, Problem> parse_changes_request(const HttpRequest& request);

// Whether a reader that has the changes until `since` is to be responded to now: there is a further scan, or
// an error.
bool has_news(const std::filesystem::path& file, const ChangesRequest& asked);

base::Result<HttpResponse> read_changes_page(scanner::UsageDatabase& database, const ChangesRequest& asked,
                                             const std::function<bool()>& should_stop);

}  // namespace spoor::daemon
