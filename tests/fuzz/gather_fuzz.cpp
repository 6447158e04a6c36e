// What a scan and its daemon send each other: the query by its first byte, or else the response.
#include <string>

#include "peer/gather/gather_exchange.h"
#include "tests/fuzz/fuzz_support.h"

namespace spoor::peer {
namespace {

using fuzz::require;

void check_query(std::string_view bytes) {
  const auto query = [&] {
    const fuzz::MemoryBound bound(bytes.size());
    return decode_gather_query(bytes);
  }();
  if (!query) return;
  const std::string again = gather_request({}, *query).body;
  const auto same = decode_gather_query(again);
  require(same && gather_request({}, *same).body == again, "what was read can be sent");
}

void check_gathered(std::string_view bytes) {
  const auto gathered = read_gathered(HttpResponse{200, "", std::string(bytes)});
  if (!gathered) return;
  const std::string again = encode_gathered(*gathered);
  const auto same = read_gathered(HttpResponse{200, "", again});
  require(same && encode_gathered(*same) == again, "what was read can be sent");
}

}  // namespace
}  // namespace spoor::peer

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  if (bytes.front() == 'q') {
    spoor::peer::check_query(bytes.substr(1));
  } else {
    spoor::peer::check_gathered(bytes.substr(1));
  }
  return 0;
}
