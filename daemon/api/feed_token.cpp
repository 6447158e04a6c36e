#include "daemon/api/feed_token.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/base64.h"
#include "base/number.h"

namespace spoor::daemon {
namespace {

constexpr std::string_view version = "1";
constexpr std::string_view version_with_files = "2";
constexpr std::string_view before_file = "//";  // in no path, and no name of a file
constexpr std::size_t group_digits = 4;         // of base64

// Takes the text before the next space; nothing if there is no space.
std::optional<std::string_view> take_word(std::string_view& text) {
  const std::size_t end = text.find(' ');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end + 1);
  return word;
}

std::optional<std::uint64_t> take_number(std::string_view& text) {
  const auto word = take_word(text);
  return word ? base::parse_number<std::uint64_t>(*word) : std::nullopt;
}

// The directory, and the file after it if files are listed.
bool take_place(std::string_view text, bool with_files, FeedPlace& place) {
  if (with_files) {
    const std::size_t end = text.rfind(before_file);
    if (end == std::string_view::npos) return false;
    place.file = text.substr(end + before_file.size());
    text = text.substr(0, end);
  }
  place.after = text;
  return true;
}

}  // namespace

std::string to_token(const FeedPlace& place) {
  std::string text = fmt::format("{} {} {} {} {}", place.file ? version_with_files : version, place.feed,
                                 place.since, place.until, place.after);
  if (place.file) text.append(before_file).append(*place.file);
  std::string token = base::to_base64(text);
  std::replace(token.begin(), token.end(), '+', '-');
  std::replace(token.begin(), token.end(), '/', '_');
  token.erase(std::find(token.begin(), token.end(), '='), token.end());
  return token;
}

std::optional<FeedPlace> from_token(std::string_view token) {
  if (token.find_first_of("+/=") != std::string_view::npos) return std::nullopt;
  std::string standard(token);
  std::replace(standard.begin(), standard.end(), '-', '+');
  std::replace(standard.begin(), standard.end(), '_', '/');
  standard.append((group_digits - standard.size() % group_digits) % group_digits, '=');
  const auto bytes = base::from_base64(standard);
  if (!bytes) return std::nullopt;
  std::string_view rest = *bytes;
  const auto its_version = take_word(rest);
  const bool with_files = its_version == version_with_files;
  if (!with_files && its_version != version) return std::nullopt;
  const auto feed = take_word(rest);
  const auto since = take_number(rest);
  const auto until = take_number(rest);
  if (!feed || !since || !until || *since > *until) return std::nullopt;
  FeedPlace place{.feed = std::string(*feed), .since = *since, .until = *until, .after = {}};
  if (!take_place(rest, with_files, place)) return std::nullopt;
  return place;
}

}  // namespace spoor::daemon
