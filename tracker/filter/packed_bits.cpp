#include "tracker/filter/packed_bits.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <boost/endian/conversion.hpp>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/byte_codec.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

constexpr std::size_t head_bytes = 9;
// The longest run of zeros in the code of a gap: otherwise a crafted form could make a lookup read megabytes.
constexpr std::uint64_t zeros_max = std::uint64_t{1} << 18U;
constexpr unsigned rice_max = 36;  // no gap is longer than the largest filter

struct Gap {
  std::uint64_t length = 0;
  std::uint64_t next_bit = 0;
};

// The bits after the head. The code of a gap g: g >> rice zeros, a one, and the lowest `rice` bits of g.
struct Stream {
  const char* bytes = nullptr;  // readable for eight bytes after the last bit
  std::uint64_t bits = 0;
  unsigned rice = 0;

  static constexpr unsigned window_bits = 57;
  // Represents any gap too long for a filter; small enough that additions can't overflow.
  static constexpr std::uint64_t too_long = std::uint64_t{1} << 62U;

  explicit Stream(std::string_view packed)
      : bytes(packed.data() + head_bytes),
        bits((packed.size() - head_bytes) * 8),
        rice(static_cast<unsigned char>(packed[head_bytes - 1])) {}

  // At least `window_bits` bits from this one on. `at` <= bits.
  std::uint64_t window(std::uint64_t at) const {
    const auto* from = reinterpret_cast<const unsigned char*>(bytes + at / 8);
    return boost::endian::load_little_u64(from) >> (at % 8);
  }

  std::uint64_t low_bits(std::uint64_t from) const { return from & ((std::uint64_t{1} << rice) - 1); }

  // The gap whose code begins at bit `at`. If the stream ends within the code, `next_bit` is after its end.
  Gap read(std::uint64_t at) const {
    const std::uint64_t next = window(at);
    const auto zeros = static_cast<unsigned>(std::countr_zero(next));
    if (zeros + 1 + rice > window_bits) return read_long(at);
    return {std::uint64_t{zeros} << rice | low_bits(next >> zeros >> 1U), at + zeros + 1 + rice};
  }

  // A separate function with `at` by value: `at` stays in a register for short codes.
  Gap read_long(std::uint64_t at) const {
    std::uint64_t zeros = 0;
    std::uint64_t next = window(at);
    while (next == 0) {
      zeros += 64 - at % 8;
      at += 64 - at % 8;
      if (at >= bits) return {too_long, bits + 1};
      next = window(at);
    }
    const auto last_zeros = static_cast<unsigned>(std::countr_zero(next));
    zeros += last_zeros;
    at += last_zeros + 1;
    if (zeros > too_long >> rice) return {too_long, at};
    return {zeros << rice | low_bits(window(at)), at + rice};
  }
};

class StreamWriter {
 public:
  StreamWriter(base::ByteWriter& out, unsigned rice) : out_(out), rice_(rice) {}

  void put(std::uint64_t gap) {
    put_zeros(gap >> rice_);
    put_bits((gap & ((std::uint64_t{1} << rice_) - 1)) << 1U | 1U, rice_ + 1);
  }

  void finish() {
    for (unsigned written = 0; written < used_; written += 8)
      out_.u8(static_cast<std::uint8_t>(buffer_ >> written));
  }

  std::uint64_t bits() const { return whole_words_ * 64 + used_; }

 private:
  void put_zeros(std::uint64_t zeros) {
    for (; zeros >= 64 - used_; used_ = 0) {
      zeros -= 64 - used_;
      flush(0);
    }
    used_ += static_cast<unsigned>(zeros);
  }

  // `width` <= rice_max + 1: at most two words are written.
  void put_bits(std::uint64_t value, unsigned width) {
    const unsigned before = used_;
    buffer_ |= value << before;
    used_ += width;
    if (used_ < 64) return;
    flush(value >> (64 - before));
    used_ -= 64;
  }

  void flush(std::uint64_t rest) {
    out_.u64(buffer_);
    ++whole_words_;
    buffer_ = rest;
  }

  base::ByteWriter& out_;
  unsigned rice_;
  std::uint64_t buffer_ = 0;
  unsigned used_ = 0;
  std::uint64_t whole_words_ = 0;
};

// The best Rice parameter for random bits, and the expected size.
struct Plan {
  unsigned rice = 0;
  std::uint64_t bytes = head_bytes;

  Plan(std::uint64_t count, std::uint64_t bits) {
    if (count == 0) return;
    const double set = static_cast<double>(count);
    const double per_bit = -std::log1p(-set / static_cast<double>(bits));
    // Kiely 2004, "Selecting the Golomb parameter in Rice coding".
    const double best = 1 + std::floor(std::log2(std::log(std::numbers::phi) / per_bit));
    rice = static_cast<unsigned>(std::clamp(best, 0.0, static_cast<double>(rice_max)));
    const double zeros = 1 / std::expm1(std::ldexp(per_bit, static_cast<int>(rice)));
    bytes += static_cast<std::uint64_t>(std::ceil(set * (zeros + 1 + rice) / 8));
  }
};

base::Error invalid(std::string_view what) {
  return {Errc::invalid_shape, fmt::format("packed bits: {}", what)};
}

}  // namespace

PackedBits::PackedBits(std::string_view bytes, std::uint64_t count) : count_(count) {
  bytes_.reserve(bytes.size() + padding_bytes);
  bytes_.append(bytes).append(padding_bytes, '\0');
  index_.reserve((count + positions_per_entry - 1) / positions_per_entry);
}

std::optional<PackedBits> PackedBits::pack(std::span<const std::uint64_t> words, std::uint64_t bytes_max) {
  const std::uint64_t count = count_bits(words);
  const Plan plan(count, words.size() * 64);
  if (plan.bytes >= bytes_max) return {};

  base::ByteWriter out;
  out.reserve(plan.bytes + plan.bytes / 64 + 64);
  out.u64(count);
  out.u8(static_cast<std::uint8_t>(plan.rice));
  StreamWriter stream(out, plan.rice);
  std::vector<Entry> index;
  index.reserve((count + positions_per_entry - 1) / positions_per_entry);
  std::uint64_t after = 0;
  std::uint64_t until_entry = 1;
  for (std::size_t at = 0; at < words.size(); ++at) {
    for (std::uint64_t word = words[at]; word != 0; word &= word - 1) {
      if (--until_entry == 0) {
        if (out.bytes().size() >= bytes_max) return {};
        index.push_back({after, stream.bits()});
        until_entry = positions_per_entry;
      }
      const std::uint64_t position = at * 64 + static_cast<std::uint64_t>(std::countr_zero(word));
      if ((position - after) >> plan.rice > zeros_max) return {};
      stream.put(position - after);
      after = position + 1;
    }
  }
  stream.finish();
  if (out.bytes().size() >= bytes_max) return {};
  PackedBits packed(out.bytes(), 0);
  packed.count_ = count;
  packed.index_ = std::move(index);
  return packed;
}

base::Result<PackedBits> PackedBits::parse(std::string_view bytes, std::uint64_t bits) {
  base::ByteReader head(bytes);
  const std::uint64_t count = head.u64();
  const unsigned rice = head.u8();
  if (!head.ok()) return invalid("cut off");
  if (rice > rice_max) return invalid(fmt::format("a Rice parameter of {}", rice));
  if (count > head.remaining() * 8 / (rice + 1)) return invalid("more positions than the bytes can hold");

  PackedBits packed(bytes, count);
  const Stream stream(packed.bytes());
  Entry next;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i % positions_per_entry == 0) packed.index_.push_back(next);
    const Gap gap = stream.read(next.at_bit);
    if (gap.next_bit > stream.bits) return invalid("cut off in a position");
    if (gap.length < bits && gap.length >> stream.rice > zeros_max)
      return invalid("a gap longer than its code allows");
    if (gap.length >= bits - next.after) return invalid(fmt::format("a position beyond {} bits", bits));
    next = {next.after + gap.length + 1, gap.next_bit};
  }
  if (stream.bits - next.at_bit >= 8 || stream.window(next.at_bit) != 0) {
    return invalid("data after the last position");
  }
  return packed;
}

bool PackedBits::test(std::uint64_t position) const {
  const auto behind =
      std::upper_bound(index_.begin(), index_.end(), position,
                       [](std::uint64_t wanted, const Entry& entry) { return wanted < entry.after; });
  if (behind == index_.begin()) return false;
  const auto entry = behind - 1;
  const Stream stream(bytes());
  const std::uint64_t before = static_cast<std::uint64_t>(entry - index_.begin()) * positions_per_entry;
  Entry next = *entry;
  for (std::uint64_t i = std::min(count_ - before, positions_per_entry); i > 0; --i) {
    const Gap gap = stream.read(next.at_bit);
    const std::uint64_t found = next.after + gap.length;
    if (found >= position) return found == position;
    next = {found + 1, gap.next_bit};
  }
  return false;
}

void PackedBits::unpack_into(std::span<std::uint64_t> words) const {
  const Stream stream(bytes());
  Entry next;
  for (std::uint64_t i = 0; i < count_; ++i) {
    const Gap gap = stream.read(next.at_bit);
    const std::uint64_t position = next.after + gap.length;
    words[position / 64] |= std::uint64_t{1} << (position % 64);
    next = {position + 1, gap.next_bit};
  }
}

}  // namespace spoor::tracker
