// The `next` of a page of the change feed: where the next page begins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spoor::daemon {

struct FeedPlace {
  std::string feed;
  std::uint64_t since = 0;
  std::uint64_t until = 0;
  std::string after;  // the last directory of this page
  // The last of its files in this page, empty for none; nothing if files are not requested.
  std::optional<std::string> file = {};

  bool operator==(const FeedPlace&) const = default;
};

// Letters, digits, '-' and '_', so that it needs no escapes in a URL.
std::string to_token(const FeedPlace& place);

// Nothing if `token` is not the result of to_token() for any place.
std::optional<FeedPlace> from_token(std::string_view token);

}  // namespace spoor::daemon
