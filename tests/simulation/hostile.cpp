#include "tests/simulation/hostile.h"

#include "peer/gather/cycle_frame.h"

namespace spoor::simulation {

std::string lie(const std::string& frame, const Victim& victim, std::uint64_t choice) {
  auto read = peer::decode_cycle_frame(frame);
  if (!read || choice % 8 == 0) return frame;
  peer::CycleFrame forged = *std::move(read);
  const std::uint64_t detail = choice / 8;
  const std::uint64_t ahead = detail % 16;
  forged.answer.gap = detail / 16 % 8 == 0;
  switch (choice % 8) {
    case 1:  // the victim, whole, in a cycle ahead of its own
      forged.sender.node = victim.name;
      forged.answer.instance = victim.instance;
      forged.answer.current.value += ahead;
      forged.answer.marks = {};
      break;
    case 2:
      forged.sender.node = victim.name;
      break;
    case 3:  // its own name with the victim's memory
      forged.answer.instance = victim.instance;
      forged.answer.marks = {};
      break;
    case 4:
      forged.answer.instance.bytes[detail % forged.answer.instance.bytes.size()] ^= 1;
      break;
    case 5:
      forged.answer.current.value += ahead;
      forged.answer.marks = {};
      break;
    case 6:
      forged.run += detail;
      forged.sender.node = detail % 2 == 0 ? "stranger" : victim.name;
      break;
    default:
      forged.answer.current.value = ahead % 4 == 0 ? std::uint64_t{1} << (33 + ahead) : 1 + ahead;
      forged.rules_digest = detail % 2;
      break;
  }
  return peer::encode_cycle_frame(forged);
}

}  // namespace spoor::simulation
