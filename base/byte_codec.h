// Writes and reads the fields of Spoor's binary formats (docs/formats.md): fixed width, little-endian, every
// read bounded by the bytes left.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace spoor::base {

class ByteWriter {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void u16(std::uint16_t value) { put(value); }
  void u32(std::uint32_t value) { put(value); }
  void u64(std::uint64_t value) { put(value); }
  void raw(std::string_view value) { bytes_.append(value); }

  // Variable length (LEB128): 7 bits a byte, the lowest first, the highest bit set in all but the last byte.
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) u8(static_cast<std::uint8_t>(value | 0x80U));
    u8(static_cast<std::uint8_t>(value));
  }

  // number() of a difference modulo 2^64: short for small ones of either sign.
  void difference(std::uint64_t value) { number((value << 1U) ^ (0 - (value >> 63U))); }

  // A 16-bit length, then the bytes. `value` must be shorter than 64 KiB.
  void short_string(std::string_view value) {
    u16(static_cast<std::uint16_t>(value.size()));
    raw(value);
  }

  // A 64-bit length, then the bytes.
  void text(std::string_view value) {
    u64(value.size());
    raw(value);
  }

  // In one copy if the machine is little-endian: there can be many words.
  void words(std::span<const std::uint64_t> values) {
    if constexpr (boost::endian::order::native == boost::endian::order::little) {
      raw({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
    } else {
      for (const std::uint64_t value : values) put(value);
    }
  }

  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  template <class T>
  void put(T value) {
    unsigned char buffer[sizeof(T)];
    boost::endian::endian_store<T, sizeof(T), boost::endian::order::little>(buffer, value);
    bytes_.append(reinterpret_cast<const char*>(buffer), sizeof(T));
  }

  std::string bytes_;
};

// A read past the end puts the reader into the failed state and returns zeros. Check ok() before using a
// value, and before allocating by a length that was read.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t u8() { return get<std::uint8_t>(); }
  std::uint16_t u16() { return get<std::uint16_t>(); }
  std::uint32_t u32() { return get<std::uint32_t>(); }
  std::uint64_t u64() { return get<std::uint64_t>(); }
  std::uint64_t u64_big() { return get<std::uint64_t, boost::endian::order::big>(); }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = u8();
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) return value;
    }
    fail();
    return 0;
  }
  std::uint64_t difference() {
    const std::uint64_t folded = number();
    return (folded >> 1U) ^ (0 - (folded & 1U));
  }
  std::string_view short_string() { return raw(u16()); }
  std::string_view text() { return raw(u64()); }

  // Reads values.size() words.
  void words(std::span<std::uint64_t> values) {
    const std::string_view taken = raw(values.size_bytes());
    if (taken.size() != values.size_bytes()) return std::fill(values.begin(), values.end(), 0);
    taken.copy(reinterpret_cast<char*>(values.data()), taken.size());
    for (std::uint64_t& value : values) boost::endian::little_to_native_inplace(value);
  }

  std::string_view raw(std::uint64_t size) {
    if (size > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  bool ok() const { return ok_; }
  std::size_t remaining() const { return rest_.size(); }

 private:
  template <class T, boost::endian::order Order = boost::endian::order::little>
  T get() {
    const std::string_view taken = raw(sizeof(T));
    if (taken.size() != sizeof(T)) return 0;
    unsigned char buffer[sizeof(T)];
    taken.copy(reinterpret_cast<char*>(buffer), sizeof(T));
    return boost::endian::endian_load<T, sizeof(T), Order>(buffer);
  }

  void fail() {
    ok_ = false;
    rest_ = {};
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace spoor::base
