#include "base/base64.h"

#include <cstdint>

namespace spoor::base {
namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t group_bytes = 3;
constexpr std::size_t group_digits = 4;
constexpr unsigned digit_bits = 6;
constexpr unsigned byte_bits = 8;

// Appends four digits, padded with '=' if there are fewer than three bytes.
void append_group(std::string_view bytes, std::string& text) {
  std::uint32_t bits = 0;
  for (std::size_t at = 0; at < group_bytes; ++at) {
    bits = bits << byte_bits | (at < bytes.size() ? static_cast<std::uint8_t>(bytes[at]) : 0U);
  }
  for (std::size_t at = 0; at < group_digits; ++at) {
    const auto shift = static_cast<unsigned>(group_digits - 1 - at) * digit_bits;
    text += at <= bytes.size() ? alphabet[bits >> shift & 63U] : '=';
  }
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + group_bytes - 1) / group_bytes * group_digits);
  for (std::size_t at = 0; at < bytes.size(); at += group_bytes) {
    append_group(bytes.substr(at, group_bytes), text);
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % group_digits != 0) return std::nullopt;
  const std::size_t digits = text.ends_with("==")  ? text.size() - 2
                             : text.ends_with('=') ? text.size() - 1
                                                   : text.size();
  std::string bytes;
  bytes.reserve(text.size() / group_digits * group_bytes);
  std::uint32_t bits = 0;
  unsigned bits_held = 0;
  for (const char digit : text.substr(0, digits)) {
    const std::size_t value = alphabet.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << digit_bits | static_cast<std::uint32_t>(value);
    bits_held += digit_bits;
    if (bits_held < byte_bits) continue;
    bits_held -= byte_bits;
    bytes += static_cast<char>(static_cast<std::uint8_t>(bits >> bits_held));
    bits &= (1U << bits_held) - 1;
  }
  // The unused bits of the last digit must be zero; otherwise two texts would decode to the same bytes.
  if (bits != 0) return std::nullopt;
  return bytes;
}

}  // namespace spoor::base
