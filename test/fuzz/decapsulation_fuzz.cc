// Property: decapsulate() and withoutHeaders() read nothing outside the packet. What is left is a
// link-layer header as long as that of the link type, perhaps with tags, and the packet's own last
// bytes, with both lengths shortened equally; a packet without the headers of all kinds is the
// shortest.
//
// Input: 2 bytes that were not captured, 1 byte link type (254 stands for 276), the packet.
#include <algorithm>

#include "filter/decapsulation.h"
#include "fuzz_input.h"

using capfleet::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  capfleet::fuzz::FuzzInput input(std::span(data, size));
  const auto cutBytes = static_cast<uint32_t>(input.take(2));
  const auto given = static_cast<uint32_t>(input.take(1));
  const uint32_t linkType = given == 254 ? 276 : given;
  // libFuzzer's buffer ends where the packet ends, so ASan detects every read beyond it.
  const std::span<const uint8_t> packet = input.rest();
  const auto length = static_cast<uint32_t>(packet.size());

  static capfleet::DecapScratch scratch;
  const capfleet::PacketView stored{packet, length + cutBytes, 0, linkType, 0, 0};
  const auto link = capfleet::linkHeaderOf(linkType);
  const capfleet::FilterView seen = capfleet::decapsulate(stored, scratch);
  require(seen.captured.size() <= packet.size());
  require(seen.originalLength == seen.captured.size() + cutBytes);
  if (seen.captured.size() == packet.size()) {
    require(seen.captured.data() == packet.data());
  } else {
    require(link && seen.captured.size() >= link->bytes);
    const auto payload = seen.captured.subspan(link->bytes);
    require(std::equal(payload.begin(), payload.end(), packet.last(payload.size()).begin()));
  }

  for (uint8_t kinds = 0; kinds <= capfleet::kAllHeaders; kinds++) {
    const capfleet::StrippedPacket stripped = capfleet::withoutHeaders(stored, kinds);
    const size_t left = stripped.size();
    require(left <= packet.size() && left >= seen.captured.size());
    require(stripped.originalLength == left + cutBytes);
    static std::vector<uint8_t> out;
    out.resize(left);
    stripped.store(out.data(), left);
    if (kinds == capfleet::kAllHeaders) {
      require(std::equal(out.begin(), out.end(), seen.captured.begin(), seen.captured.end()));
    }
    require(stripped.payload.empty() || &stripped.payload.back() == &packet.back());
  }
  return 0;
}
