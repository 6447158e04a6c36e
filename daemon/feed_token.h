// The `next` of a page of the change feed: where the next page goes on.
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
  std::string after;  // the last directory that was told
  // The last of its files that was told, empty for none of them; nothing where files are not asked for.
  std::optional<std::string> file = {};

  bool operator==(const FeedPlace&) const = default;
};

// Letters, digits, '-' and '_', so that it needs no escapes in a URL.
std::string to_token(const FeedPlace& place);

// Nothing where `token` is not what to_token() gives for any place.
std::optional<FeedPlace> from_token(std::string_view token);

}  // namespace spoor::daemon
