#include "tracker/cycles/ids.h"

#include <algorithm>
#include <boost/algorithm/hex.hpp>
#include <cstring>
#include <iterator>
#include <random>

namespace spoor::tracker {

InstanceId InstanceId::random() {
  std::random_device device;
  InstanceId id;
  while (id.is_none()) {
    for (std::size_t at = 0; at < id.bytes.size(); at += 4) {
      const std::uint32_t value = device();
      std::memcpy(id.bytes.data() + at, &value, 4);
    }
  }
  return id;
}

std::optional<InstanceId> InstanceId::parse(std::string_view text) {
  InstanceId id;
  if (text.size() != 2 * id.bytes.size()) return std::nullopt;
  try {
    boost::algorithm::unhex(text.begin(), text.end(), id.bytes.begin());
  } catch (const boost::algorithm::hex_decode_error&) {
    return std::nullopt;
  }
  return id;
}

std::string InstanceId::to_string() const {
  std::string text;
  boost::algorithm::hex_lower(bytes.begin(), bytes.end(), std::back_inserter(text));
  return text;
}

bool is_node_name(std::string_view text) {
  constexpr std::size_t bytes_max = 255;
  // A colon would make it an address.
  const auto is_fit = [](char each) { return each > ' ' && each < '\x7f' && each != ':'; };
  return !text.empty() && text.size() <= bytes_max && std::ranges::all_of(text, is_fit);
}

}  // namespace spoor::tracker
