#include "base/printable.h"

#include <fmt/core.h>

#include <boost/locale/utf.hpp>
#include <limits>

namespace spoor::base {
namespace {

namespace utf = boost::locale::utf;

struct Character {
  utf::code_point code = 0;
  std::size_t bytes = 0;  // 0: `text` begins with no valid sequence
};

Character decode(std::string_view text) {
  const char* next = text.data();
  const auto code = utf::utf_traits<char>::decode(next, text.data() + text.size());
  const bool is_valid = code != utf::illegal && code != utf::incomplete;
  return {code, is_valid ? static_cast<std::size_t>(next - text.data()) : 0};
}

// C0 and C1 controls, direction marks, and line and paragraph separators.
bool is_control(utf::code_point code) {
  const auto in = [&](utf::code_point first, utf::code_point last) { return code >= first && code <= last; };
  return code < 0x20 || in(0x7F, 0x9F) || code == 0x061C || in(0x200E, 0x200F) || in(0x2028, 0x202E) ||
         in(0x2066, 0x2069);
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::size_t utf8_length(std::string_view text) { return decode(text).bytes; }

std::string printable(std::string_view raw, std::size_t bytes_max) {
  std::string text;
  while (!raw.empty()) {
    if (text.size() > bytes_max) return text + "...";
    const auto [code, bytes] = decode(raw);
    if (bytes == 0 || is_control(code)) {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(raw[0]));
      raw.remove_prefix(1);
    } else {
      text += raw.substr(0, bytes);
      raw.remove_prefix(bytes);
    }
  }
  return text;
}

std::string printable_lines(std::string_view raw) {
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  std::string text;
  for (std::size_t end = raw.find('\n'); end != std::string_view::npos; end = raw.find('\n')) {
    text += printable(raw.substr(0, end), all) + '\n';
    raw.remove_prefix(end + 1);
  }
  return text + printable(raw, all);
}

std::string without_password(std::string_view text) {
  constexpr std::string_view hidden = "***";
  constexpr std::string_view setting = "password=";
  if (const std::size_t at = text.find(setting); at != std::string_view::npos) {
    return without_password(text.substr(0, at)).append(setting).append(hidden);
  }
  const std::size_t at = text.rfind('@');
  if (at == std::string_view::npos) return std::string(text);
  std::size_t start = 0;
  if (const std::size_t scheme = text.find("://"); scheme < at) {
    start = scheme + 3;
  } else if (text.starts_with('/') || text.starts_with("unix:") || text.find(':') > at) {
    return std::string(text);  // a path or a name; without a scheme, USER:PASSWORD@HOST has a colon
  }
  return std::string(text.substr(0, start)).append(hidden).append(text.substr(at));
}

}  // namespace spoor::base
