#include "base/printable.h"

#include <fmt/core.h>

#include <limits>

namespace spoor::base {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xC0U) != 0x80U) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xED && byte(1) > 0x9F;
  const bool too_high = lead == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || too_high ? 0 : length;
}

namespace {

// C0 and C1 controls, direction marks, and line and paragraph separators (U+061C, U+200E, U+200F, U+2028 to
// U+202E, U+2066 to U+2069).
bool is_control(std::string_view sequence) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(sequence[at]); };
  if (sequence.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (sequence.size() == 2) return (byte(0) == 0xC2 && byte(1) < 0xA0) || sequence == "\xd8\x9c";
  if (sequence.size() != 3 || byte(0) != 0xE2) return false;
  const unsigned char last = byte(2);
  if (byte(1) == 0x81) return last >= 0xA6 && last <= 0xA9;
  return byte(1) == 0x80 && (last == 0x8E || last == 0x8F || (last >= 0xA8 && last <= 0xAE));
}

}  // namespace

std::string printable(std::string_view raw, std::size_t bytes_max) {
  std::string text;
  while (!raw.empty()) {
    if (text.size() > bytes_max) return text + "...";
    const std::size_t length = utf8_length(raw);
    if (length == 0 || is_control(raw.substr(0, length))) {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(raw[0]));
      raw.remove_prefix(1);
    } else {
      text += raw.substr(0, length);
      raw.remove_prefix(length);
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
