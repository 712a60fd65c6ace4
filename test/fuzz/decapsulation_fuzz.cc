// Property: decapsulate() reads nothing outside the packet. Its result is either the packet, or an
// Ethernet header followed by the packet's own last bytes, with both lengths shortened equally.
//
// Input: 2 bytes that were not captured, 1 byte link type, the packet.
#include <algorithm>

#include "filter/decapsulation.h"
#include "fuzz_input.h"

using capfleet::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kHeaderBytes = 14;
  capfleet::fuzz::FuzzInput input(std::span(data, size));
  const auto cutBytes = static_cast<uint32_t>(input.take(2));
  const auto linkType = static_cast<uint32_t>(input.take(1));
  // libFuzzer's buffer ends where the packet ends, so ASan detects every read beyond it.
  const std::span<const uint8_t> packet = input.rest();
  const auto length = static_cast<uint32_t>(packet.size());

  static capfleet::DecapScratch scratch;
  const capfleet::PacketView stored{packet, length + cutBytes, 0, linkType, 0, 0};
  const capfleet::FilterView seen = capfleet::decapsulate(stored, scratch);
  require(seen.captured.size() <= packet.size());
  require(seen.originalLength == seen.captured.size() + cutBytes);
  if (seen.captured.data() == packet.data()) {
    require(seen.captured.size() == packet.size());
    return 0;
  }
  require(linkType == 1 && seen.captured.size() >= kHeaderBytes);
  const auto payload = seen.captured.subspan(kHeaderBytes);
  require(std::equal(payload.begin(), payload.end(), packet.last(payload.size()).begin()));
  return 0;
}
